#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <thread>
#include <vector>

#include "arrays.hpp"
#include "simd/table.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace nb = nanobind;

namespace {

std::vector<std::string> simd_targets() {
    std::vector<std::string> names;
    for (int i = 0; multimargin::simd::available_table(i) != nullptr; ++i) {
        names.emplace_back(multimargin::simd::available_table(i)->name);
    }
    return names;
}

// What OMP_NUM_THREADS, threadpoolctl and joblib allow in this thread.
int allowed_threads() {
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return static_cast<int>(std::thread::hardware_concurrency());
#endif
}

}  // namespace

NB_MODULE(_core, module) {
    multimargin::simd::best_table();  // an instruction set that is not there ends the import, not a fit
    module.attr("__version__") = MULTIMARGIN_VERSION;
    module.def("simd_targets", &simd_targets, "Instruction sets this machine can run, the one in use last.");
    module.def("allowed_threads", &allowed_threads, "Threads that OpenMP's settings allow.");
    multimargin::bindings::bind_kernels(module);
    multimargin::bindings::bind_solver(module);
    multimargin::bindings::bind_binary(module);
    multimargin::bindings::bind_shards(module);
    multimargin::bindings::bind_binary_shards(module);
    multimargin::bindings::bind_linear(module);
    multimargin::bindings::bind_text(module);
    multimargin::bindings::bind_online(module);
    // What a thread or a traceback still holds when the interpreter ends is no leak, and nothing prints from here.
    nb::set_leak_warnings(false);
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&multimargin::bindings::InterpreterEnd::begin));
}
