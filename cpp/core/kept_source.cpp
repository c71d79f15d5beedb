#include "kept_source.hpp"

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
    KeptColumns(const T* values, Index n_rows, Index ld, std::span<const Index> columns)
        : KernelColumns<T>(static_cast<Index>(columns.size())),
          values_(values),
          ld_(ld),
          columns_(columns.begin(), columns.end()) {
        in_order_ = this->size() == n_rows;
        for (Index j = 0; in_order_ && j < n_rows; ++j) in_order_ = columns_[unsigned_index(j)] == j;
    }

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        return std::make_unique<KeptRows>(rows);
    }

    const T* kept_row(Index row) const override { return in_order_ ? values_ + row * ld_ : nullptr; }

    void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* out,
                    Index ld) const override {
        const std::vector<Index>& positions = static_cast<const KeptRows&>(rows).positions;
        const Index first = panel * panel_width, count = std::min<Index>(panel_width, this->size() - first);
        for (Index r = 0; r < n_rows; ++r) {
            const T* row = values_ + positions[unsigned_index(first_row + r)] * ld_;
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
            values[r] = values_ + positions[unsigned_index(first_row + r)] * ld_ + panel * panel_width;
        }
    }

  private:
    const T* values_;
    Index ld_;
    std::vector<Index> columns_;
    bool in_order_;
};

Index padded(Index n) { return round_up(n, panel_width); }

// Not a power of two: rows that far apart would fight for the same lines of the cache.
Index stride(Index n) { return padded(n) + simd::overrun; }

}  // namespace

double KeptSource::bytes(Index n_rows) {
    return static_cast<double>(n_rows) * static_cast<double>(stride(n_rows)) * (sizeof(double) + sizeof(float));
}

KeptSource::KeptSource(const KernelSource& of, std::span<const Index> rows, KeptMemory& memory)
    : size_(static_cast<Index>(rows.size())), ld_(stride(size_)) {
    const std::size_t n = checked_product(ld_, size_);
    memory.f64.reserve(n);
    memory.f32.reserve(n);
    of.columns_f64(rows)->fill(rows, memory.f64.data(), ld_);
    for (Index i = 0; i < size_; ++i) {
        const double* from = memory.f64.data() + i * ld_;
        float* to = memory.f32.data() + i * ld_;
        for (Index j = 0; j < padded(size_); ++j) to[j] = static_cast<float>(from[j]);
    }
    f64_ = memory.f64.data();
    f32_ = memory.f32.data();
}

std::unique_ptr<KernelColumns<float>> KeptSource::columns_f32(std::span<const Index> columns) const {
    return std::make_unique<KeptColumns<float>>(f32_, size_, ld_, columns);
}

std::unique_ptr<KernelColumns<double>> KeptSource::columns_f64(std::span<const Index> columns) const {
    return std::make_unique<KeptColumns<double>>(f64_, size_, ld_, columns);
}

std::unique_ptr<KernelColumns<double>> KeptSource::foreign_columns(const DataView&, std::span<const Index>) const {
    throw std::logic_error("a kept kernel matrix knows no other points");
}

std::unique_ptr<KernelColumns<float>> KeptSource::foreign_columns_f32(const DataView&, std::span<const Index>) const {
    throw std::logic_error("a kept kernel matrix knows no other points");
}

}  // namespace multimargin
