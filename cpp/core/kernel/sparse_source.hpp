// Kernel values from sparse data: rows stay sparse, panels of 64 columns are made dense one at a time.
#pragma once

#include "kernel/kernel_source.hpp"

namespace multimargin {

class SparseSource final : public KernelSource {
  public:
    SparseSource(CsrView data, Kernel kernel, const simd::Table& table = simd::best_table());
    Index size() const override { return data_.rows(); }
    double diagonal(Index i) const override;
    double cost() const override;
    std::unique_ptr<KernelColumns<float>> columns_f32(std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<double>> columns_f64(std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<double>> foreign_columns(const DataView& data,
                                                           std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<float>> foreign_columns_f32(const DataView& data,
                                                              std::span<const Index> columns) const override;
    bool fits_float32() const override { return kernel_.fits_float32(longest_); }
    bool accurate_in_float32() const override { return false; }  // the form |x|^2 + |z|^2 - 2 x'z depends on the point

    const CsrView& data() const { return data_; }
    const Kernel& kernel() const { return kernel_; }
    const simd::Table& table() const { return table_; }
    // |x|^2 or |x|_1 of every row, as the kernel needs it, summed in T.
    template <class T>
    const std::vector<T>& norms() const {
        if constexpr (std::is_same_v<T, float>) {
            return norms_f32_;
        } else {
            return norms_f64_;
        }
    }
    template <class T>
    T largest_norm() const;

  private:
    double squared_norm(Index i) const;
    const CsrView& checked(const DataView& data) const;

    CsrView data_;
    Kernel kernel_;
    double longest_ = 0.0;  // the largest |x|^2
    const simd::Table& table_;
    std::vector<float> norms_f32_;
    std::vector<double> norms_f64_;
};

// Numbers features in the order in which they are added. Up to `direct_width` features there is a place for each;
// beyond that a hash table with open addressing, whose size follows the number of features that occur.
class FeatureNumbers {
  public:
    static constexpr Index none = -1;
    static constexpr Index direct_width = Index{1} << 20;

    // Forgets everything; makes room for so many features of data of this width.
    void reset(Index n_features, Index width);
    void add(Index feature);
    Index find(Index feature) const { return numbers_[place_of(feature)]; }  // its number, or none
    Index count() const { return static_cast<Index>(taken_.size()); }

  private:
    std::size_t place_of(Index feature) const;

    bool direct_ = true;
    std::size_t mask_ = 0;
    std::vector<std::int32_t> numbers_;
    std::vector<Index> features_;     // at each place, for the hash table
    std::vector<std::size_t> taken_;  // the places in use
};

}  // namespace multimargin
