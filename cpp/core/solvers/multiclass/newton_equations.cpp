// The linear equations of FaceNewton: by conjugate gradients, preconditioned by a factor where that is cheap.
#include <algorithm>

#include "solvers/multiclass/face_newton.hpp"

namespace multimargin {

namespace {

constexpr double residual_share = 1e-3;  // of the right-hand side that conjugate gradients leave
constexpr Index most_gradients = 500;    // their steps
constexpr double stiffness = 100.0;      // of the spring that holds a full sum, relative to the kernel's diagonal

double inner(const std::vector<double>& x, const std::vector<double>& y) {
    return simd::best_table().dot(x.data(), y.data(), static_cast<Index>(x.size()));
}

}  // namespace

// product <- the change of the scores by y, at all slots
void FaceNewton::apply(const std::vector<double>& y) {
    set_->spread(y.data(), changes_.data());
    set_->multiply(changes_.data(), nullptr, product_.data());
    monitor_.spend(set_->cost_of_product());
}

// x <- the change of the variables' gradients, less its sign
void FaceNewton::margins(const std::vector<double>& y, std::vector<double>& x) const {
    for (const VariableSet::Example& e : set_->examples()) {
        double sum = 0.0;
        if (e.ridge > 0.0) {
            for (Index v = e.begin; v < e.end; ++v) sum += y[unsigned_index(v)];
        }
        for (Index v = e.begin; v < e.end; ++v) {
            const double own = machine_.bound == Bound::simplex ? sum : y[unsigned_index(v)];
            x[unsigned_index(v)] = set_->margin_of(v, product_.data()) + e.ridge * own;
        }
    }
}

// direction solves (1 + sigma J H) direction = residual, J the projection on the face: outside of the face it is the
// residual, (1/sigma + J H J) x = J residual / sigma - J H (rest) inside.
void FaceNewton::newton_direction() {
    z_ = residual_;
    project(z_);
    for (std::size_t i = 0; i < z_.size(); ++i) direction_[i] = residual_[i] - z_[i];
    apply(direction_);
    margins(direction_, curvature_);
    project(curvature_);
    for (const VariableSet::Example& e : set_->examples()) {
        const double shift = 1.0 / (sigma_ * e.penalty);
        for (Index v = e.begin; v < e.end; ++v) {
            const std::size_t i = unsigned_index(v);
            shift_[i] = shift;
            rest_[i] = z_[i] * shift - curvature_[i];
        }
    }
    conjugate_gradients();
    for (std::size_t i = 0; i < z_.size(); ++i) direction_[i] += x_[i];
}

// The matrix of the free variables, factorized where that costs less than conjugate gradients did last time. A full sum
// is held by a stiff spring, which is near enough for a preconditioner.
bool FaceNewton::factorize() {
    face_.clear();
    place_.assign(free_.size(), -1);
    for (Index v = 0; v < set_->size(); ++v) {
        if (free_[unsigned_index(v)] == 0.0) continue;
        place_[unsigned_index(v)] = static_cast<Index>(face_.size());
        face_.push_back(v);
    }
    const double n = static_cast<double>(face_.size());
    const double cost = n * n * n / 24.0 + 4.0 * n * n;  // a matrix product, at four times the speed
    if (face_.empty() || cost > static_cast<double>(last_steps_) * set_->cost_of_product()) return false;
    const Index size = static_cast<Index>(face_.size());
    factor_.begin(size);
    for (Index k = 0; k < size; ++k)
        set_->hessian_column({face_.data() + k, unsigned_index(size - k)}, factor_.column_of_matrix(k) + k);
    const auto& examples = set_->examples();
    for (std::size_t j = 0; j < examples.size(); ++j) {
        const VariableSet::Example& e = examples[j];
        const bool simplex = machine_.bound == Bound::simplex;
        const double spring = simplex ? e.ridge + (full_[j] != 0 ? stiffness : 0.0) : 0.0;
        for (Index v = e.begin; v < e.end; ++v) {
            const Index k = place_[unsigned_index(v)];
            if (k < 0) continue;
            double* column = factor_.column_of_matrix(k);
            column[k] += shift_[unsigned_index(v)] + (simplex ? 0.0 : e.ridge);
            if (spring == 0.0) continue;
            for (Index w = v; w < e.end; ++w) {
                if (place_[unsigned_index(w)] >= 0) column[place_[unsigned_index(w)]] += spring;
            }
        }
    }
    monitor_.spend(cost);
    return factor_.factorize(1e-12, [this] { return monitor_.poll(); });
}

void FaceNewton::precondition(const std::vector<double>& r, std::vector<double>& z) {
    z = r;
    if (!factorized_) return;
    packed_.resize(face_.size());
    for (std::size_t k = 0; k < face_.size(); ++k) packed_[k] = r[unsigned_index(face_[k])];
    factor_.solve(packed_);
    monitor_.spend(static_cast<double>(face_.size() * face_.size()));
    for (std::size_t k = 0; k < face_.size(); ++k) z[unsigned_index(face_[k])] = packed_[k];
    project(z);
}

// x <- (1/sigma + J H J)^-1 rest
void FaceNewton::conjugate_gradients() {
    factorized_ = factorize();
    std::fill(x_.begin(), x_.end(), 0.0);
    const double start = inner(rest_, rest_);
    const double goal = residual_share * residual_share * start;
    precondition(rest_, preconditioned_);
    step_ = preconditioned_;
    double rz = inner(rest_, preconditioned_);
    const Index most = most_gradients;
    const Index taken = gradients_;
    for (Index k = 0; k < most && rz > 0.0; ++k) {
        if (monitor_.poll()) return;
        ++gradients_;
        set_->spread(step_.data(), changes_.data());
        set_->multiply(changes_.data(), wanted_.data(), product_.data());
        monitor_.spend(set_->cost_of_product());
        margins(step_, curvature_);
        project(curvature_);
        for (std::size_t i = 0; i < x_.size(); ++i) curvature_[i] += shift_[i] * step_[i];
        const double dHd = inner(step_, curvature_);
        if (!(dHd > 0.0)) break;
        const double length = rz / dHd;
        for (std::size_t i = 0; i < x_.size(); ++i) {
            x_[i] += length * step_[i];
            rest_[i] -= length * curvature_[i];
        }
        if (inner(rest_, rest_) <= goal) break;
        precondition(rest_, preconditioned_);
        const double next = inner(rest_, preconditioned_);
        const double beta = next / rz;
        rz = next;
        for (std::size_t i = 0; i < x_.size(); ++i) step_[i] = preconditioned_[i] + beta * step_[i];
    }
    if (!factorized_) last_steps_ = gradients_ - taken;
}

}  // namespace multimargin
