// The kernel matrix among some rows, held in memory: for small data, where every value is used many times.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/monitor.hpp"
#include "base/thread_team.hpp"
#include "kernel/kernel_source.hpp"

namespace multimargin {

// How the values lie: row by row, as a matrix; or panel by panel (64 columns, all rows), so that what a score pass
// reads for one panel lies together.
enum class Layout { rows, panels };

template <class T>
class SquareKernel {
  public:
    // Computes one half and mirrors it. Not `filled` when the monitor stopped that; then it is not to be used.
    SquareKernel(const KernelSource& source, std::vector<Index> rows, Layout layout, ThreadTeam& team,
                 Monitor& monitor);
    // A part of a larger one.
    SquareKernel(const SquareKernel& larger, std::span<const Index> positions, ThreadTeam& team);

    bool filled() const { return filled_; }
    Index size() const { return static_cast<Index>(rows_.size()); }
    Index n_panels() const { return (size() + simd::panel_width - 1) / simd::panel_width; }
    const T* panel_row(Index panel, Index position) const {
        return values_.data() + panel * panel_stride_ + position * row_stride_;
    }
    Layout layout() const { return panel_stride_ == simd::panel_width ? Layout::rows : Layout::panels; }
    // Of a matrix that lies row by row.
    Index ld() const { return row_stride_; }
    Index position_of(Index source_row) const { return position_of_[unsigned_index(source_row)]; }

    // out[i * ld + j] = k(positions[i], positions[j]); ld leaves room for whole panels.
    void gather(std::span<const Index> positions, T* out, Index ld, ThreadTeam& team) const;

    // All positions as columns; it must outlive them. Rows are rows of the source, which must be among its own.
    std::unique_ptr<KernelColumns<T>> columns() const;

  private:
    void allocate(Layout layout);
    T* place(Index panel, Index position) { return values_.data() + panel * panel_stride_ + position * row_stride_; }
    void mirror(Index panel);

    std::vector<Index> rows_;         // of the source
    std::vector<Index> position_of_;  // by row of the source
    RawArray<T> values_;
    Index panel_stride_ = 0, row_stride_ = 0;
    bool filled_ = true;
};

// out = k among all rows of the source, as a plain matrix: one half is computed and mirrored. False when the monitor
// stopped it; then it is not to be used.
bool fill_matrix(const KernelSource& source, double* out, ThreadTeam& team, Monitor& monitor);

}  // namespace multimargin
