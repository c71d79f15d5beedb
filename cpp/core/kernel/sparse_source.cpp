#include "kernel/sparse_source.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

#include "base/memory.hpp"
#include "kernel/sparse_differences.hpp"

namespace multimargin {

namespace {

using simd::panel_width;
using simd::Size;

// Dense panels are kept if all of them take at most this many bytes, or at most so many times as much as the rows that
// they come from (data that are not very sparse). Otherwise a panel is made again whenever it is asked for.
constexpr double small_panels = 64e6, small_growth = 4.0;

// |x|^2 + |z|^2 - 2 x'z errs by about epsilon times the norms, and the exponent by gamma times that. A value whose
// exponent may err by more than this is computed again from differences. Data whose distances are about as large as
// their norms have values near 0 by then.
template <class T>
constexpr double largest_error = std::is_same_v<T, float> ? 1e-4 : 1e-10;
// Values as small as this are right as they are, whatever digits they have.
constexpr double negligible = 1e-17;

template <class T>
void run_tile(const simd::Table& table, const simd::SparseTile<T>& tile, const simd::Evaluation& evaluation) {
    if constexpr (std::is_same_v<T, float>) {
        table.sparse_tile_f32(tile, evaluation);
    } else {
        table.sparse_tile_f64(tile, evaluation);
    }
}

template <class T>
T norm_of(const simd::Table& table, simd::Form form, const T* values, Index n) {
    if constexpr (std::is_same_v<T, float>) {
        return table.sparse_norm_f32(form, values, n);
    } else {
        return table.sparse_norm_f64(form, values, n);
    }
}

template <class T>
std::vector<T> norms_of(const simd::Table& table, simd::Form form, const CsrView& data) {
    std::vector<T> norms, values;
    norms.reserve(unsigned_index(data.rows()));
    for (Index i = 0; i < data.rows(); ++i) {
        values.clear();
        for (Index e = data.begin(i); e < data.begin(i + 1); ++e) values.push_back(static_cast<T>(data.value(e)));
        norms.push_back(norm_of(table, form, values.data(), data.length(i)));
    }
    return norms;
}

// Chosen rows in the tile's precision.
template <class T>
struct SparseRows final : KernelRows {
    SparseRows(const SparseSource& source, std::span<const Index> rows)
        : KernelRows(static_cast<Index>(rows.size())), numbers(rows.begin(), rows.end()), starts{0} {
        const CsrView& data = source.data();
        for (const Index i : rows) {
            for (Index e = data.begin(i); e < data.begin(i + 1); ++e) {
                features.push_back(data.column(e));
                values.push_back(static_cast<T>(data.value(e)));
            }
            norms.push_back(source.norms<T>()[unsigned_index(i)]);
            starts.push_back(static_cast<Size>(values.size()));
        }
    }
    std::vector<Index> numbers;
    std::vector<Size> starts, features;
    std::vector<T> values, norms;
};

// A panel made dense over the features that matter, and the rows' entries with the panel's lines in place of features.
// The panel is all zeros between uses, so that making it costs no more than its entries.
template <class T>
struct LocalPanel {
    FeatureNumbers numbers;
    AlignedVector<T> panel;
    std::vector<Size> written;
    std::vector<Size> starts, lines;
    std::vector<T> values;
};

// Working memory of tasks that run side by side: each takes one that is idle and puts it back.
template <class T>
class Spares {
  public:
    std::unique_ptr<T> take() {
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                auto found = std::move(idle_.back());
                idle_.pop_back();
                return found;
            }
        }
        return std::make_unique<T>();
    }
    void put_back(std::unique_ptr<T> used) {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(used));
    }

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> idle_;
};

template <class T>
class SparseColumns final : public KernelColumns<T> {
  public:
    SparseColumns(const SparseSource& source, const CsrView& data, std::span<const Index> columns,
                  const std::vector<T>& norms)
        : KernelColumns<T>(static_cast<Index>(columns.size())),
          source_(source),
          data_(data),
          evaluation_(source.kernel()),
          columns_(columns.begin(), columns.end()),
          norms_(unsigned_index(this->n_panels() * panel_width), T(0)) {
        T largest = 0;
        for (Index j = 0; j < this->size(); ++j) {
            n_entries_ += last(j) - first(j);
            norms_[unsigned_index(j)] = norms[unsigned_index(columns_[unsigned_index(j)])];
            largest = std::max(largest, norms_[unsigned_index(j)]);
        }
        loses_digits_ = !(error_of(source.largest_norm<T>(), largest) <= largest_error<T>);
        if (is_worth_keeping()) keep_panels();
    }

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        return std::make_unique<SparseRows<T>>(source_, rows);
    }

    void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index p, T* out, Index ld) const override {
        const auto& chosen = static_cast<const SparseRows<T>&>(rows);
        simd::SparseTile<T> tile{chosen.starts.data() + first_row,
                                 chosen.features.data(),
                                 chosen.values.data(),
                                 chosen.norms.data() + first_row,
                                 n_rows,
                                 kept_.data() + p * panel_width * data_.columns(),
                                 norms_.data() + p * panel_width,
                                 out,
                                 ld};
        if (is_kept_) {
            run_tile(source_.table(), tile, evaluation_);
        } else {
            run_on_local_panel(tile, chosen, first_row, p);
        }
        if (loses_digits_) take_differences(tile, chosen, first_row, p);
    }

  private:
    Index first(Index j) const { return data_.begin(columns_[unsigned_index(j)]); }
    Index last(Index j) const { return data_.begin(columns_[unsigned_index(j)] + 1); }
    Index end_of_panel(Index p) const { return std::min<Index>((p + 1) * panel_width, this->size()); }

    // How much the exponent of a value may err by rounding; 0 for dot products, which lose nothing.
    double error_of(T row_norm, T column_norm) const {
        if (evaluation_.form == simd::Form::dot) return 0.0;
        return static_cast<double>(std::numeric_limits<T>::epsilon()) * std::abs(evaluation_.scale) *
               (static_cast<double>(row_norm) + static_cast<double>(column_norm));
    }

    // Depends on the two rows alone and treats them alike, so that bits follow neither from the grouping nor the order.
    void take_differences(const simd::SparseTile<T>& tile, const SparseRows<T>& rows, Index first_row, Index p) const {
        for (Index r = 0; r < tile.n_rows; ++r) {
            T* out = tile.out + r * tile.ld - p * panel_width;
            for (Index j = p * panel_width; j < end_of_panel(p); ++j) {
                const double error = error_of(tile.row_norms[r], norms_[unsigned_index(j)]);
                if (error <= largest_error<T>) continue;
                if (error < 1.0 && static_cast<double>(out[j]) - evaluation_.offset < negligible) continue;
                const double distance = distance_by_differences(evaluation_.form, source_.data(),
                                                                rows.numbers[unsigned_index(first_row + r)], data_,
                                                                columns_[unsigned_index(j)]);
                out[j] = static_cast<T>(simd::value_of(evaluation_, distance));
            }
        }
    }

    void run_on_local_panel(simd::SparseTile<T> tile, const SparseRows<T>& chosen, Index first_row, Index p) const {
        auto spare = spares_.take();
        LocalPanel<T>& local = *spare;
        number_features(local, chosen, first_row, tile.n_rows, p);
        scatter(local, p);
        translate(local, chosen, first_row, tile.n_rows);
        tile.starts = local.starts.data();
        tile.lines = local.lines.data();
        tile.values = local.values.data();
        tile.panel = local.panel.data();
        run_tile(source_.table(), tile, evaluation_);
        for (const Size place : local.written) local.panel[unsigned_index(place)] = T(0);
        spares_.put_back(std::move(spare));
    }

    bool is_worth_keeping() const {
        const double bytes = static_cast<double>(this->n_panels() * panel_width) *
                             static_cast<double>(data_.columns()) * static_cast<double>(sizeof(T));
        const double entry_bytes = sizeof(T) + sizeof(std::int32_t);
        return bytes <= std::max(small_panels, small_growth * entry_bytes * static_cast<double>(n_entries_));
    }

    void keep_panels() {
        is_kept_ = true;
        kept_.assign(checked_product(this->n_panels() * panel_width, data_.columns()), T(0));
        for (Index j = 0; j < this->size(); ++j) {
            T* panel = kept_.data() + j / panel_width * panel_width * data_.columns() + j % panel_width;
            for (Index e = first(j); e < last(j); ++e) {
                panel[data_.column(e) * panel_width] = static_cast<T>(data_.value(e));
            }
        }
    }

    // Lines for the features of the rows, or of the columns: whichever are fewer. Terms outside are 0 either way.
    void number_features(LocalPanel<T>& local, const SparseRows<T>& rows, Index first_row, Index n_rows,
                         Index p) const {
        const Size begin = rows.starts[unsigned_index(first_row)],
                   end = rows.starts[unsigned_index(first_row + n_rows)];
        Index n_in_columns = 0;
        for (Index j = p * panel_width; j < end_of_panel(p); ++j) n_in_columns += last(j) - first(j);
        if (end - begin < n_in_columns) {
            local.numbers.reset(end - begin, data_.columns());
            for (Size e = begin; e < end; ++e) local.numbers.add(rows.features[unsigned_index(e)]);
            return;
        }
        local.numbers.reset(n_in_columns, data_.columns());
        for (Index j = p * panel_width; j < end_of_panel(p); ++j) {
            for (Index e = first(j); e < last(j); ++e) local.numbers.add(data_.column(e));
        }
    }

    void scatter(LocalPanel<T>& local, Index p) const {
        const std::size_t size = checked_product(std::max<Index>(local.numbers.count(), 1), panel_width);
        if (local.panel.size() < size) local.panel.resize(size, T(0));
        local.written.clear();
        for (Index j = p * panel_width; j < end_of_panel(p); ++j) {
            for (Index e = first(j); e < last(j); ++e) {
                const Index line = local.numbers.find(data_.column(e));
                if (line == FeatureNumbers::none) continue;
                local.written.push_back(line * panel_width + j % panel_width);
                local.panel[unsigned_index(line * panel_width + j % panel_width)] = static_cast<T>(data_.value(e));
            }
        }
    }

    void translate(LocalPanel<T>& local, const SparseRows<T>& rows, Index first_row, Index n_rows) const {
        local.starts.assign(1, 0);
        local.lines.clear();
        local.values.clear();
        for (Index r = first_row; r < first_row + n_rows; ++r) {
            for (Size e = rows.starts[unsigned_index(r)]; e < rows.starts[unsigned_index(r + 1)]; ++e) {
                const Index line = local.numbers.find(rows.features[unsigned_index(e)]);
                if (line == FeatureNumbers::none) continue;
                local.lines.push_back(line);
                local.values.push_back(rows.values[unsigned_index(e)]);
            }
            local.starts.push_back(static_cast<Size>(local.lines.size()));
        }
    }

    const SparseSource& source_;
    CsrView data_;
    simd::Evaluation evaluation_;
    std::vector<Index> columns_;
    AlignedVector<T> norms_;
    Index n_entries_ = 0;
    bool loses_digits_ = false;  // some value may have to be computed from differences
    bool is_kept_ = false;
    AlignedVector<T> kept_;  // panels over all features
    mutable Spares<LocalPanel<T>> spares_;
};

}  // namespace

void FeatureNumbers::reset(Index n_features, Index width) {
    for (const std::size_t place : taken_) numbers_[place] = none;
    taken_.clear();
    direct_ = width <= direct_width;
    // At most half of the places are taken, so that a search ends soon.
    const std::size_t wanted = direct_ ? unsigned_index(width) : std::bit_ceil(unsigned_index(2 * n_features + 1));
    mask_ = wanted - 1;
    if (numbers_.size() < wanted) numbers_.resize(wanted, none);
    if (!direct_ && features_.size() < wanted) features_.resize(wanted);
}

std::size_t FeatureNumbers::place_of(Index feature) const {
    if (direct_) return unsigned_index(feature);
    // Multiplicative hashing spreads neighbours: the upper half of the product depends on all bits.
    const std::uint64_t product = static_cast<std::uint64_t>(feature) * 0x9E3779B97F4A7C15u;
    std::size_t place = static_cast<std::size_t>(product >> 32) & mask_;
    while (numbers_[place] != none && features_[place] != feature) place = (place + 1) & mask_;
    return place;
}

void FeatureNumbers::add(Index feature) {
    const std::size_t place = place_of(feature);
    if (numbers_[place] != none) return;
    numbers_[place] = static_cast<std::int32_t>(taken_.size());
    if (!direct_) features_[place] = feature;
    taken_.push_back(place);
}

SparseSource::SparseSource(CsrView data, Kernel kernel, const simd::Table& table)
    : data_(data),
      kernel_(kernel),
      table_(table),
      norms_f32_(norms_of<float>(table, kernel.form, data)),
      norms_f64_(norms_of<double>(table, kernel.form, data)) {
    for (Index i = 0; i < data_.rows(); ++i) {
        const double square = squared_norm(i);
        longest_ = square <= longest_ ? longest_ : square;  // one that is not a number stays
    }
}

template <class T>
T SparseSource::largest_norm() const {
    T largest = 0;
    for (const T norm : norms<T>()) largest = std::max(largest, norm);
    return largest;
}

double SparseSource::squared_norm(Index i) const {
    double s = 0.0;
    for (Index e = data_.begin(i); e < data_.begin(i + 1); ++e) s += data_.value(e) * data_.value(e);
    return s;
}

double SparseSource::diagonal(Index i) const { return kernel_.diagonal(squared_norm(i)); }

double SparseSource::cost() const {
    constexpr double per_row = 4.0;  // reading where a row lies
    return per_row + static_cast<double>(data_.begin(size())) / static_cast<double>(std::max<Index>(size(), 1));
}

std::unique_ptr<KernelColumns<float>> SparseSource::columns_f32(std::span<const Index> columns) const {
    return std::make_unique<SparseColumns<float>>(*this, data_, columns, norms_f32_);
}

std::unique_ptr<KernelColumns<double>> SparseSource::columns_f64(std::span<const Index> columns) const {
    return std::make_unique<SparseColumns<double>>(*this, data_, columns, norms_f64_);
}

const CsrView& SparseSource::checked(const DataView& data) const {
    const CsrView* sparse = std::get_if<CsrView>(&data);
    if (sparse == nullptr) throw std::invalid_argument("sparse data need sparse points");
    if (sparse->columns() != data_.columns()) throw std::invalid_argument("the widths of the two data sets differ");
    return *sparse;
}

std::unique_ptr<KernelColumns<double>> SparseSource::foreign_columns(const DataView& data,
                                                                     std::span<const Index> columns) const {
    const CsrView& points = checked(data);
    const std::vector<double> norms = norms_of<double>(table_, kernel_.form, points);
    return std::make_unique<SparseColumns<double>>(*this, points, columns, norms);
}

std::unique_ptr<KernelColumns<float>> SparseSource::foreign_columns_f32(const DataView& data,
                                                                        std::span<const Index> columns) const {
    const CsrView& points = checked(data);
    const std::vector<float> norms = norms_of<float>(table_, kernel_.form, points);
    return std::make_unique<SparseColumns<float>>(*this, points, columns, norms);
}

}  // namespace multimargin
