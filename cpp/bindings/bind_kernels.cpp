#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "arrays.hpp"
#include "kernel/gram_matrix.hpp"
#include "kernel/row_cache.hpp"
#include "kernel/score_pass.hpp"
#include "python_watcher.hpp"
#include "store.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;

template <class T>
NumpyArray<T> block(const Store& store, const Vector1<std::int64_t>& rows, const Vector1<std::int64_t>& columns) {
    const std::vector<Index> row_list = indices_of(rows), column_list = indices_of(columns);
    check_indices(row_list, store.source->size());
    check_indices(column_list, store.source->size());
    const std::size_t n_rows = row_list.size(), n_columns = column_list.size();
    std::vector<T> values(checked_product(static_cast<Index>(n_rows), static_cast<Index>(n_columns)));
    {
        const ReleasedGil released;
        const auto prepared = store.source->columns<T>(column_list);
        const std::size_t width = unsigned_index(prepared->n_panels() * simd::panel_width);
        AlignedVector<T> padded(n_rows * width);
        prepared->fill(row_list, padded.data(), static_cast<Index>(width));
        for (std::size_t r = 0; r < n_rows; ++r) {
            std::copy_n(padded.data() + r * width, n_columns, values.data() + r * n_columns);
        }
    }
    return to_numpy<T>(std::move(values), {n_rows, n_columns});
}

NumpyArray<double> diagonal(const Store& store) {
    std::vector<double> values(unsigned_index(store.source->size()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = store.source->diagonal(static_cast<Index>(i));
    const std::size_t n = values.size();
    return to_numpy<double>(std::move(values), {n});
}

// The coefficients' nonzero entries, by score.
Coefficients coefficients_from(const Matrix<double>& beta, std::vector<Index> rows) {
    const std::size_t n_scores = beta.shape(1);
    Coefficients coefficients(std::move(rows), static_cast<Index>(n_scores));
    for (std::size_t i = 0; i < beta.shape(0); ++i) {
        for (std::size_t c = 0; c < n_scores; ++c) {
            const double value = beta.data()[i * n_scores + c];
            if (value != 0.0) coefficients.add(static_cast<Index>(c), static_cast<Index>(i), value);
        }
    }
    return coefficients;
}

// K(points, rows of the store) beta in float64; points are other data of the same width.
NumpyArray<double> scores_at(const Store& store, const Vector1<std::int64_t>& rows, const Matrix<double>& beta,
                             const DataView& points, Index n_threads) {
    std::vector<Index> row_list = indices_of(rows);
    check_indices(row_list, store.source->size());
    if (beta.shape(0) != row_list.size()) throw nb::value_error("beta needs one row per row of the store asked for");
    const Coefficients coefficients = coefficients_from(beta, std::move(row_list));
    const Index n_points = std::visit([](const auto& view) { return view.rows(); }, points);
    const std::size_t n = unsigned_index(n_points), n_scores = beta.shape(1);
    std::vector<double> result(n * n_scores);
    SignalWatcher watcher;
    {
        const ReleasedGil released;
        std::vector<Index> all(n);
        std::iota(all.begin(), all.end(), Index{0});
        const auto columns = store.source->foreign_columns(points, all);
        const Index ld = columns->n_panels() * simd::panel_width;
        AlignedVector<double> by_score(checked_product(ld, static_cast<Index>(n_scores)), 0.0);
        ThreadTeam team(n_threads);
        Monitor monitor(&watcher, infinity);
        add_scores(*columns, coefficients, by_score.data(), ld, team, &monitor);
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t c = 0; c < n_scores; ++c) {
                result[j * n_scores + c] = by_score[c * unsigned_index(ld) + j];
            }
        }
    }
    if (watcher.pending) throw nb::python_error();
    return to_numpy<double>(std::move(result), {n, n_scores});
}

template <class T>
NumpyArray<double> dense_scores(const Store& store, const Vector1<std::int64_t>& rows, const Matrix<double>& beta,
                                const Matrix<T>& points, Index n_threads) {
    return scores_at(store, rows, beta, view_of(points), n_threads);
}

NumpyArray<double> sparse_scores(const Store& store, const Vector1<std::int64_t>& rows, const Matrix<double>& beta,
                                 const SparseData& points, Index n_threads) {
    return scores_at(store, rows, beta, points.view, n_threads);
}

// beta K(rows, columns) in float64, both rows of the store; beta and the result have a line for each score.
NumpyArray<double> scores_within(const Store& store, const Vector1<std::int64_t>& rows, const Matrix<double>& beta,
                                 const Vector1<std::int64_t>& columns, Index n_threads) {
    std::vector<Index> row_list = indices_of(rows), column_list = indices_of(columns);
    check_indices(row_list, store.source->size());
    check_indices(column_list, store.source->size());
    const std::size_t n_rows = row_list.size(), n = column_list.size(), n_scores = beta.shape(0);
    if (beta.shape(1) != n_rows) throw nb::value_error("beta needs one column per row of the store asked for");
    std::vector<double> result(n * n_scores);
    SignalWatcher watcher;
    {
        const ReleasedGil released;
        Coefficients coefficients(std::move(row_list), static_cast<Index>(n_scores));
        for (std::size_t i = 0; i < n_scores * n_rows; ++i) {
            const double value = beta.data()[i];
            if (value != 0.0) coefficients.add(static_cast<Index>(i / n_rows), static_cast<Index>(i % n_rows), value);
        }
        const auto prepared = store.source->columns<double>(column_list);
        const Index ld = prepared->n_panels() * simd::panel_width;
        AlignedVector<double> by_score(checked_product(ld, static_cast<Index>(n_scores)), 0.0);
        ThreadTeam team(n_threads);
        Monitor monitor(&watcher, infinity);
        add_scores(*prepared, coefficients, by_score.data(), ld, team, &monitor);
        for (std::size_t c = 0; c < n_scores; ++c) {
            std::copy_n(by_score.data() + c * unsigned_index(ld), n, result.data() + c * n);
        }
    }
    if (watcher.pending) throw nb::python_error();
    return to_numpy<double>(std::move(result), {n_scores, n});
}

// The kernel matrix among all rows into `out`.
void fill_into(const Store& store, const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out,
               Index n_threads) {
    const std::size_t n = unsigned_index(store.source->size());
    if (out.shape(0) != n || out.shape(1) != n) throw nb::value_error("out must be square, with a line for each row");
    SignalWatcher watcher;
    {
        const ReleasedGil released;
        ThreadTeam team(n_threads);
        Monitor monitor(&watcher, infinity);
        fill_matrix(*store.source, out.data(), team, monitor);
    }
    if (watcher.pending) throw nb::python_error();
}

template <class Value, class Integer>
void bind_sparse(nb::class_<SparseData>& sparse) {
    sparse.def(nb::init<const Vector1<Value>&, const Vector1<Integer>&, const Vector1<Integer>&, Index>(),
               "values"_a.noconvert(), "indices"_a.noconvert(), "starts"_a.noconvert(), "width"_a);
}

// The example-level row cache over all examples of a store, as the solvers use it.
class CachedRows {
  public:
    CachedRows(nb::object store, std::size_t budget_bytes)
        : owner_(std::move(store)), source_(*nb::cast<const Store&>(owner_).source) {
        std::vector<Index> all(unsigned_index(source_.size()));
        std::iota(all.begin(), all.end(), Index{0});
        cache_ = std::make_unique<RowCache<float>>(source_.columns<float>(all), budget_bytes, counters_);
    }

    NumpyArray<float> row(Index i) {
        check_indices({i}, source_.size());
        const float* values = cache_->row(i);
        std::vector<float> copy(values, values + source_.size());
        const std::size_t n = copy.size();
        return to_numpy<float>(std::move(copy), {n});
    }

    Index capacity() const { return cache_->capacity(); }
    Index rows_computed() const { return counters_.rows_computed; }
    Index hits() const { return counters_.hits; }

  private:
    nb::object owner_;
    const KernelSource& source_;
    CacheCounters counters_;
    std::unique_ptr<RowCache<float>> cache_;
};

// In the order of the enumerations.
constexpr const char* form_names[] = {"dot", "squared_difference", "absolute_difference"};
constexpr const char* transform_names[] = {
#define MM_NAME(name, value) #name,
    MM_TRANSFORMS(MM_NAME)
#undef MM_NAME
};

std::vector<std::string> names_of(std::span<const char* const> names) { return {names.begin(), names.end()}; }

template <class Choice>
Choice choice_of(std::span<const char* const> names, std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw nb::value_error("the core has no form or transform of that name");
    return static_cast<Choice>(found - names.begin());
}

void make_kernel(Kernel* kernel, const char* form, const char* transform, double scale, double shift, double offset,
                 int degree) {
    new (kernel) Kernel{{choice_of<simd::Form>(form_names, form),
                         choice_of<simd::Transform>(transform_names, transform), scale, shift, offset, degree}};
}

}  // namespace

void bind_kernels(nb::module_& module) {
    module.def("forms", [] { return names_of(form_names); });
    module.def("transforms", [] { return names_of(transform_names); });
    nb::class_<Kernel>(module, "Kernel")
        .def("__init__", &make_kernel, "form"_a, "transform"_a, nb::kw_only(), "scale"_a = 1.0, "shift"_a = 0.0,
             "offset"_a = 0.0, "degree"_a = 0);
    nb::class_<SparseData> sparse(module, "SparseData");
    bind_sparse<float, std::int32_t>(sparse);
    bind_sparse<float, std::int64_t>(sparse);
    bind_sparse<double, std::int32_t>(sparse);
    bind_sparse<double, std::int64_t>(sparse);
    nb::class_<Store>(module, "Store")
        .def(nb::init<const SparseData&, const Kernel&>(), "data"_a, "kernel"_a)
        .def(nb::init<const Matrix<float>&, const Kernel&>(), "data"_a.noconvert(), "kernel"_a)
        .def(nb::init<const Matrix<double>&, const Kernel&>(), "data"_a.noconvert(), "kernel"_a)
        .def(nb::init<const Matrix<float>&, double, int>(), "gram"_a.noconvert(), "offset"_a, "squarings"_a = 0)
        .def(nb::init<const Matrix<double>&, double, int>(), "gram"_a.noconvert(), "offset"_a, "squarings"_a = 0)
        .def("block_f32", &block<float>, "rows"_a, "columns"_a)
        .def("block_f64", &block<double>, "rows"_a, "columns"_a)
        .def("diagonal", &diagonal)
        .def("scores", &dense_scores<float>, "rows"_a, "beta"_a, "points"_a.noconvert(), "n_threads"_a)
        .def("scores", &dense_scores<double>, "rows"_a, "beta"_a, "points"_a.noconvert(), "n_threads"_a)
        .def("scores", &sparse_scores, "rows"_a, "beta"_a, "points"_a, "n_threads"_a)
        .def("fill_into", &fill_into, "out"_a.noconvert(), "n_threads"_a)
        .def("scores_within", &scores_within, "rows"_a, "beta"_a, "columns"_a, "n_threads"_a);
    nb::class_<CachedRows>(module, "CachedRows")
        .def(nb::init<nb::object, std::size_t>(), "store"_a, "budget_bytes"_a)
        .def("row", &CachedRows::row, "i"_a)
        .def_prop_ro("capacity", &CachedRows::capacity)
        .def_prop_ro("rows_computed", &CachedRows::rows_computed)
        .def_prop_ro("hits", &CachedRows::hits);
}

}  // namespace multimargin::bindings
