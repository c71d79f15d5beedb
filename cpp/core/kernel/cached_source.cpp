#include "kernel/cached_source.hpp"

#include <algorithm>
#include <stdexcept>

namespace multimargin {

namespace {

using simd::panel_width;

struct KeptRows final : KernelRows {
    explicit KeptRows(std::span<const Index> rows)
        : KernelRows(static_cast<Index>(rows.size())), positions(rows.begin(), rows.end()) {}
    Index n_computed() const override { return 0; }
    std::vector<Index> positions;
};

// Some columns, which must be gathered, or all of them in order, which lie there.
template <class T>
class KeptColumns final : public KernelColumns<T> {
  public:
    KeptColumns(const KeptSource& source, std::span<const Index> columns)
        : KernelColumns<T>(static_cast<Index>(columns.size())),
          source_(source),
          columns_(columns.begin(), columns.end()),
          in_order_(this->size() == source.size()) {
        for (Index j = 0; in_order_ && j < this->size(); ++j) in_order_ = columns_[unsigned_index(j)] == j;
    }

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        return std::make_unique<KeptRows>(rows);
    }

    const T* kept_row(Index row) const override { return in_order_ ? source_.row<T>(row) : nullptr; }

    void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* out,
                    Index ld) const override {
        const std::vector<Index>& positions = static_cast<const KeptRows&>(rows).positions;
        const Index first = panel * panel_width, count = std::min<Index>(panel_width, this->size() - first);
        for (Index r = 0; r < n_rows; ++r) {
            const T* row = source_.row<T>(positions[unsigned_index(first_row + r)]);
            T* line = out + r * ld;
            for (Index j = 0; j < count; ++j) line[j] = row[columns_[unsigned_index(first + j)]];
            std::fill(line + count, line + panel_width, T(0));
        }
    }

    void panel_rows(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* scratch,
                    const T** values) const override {
        if (!in_order_) return KernelColumns<T>::panel_rows(rows, first_row, n_rows, panel, scratch, values);
        const std::vector<Index>& positions = static_cast<const KeptRows&>(rows).positions;
        for (Index r = 0; r < n_rows; ++r) {
            values[r] = source_.row<T>(positions[unsigned_index(first_row + r)]) + panel * panel_width;
        }
    }

  private:
    const KeptSource& source_;
    std::vector<Index> columns_;
    bool in_order_;
};

Index padded(Index n) { return round_up(n, panel_width); }

// Not a power of two: rows that far apart would map to the same lines of the cache.
Index stride(Index n) { return padded(n) + simd::overrun; }

}  // namespace

double KeptSource::bytes(Index n_rows) {
    return static_cast<double>(n_rows) * static_cast<double>(stride(n_rows)) * (sizeof(double) + sizeof(float));
}

KeptSource::KeptSource(const KernelSource& of, std::span<const Index> rows, KeptMemory& memory)
    : rows_(rows.begin(), rows.end()),
      size_(static_cast<Index>(rows.size())),
      ld_(stride(size_)),
      memory_(memory),
      columns_(of.columns_f64(rows)),
      present_(rows.size(), 0) {
    for (const Index row : rows_) diagonal_.push_back(of.diagonal(row));
    const std::size_t n = checked_product(ld_, size_);
    memory.f64.reserve(n);
    memory.f32.reserve(n);
}

void KeptSource::compute(Index i) const {
    double* from = memory_.f64.data() + i * ld_;
    float* to = memory_.f32.data() + i * ld_;
    columns_->fill({&rows_[unsigned_index(i)], 1}, from, ld_);
    for (Index j = 0; j < padded(size_); ++j) to[j] = static_cast<float>(from[j]);
    present_[unsigned_index(i)] = 1;
}

std::unique_ptr<KernelColumns<float>> KeptSource::columns_f32(std::span<const Index> columns) const {
    return std::make_unique<KeptColumns<float>>(*this, columns);
}

std::unique_ptr<KernelColumns<double>> KeptSource::columns_f64(std::span<const Index> columns) const {
    return std::make_unique<KeptColumns<double>>(*this, columns);
}

std::unique_ptr<KernelColumns<double>> KeptSource::foreign_columns(const DataView&, std::span<const Index>) const {
    throw std::logic_error("a kept kernel matrix knows no other points");
}

std::unique_ptr<KernelColumns<float>> KeptSource::foreign_columns_f32(const DataView&, std::span<const Index>) const {
    throw std::logic_error("a kept kernel matrix knows no other points");
}

}  // namespace multimargin
