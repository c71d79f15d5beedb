#include "kernel/gram_matrix.hpp"

#include <numeric>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using simd::panel_width;
using testing::Clouds;

// What the source itself says about all pairs of some rows.
template <class T>
struct Pairs {
    Pairs(const KernelSource& source, const std::vector<Index>& rows) : n(static_cast<Index>(rows.size())) {
        const auto columns = source.columns<T>(rows);
        ld = columns->n_panels() * panel_width;
        values.resize(unsigned_index(n * ld));
        columns->fill(rows, values.data(), ld);
    }
    T at(Index i, Index j) const { return values[unsigned_index(i * ld + j)]; }

    Index n, ld = 0;
    AlignedVector<T> values;
};

// To the bit: training may go over from computed to held values at any time.
template <class T>
bool agree(const SquareKernel<T>& kernel, const Pairs<T>& expected) {
    bool same = kernel.filled() && kernel.size() == expected.n;
    for (Index i = 0; i < kernel.size(); ++i) {
        for (Index j = 0; j < kernel.size(); ++j) {
            same = same && kernel.panel_row(j / panel_width, i)[j % panel_width] == expected.at(i, j);
        }
    }
    return same;
}

// Rows of the source in no order; more than two panels of them, the last one not full.
struct KernelCase {
    KernelCase() : clouds(170, 3, 3, 4), source(clouds.view(), testing::rbf(0.7)) {
        for (Index i = 0; i < 150; ++i) rows.push_back((i * 7 + 3) % 150 + 15);
        for (Index i = 0; i < 97; ++i) part.push_back((i * 11 + 5) % 150);
    }
    std::vector<Index> rows_at(std::span<const Index> positions) const {
        std::vector<Index> chosen;
        for (const Index position : positions) chosen.push_back(rows[unsigned_index(position)]);
        return chosen;
    }
    template <class T>
    SquareKernel<T> kernel(Layout layout, ThreadTeam& team) const {
        Monitor monitor(nullptr, infinity);
        return {source, rows, layout, team, monitor};
    }

    Clouds clouds;
    DenseSource source;
    std::vector<Index> rows, part;
};

// Calls back with a kernel in every type and layout, made by one thread and by three.
template <class Function>
void for_each_kernel(const KernelCase& c, Function function) {
    for (const Index n_threads : {1, 3}) {
        for (const Layout layout : {Layout::rows, Layout::panels}) {
            ThreadTeam team(n_threads);
            function(c.kernel<float>(layout, team), layout, team);
            function(c.kernel<double>(layout, team), layout, team);
        }
    }
}

template <class T>
void check_gather(const SquareKernel<T>& kernel, const KernelCase& c, ThreadTeam& team) {
    const Pairs<T> expected(c.source, c.rows_at(c.part));
    AlignedVector<T> found(unsigned_index(expected.n * expected.ld), T(-1));
    kernel.gather(c.part, found.data(), expected.ld, team);
    bool same = true;
    for (Index i = 0; i < expected.n; ++i) {
        for (Index j = 0; j < expected.n; ++j)
            same = same && found[unsigned_index(i * expected.ld + j)] == expected.at(i, j);
    }
    CHECK(same);
}

template <class T>
void check_columns(const SquareKernel<T>& kernel, const KernelCase& c) {
    const auto columns = kernel.columns();
    CHECK(columns->size() == kernel.size());
    const std::vector<Index> asked = c.rows_at(c.part);
    const auto base = c.source.columns<T>(c.rows);
    const Index n = static_cast<Index>(asked.size()), ld = columns->n_panels() * panel_width;
    AlignedVector<T> expected(unsigned_index(n * ld)), found(expected.size());
    base->fill(asked, expected.data(), ld);
    columns->fill(asked, found.data(), ld);
    // The same by reference: no scratch is needed, and a pass begins at any row.
    const auto prepared = columns->prepare(asked);
    const Index first_row = 5;
    bool filled = true, referred = true;
    for (Index panel = 0; panel < columns->n_panels(); ++panel) {
        std::vector<const T*> values(unsigned_index(n - first_row));
        columns->panel_rows(*prepared, first_row, n - first_row, panel, nullptr, values.data());
        for (Index j = panel * panel_width; j < std::min<Index>((panel + 1) * panel_width, columns->size()); ++j) {
            for (Index r = 0; r < n; ++r) {
                const T value = expected[unsigned_index(r * ld + j)];
                filled = filled && found[unsigned_index(r * ld + j)] == value;
                if (r < first_row) continue;
                referred = referred && values[unsigned_index(r - first_row)][j % panel_width] == value;
            }
        }
    }
    CHECK(filled);
    CHECK(referred);
}

}  // namespace

TEST(square_kernel_agrees_with_its_source) {
    const KernelCase c;
    for_each_kernel(c, [&]<class T>(const SquareKernel<T>& kernel, Layout layout, ThreadTeam&) {
        CHECK(kernel.layout() == layout);
        CHECK(agree(kernel, Pairs<T>(c.source, c.rows)));
        for (Index i = 0; i < kernel.size(); ++i) CHECK(kernel.position_of(c.rows[unsigned_index(i)]) == i);
        CHECK(kernel.position_of(0) == -1);
        // row by row it is a matrix, with room for whole panels
        if (layout == Layout::panels) return;
        CHECK(kernel.ld() >= kernel.n_panels() * panel_width);
        CHECK(kernel.panel_row(2, 9) == kernel.panel_row(0, 0) + 9 * kernel.ld() + 2 * panel_width);
    });
}

// Other kernels are symmetric to the bit as well; and whole panels, a single row and none at all.
TEST(square_kernel_of_any_kind_and_size) {
    const Clouds clouds(130, 5, 3, 6);
    Monitor monitor(nullptr, infinity);
    ThreadTeam team(2);
    for (const Kernel& kernel : {testing::linear(1.0), testing::rbf(0.4, 1.0), testing::poly(0.4, 0.5, 3, 1.0),
                                 testing::sigmoid(0.4, 0.5, 1.0), testing::laplacian(0.4, 1.0)}) {
        const DenseSource source(clouds.view(), kernel);
        for (const Index n : {0, 1, 63, 64, 65, 128, 130}) {
            std::vector<Index> rows(unsigned_index(n));
            std::iota(rows.begin(), rows.end(), Index{0});
            for (const Layout layout : {Layout::rows, Layout::panels}) {
                CHECK(agree(SquareKernel<float>(source, rows, layout, team, monitor), Pairs<float>(source, rows)));
                CHECK(agree(SquareKernel<double>(source, rows, layout, team, monitor), Pairs<double>(source, rows)));
            }
        }
    }
}

// Beyond 4 MB the memory is of another kind.
TEST(square_kernel_that_is_large) {
    const Clouds clouds(1100, 2, 3, 6);
    const DenseSource source(clouds.view(), testing::rbf(0.7));
    Monitor monitor(nullptr, infinity);
    ThreadTeam team(3);
    const SquareKernel<float> kernel(source, clouds.rows, Layout::panels, team, monitor);
    CHECK(agree(kernel, Pairs<float>(source, clouds.rows)));
}

TEST(square_kernel_part_of_a_larger_one) {
    const KernelCase c;
    for_each_kernel(c, [&]<class T>(const SquareKernel<T>& kernel, Layout, ThreadTeam& team) {
        const std::vector<Index> rows = c.rows_at(c.part);
        const SquareKernel<T> part(kernel, c.part, team);
        CHECK(part.layout() == Layout::panels);
        CHECK(agree(part, Pairs<T>(c.source, rows)));
        for (Index i = 0; i < part.size(); ++i) CHECK(part.position_of(rows[unsigned_index(i)]) == i);
        // and a part of the part
        const std::vector<Index> few{70, 2, 96};
        const SquareKernel<T> smaller(part, few, team);
        CHECK(agree(smaller, Pairs<T>(c.source, {rows[70], rows[2], rows[96]})));
        CHECK(smaller.position_of(rows[2]) == 1 && smaller.position_of(rows[3]) == -1);
    });
}

TEST(square_kernel_gathers_a_block) {
    const KernelCase c;
    for_each_kernel(
        c, [&]<class T>(const SquareKernel<T>& kernel, Layout, ThreadTeam& team) { check_gather(kernel, c, team); });
}

TEST(square_kernel_as_columns) {
    const KernelCase c;
    for_each_kernel(c, [&]<class T>(const SquareKernel<T>& kernel, Layout, ThreadTeam&) { check_columns(kernel, c); });
}

TEST(square_kernel_refuses_what_it_does_not_hold) {
    const KernelCase c;
    for_each_kernel(c, [&]<class T>(const SquareKernel<T>& kernel, Layout, ThreadTeam& team) {
        const std::vector<Index> unknown{c.rows[0], 3}, first{0}, second{c.rows[1]};
        CHECK_THROWS(kernel.columns()->prepare(unknown), std::logic_error);
        // a part has forgotten what the larger one knows
        CHECK(kernel.columns()->prepare(second)->size() == 1);
        CHECK_THROWS(SquareKernel<T>(kernel, first, team).columns()->prepare(second), std::logic_error);
    });
}

TEST(square_kernel_stops_with_the_monitor) {
    const KernelCase c;
    for (const Index n_threads : {1, 3}) {
        for (const Layout layout : {Layout::rows, Layout::panels}) {
            ThreadTeam team(n_threads);
            Monitor monitor(nullptr, 0.0);  // the time is up before it begins
            // Only this thread asks the clock, and the others may leave it nothing to do.
            if (n_threads > 1) CHECK(monitor.poll());
            CHECK(!SquareKernel<float>(c.source, c.rows, layout, team, monitor).filled());
            CHECK(monitor.reason() == StopReason::max_time);
        }
    }
}

}  // namespace multimargin
