#include "stored_source.hpp"

#include <algorithm>

namespace multimargin {

namespace {

using simd::panel_width;

constexpr Index not_stored = -1;

struct StoredRows final : KernelRows {
    explicit StoredRows(std::vector<Index> chosen)
        : KernelRows(static_cast<Index>(chosen.size())), positions(std::move(chosen)) {}
    std::vector<Index> positions;
};

template <class T>
class StoredColumns final : public KernelColumns<T> {
  public:
    StoredColumns(const StoredSource<T>& source, std::vector<Index> positions)
        : KernelColumns<T>(static_cast<Index>(positions.size())), source_(source), positions_(std::move(positions)) {
        consecutive_ = !positions_.empty() && positions_[0] == 0;
        for (std::size_t j = 1; j < positions_.size(); ++j) {
            consecutive_ = consecutive_ && positions_[j] == static_cast<Index>(j);
        }
        positions_.resize(unsigned_index(this->n_panels() * panel_width), 0);  // padding reads something harmless
    }

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        return std::make_unique<StoredRows>(source_.positions_of(rows));
    }

    void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* out,
                    Index ld) const override {
        const std::vector<Index>& chosen = static_cast<const StoredRows&>(rows).positions;
        const Index* columns = positions_.data() + panel * panel_width;
        for (Index r = 0; r < n_rows; ++r) {
            const T* row = source_.row(chosen[unsigned_index(first_row + r)]);
            T* target = out + r * ld;
            if (consecutive_) {
                std::copy_n(row + panel * panel_width, panel_width, target);
            } else {
                for (Index j = 0; j < panel_width; ++j) target[j] = row[columns[j]];
            }
        }
    }

  private:
    const StoredSource<T>& source_;
    std::vector<Index> positions_;
    bool consecutive_ = false;
};

}  // namespace

template <class T>
StoredSource<T>::StoredSource(const KernelSource& base, std::vector<Index> rows, ThreadTeam& team, Monitor& monitor)
    : base_(base), position_(unsigned_index(base.size()), not_stored) {
    for (std::size_t i = 0; i < rows.size(); ++i) position_[unsigned_index(rows[i])] = static_cast<Index>(i);
    const auto columns = base.columns<T>(rows);
    ld_ = columns->n_panels() * panel_width;
    values_.resize(checked_product(static_cast<Index>(rows.size()), ld_));
    const auto prepared = columns->prepare(rows);
    constexpr Index rows_per_task = 256;
    team.run(columns->n_panels(), [&](Index panel) {
        for (Index first = 0; first < prepared->size(); first += rows_per_task) {
            if (monitor.poll()) return;
            const Index count = std::min(rows_per_task, prepared->size() - first);
            columns->fill_panel(*prepared, first, count, panel, values_.data() + first * ld_ + panel * panel_width,
                                ld_);
        }
    });
    filled_ = !monitor.stopped();
}

template <class T>
std::vector<Index> StoredSource<T>::positions_of(std::span<const Index> rows) const {
    std::vector<Index> positions;
    positions.reserve(rows.size());
    for (const Index row : rows) {
        const Index position = position_[unsigned_index(row)];
        if (position == not_stored) throw std::logic_error("a row that was not stored");
        positions.push_back(position);
    }
    return positions;
}

template <class T>
template <class U>
std::unique_ptr<KernelColumns<U>> StoredSource<T>::make_columns(std::span<const Index> columns) const {
    if constexpr (std::is_same_v<T, U>) {
        return std::make_unique<StoredColumns<T>>(*this, positions_of(columns));
    } else {
        return base_.columns<U>(columns);
    }
}

template <class T>
std::unique_ptr<KernelColumns<float>> StoredSource<T>::columns_f32(std::span<const Index> columns) const {
    return make_columns<float>(columns);
}

template <class T>
std::unique_ptr<KernelColumns<double>> StoredSource<T>::columns_f64(std::span<const Index> columns) const {
    return make_columns<double>(columns);
}

template class StoredSource<float>;
template class StoredSource<double>;

}  // namespace multimargin
