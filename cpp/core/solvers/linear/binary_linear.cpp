#include "solvers/linear/binary_linear.hpp"

#include <cmath>
#include <mutex>

#include "base/memory.hpp"
#include "base/thread_team.hpp"
#include "solvers/linear/binary_newton.hpp"

namespace multimargin {

namespace {

// What a visit costs beside its multiply-adds, in units of them.
constexpr double visit_cost = 8.0;
// With fewer multiply-adds in one pass over all problems, a second thread takes longer to start than it helps.
constexpr double cost_worth_threads = 2e5;

// One problem; all that a visit needs of an example lies side by side.
template <class Rows>
class BinaryLinear {
  public:
    BinaryLinear(const Rows& rows, Index n_features, const std::vector<double>& norms, LinearBinaryTask& task,
                 Loss loss, double offset)
        : rows_(rows), root_(std::sqrt(offset)), task_(task), weights_(unsigned_index(n_features), 0.0) {
        examples_.reserve(task.rows.size());
        for (std::size_t e = 0; e < task.rows.size(); ++e) {
            const double C = task.C[e], k = norms[unsigned_index(task.rows[e])] + offset;
            Example x{rows.row(task.rows[e]), 0.0, C, 0.0, 0.0, static_cast<Index>(e) < task.n_positive ? 1.0 : -1.0};
            if (loss == Loss::squared_hinge) {
                x.cap = infinity;
                x.ridge = 0.5 / C;
            }
            x.inverse = 1.0 / std::max(k + x.ridge, curvature_floor);
            const double negligible = C < infinity ? bound_tolerance * C : 0.0;
            if (task.variables[e] > negligible) x.variable = std::min(task.variables[e], x.cap);
            examples_.push_back(x);
        }
        refresh();
    }

    LinearReport run(const LinearOptions& options, Monitor& monitor, const LinearPasses<BinaryLinear>*& seen) {
        LinearPasses<BinaryLinear> passes(*this, static_cast<Index>(examples_.size()), options, monitor);
        seen = &passes;
        LinearReport report;
        const double began = monitor.seconds();
        report.stop_reason = passes.run(n_support() > 0);
        report.iterations = passes.iterations();
        report.passes = passes.passes();
        report.seconds = monitor.seconds() - began;
        report.violation = passes.full_violation();
        report.verified = passes.verified();
        report.cost = cost_;
        report.dual = dual();
        report.n_support = n_support();
        seen = nullptr;
        return report;
    }

    void hand_over() {
        for (std::size_t e = 0; e < examples_.size(); ++e) task_.variables[e] = examples_[e].variable;
        task_.weights.assign(weights_.begin(), weights_.end());
        if (root_ > 0.0) task_.weights.push_back(constant_);
    }

    static constexpr double passed_over = 0.0;  // a step costs no more than its gradient

    Visit visit(Index e, double step_above) {
        Example& x = examples_[unsigned_index(e)];
        const double length = static_cast<double>(rows_.length(x.row));
        cost_ += length + visit_cost;
        const double g = 1.0 - x.sign * (rows_.dot(x.row, weights_.data()) + root_ * constant_) - x.ridge * x.variable;
        Visit visit;
        visit.rests = (x.variable == 0.0 && g < 0.0) || (x.variable >= x.cap && g > 0.0);
        if (visit.rests) return visit;
        visit.violation = std::abs(g);
        if (!(std::abs(g) > step_above)) return visit;
        const double moved = std::min(std::max(x.variable + g * x.inverse, 0.0), x.cap);
        const double change = (moved - x.variable) * x.sign;
        if (change == 0.0) return visit;
        x.variable = moved;
        add(x, change);
        cost_ += length;
        visit.stepped = true;
        return visit;
    }
    double cost() const { return cost_; }
    void fetch_example(Index e) const { prefetch(&examples_[unsigned_index(e)]); }
    void fetch_row(Index e) const { rows_.fetch(examples_[unsigned_index(e)].row); }

    // A step rounds every weight it touches, with either sign.
    double drift(Index n_steps) const { return 1e-16 * std::sqrt(static_cast<double>(n_steps)) * longest() * norm(); }

    void refresh() {
        std::fill(weights_.begin(), weights_.end(), 0.0);
        constant_ = 0.0;
        for (const Example& x : examples_) {
            if (x.variable == 0.0) continue;
            add(x, x.sign * x.variable);
            cost_ += static_cast<double>(rows_.length(x.row));
        }
    }

    // An amount is as exact as its last digit, and scores are sums of rounded products.
    double rounding() const {
        double largest = 0.0;
        for (const Example& x : examples_) largest = std::max(largest, x.variable / x.inverse);
        return 1e-14 * (largest + longest() * norm());
    }

    double dual() const {
        double value = -0.5 * norm() * norm();
        for (const Example& x : examples_) value += x.variable - 0.5 * x.ridge * x.variable * x.variable;
        return value;
    }

    Index n_support() const {
        return std::count_if(examples_.begin(), examples_.end(), [](const Example& x) { return x.variable > 0.0; });
    }

  private:
    struct Example {
        typename Rows::Row row;
        double variable, cap, ridge;
        double inverse;  // of the curvature
        double sign;     // y
    };

    void add(const Example& x, double change) {
        rows_.add(change, x.row, weights_.data());
        constant_ += change * root_;
    }

    double longest() const {
        double least = infinity;
        for (const Example& x : examples_) least = std::min(least, x.inverse);
        return std::sqrt(1.0 / least);
    }

    double norm() const {
        const double square =
            simd::best_table().dot(weights_.data(), weights_.data(), static_cast<Index>(weights_.size()));
        return std::sqrt(square + constant_ * constant_);
    }

    const Rows rows_;
    double root_;  // of the offset
    LinearBinaryTask& task_;
    AlignedVector<double> weights_;
    double constant_ = 0.0;  // the weight of the offset's feature
    std::vector<Example> examples_;
    double cost_ = 0.0;
};

void check(const DataView& data, const LinearBinaryTask& task) {
    const bool sizes = task.rows.size() == task.C.size() && task.variables.size() == task.rows.size() &&
                       task.n_positive >= 0 && task.n_positive <= static_cast<Index>(task.rows.size());
    if (!sizes) throw std::invalid_argument("rows, bounds and start must have the same length");
    for (std::size_t e = 0; e < task.rows.size(); ++e) {
        const bool exists = task.rows[e] >= 0 && task.rows[e] < row_count(data);
        if (!exists) throw std::invalid_argument("a row does not exist in the data");
        if (!(task.C[e] > 0.0)) throw std::invalid_argument("every bound C must be positive");
    }
}

class LinearBatch {
  public:
    LinearBatch(const DataView& data, std::deque<LinearBinaryTask>& tasks, const LinearSetting& setting,
                const LinearOptions& options, Watcher* watcher)
        : data_(data), tasks_(tasks), setting_(setting), options_(options), monitor_(watcher, options.max_time) {
        const bool number = setting.offset >= 0.0 && setting.offset < infinity;
        if (!number) throw std::invalid_argument("the offset must be a number >= 0");
        for (LinearBinaryTask& task : tasks) {
            if (task.variables.empty()) task.variables.assign(task.rows.size(), 0.0);
            check(data, task);
        }
    }

    StopReason by_descent() {
        if (setting_.exact_bias) throw std::invalid_argument("coordinate steps know no exact bias");
        norms_ = squared_norms(data_, all_rows());
        with_rows(data_, [&](const auto& rows) { run([&](Index t, ThreadTeam&) { descend(rows, t); }); });
        return reason();
    }

    StopReason by_newton() {
        run([&](Index t, ThreadTeam& team) { newton(t, team); });
        return reason();
    }

  private:
    StopReason reason() const { return monitor_.stopped() ? monitor_.reason() : StopReason::converged; }

    std::vector<Index> all_rows() const {
        std::vector<Index> all;
        for (const LinearBinaryTask& task : tasks_) all.insert(all.end(), task.rows.begin(), task.rows.end());
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    // Tasks over the threads, or the threads to the only task.
    void run(const std::function<void(Index, ThreadTeam&)>& solve) {
        std::vector<Index> order(tasks_.size());
        std::iota(order.begin(), order.end(), Index{0});
        const auto size = [this](Index t) { return tasks_[unsigned_index(t)].rows.size(); };
        std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return size(a) > size(b); });
        std::size_t n_examples = 0;
        for (const LinearBinaryTask& task : tasks_) n_examples += task.rows.size();
        const double work = static_cast<double>(n_examples) * static_cast<double>(column_count(data_));
        ThreadTeam team(work < cost_worth_threads ? 1 : options_.n_threads);
        if (order.size() == 1) return solve(0, team);
        team.run(
            static_cast<Index>(order.size()),
            [&](Index i) {
                ThreadTeam alone(1);
                solve(order[unsigned_index(i)], alone);
            },
            [this] { monitor_.poll(); });
    }

    template <class Rows>
    void descend(const Rows& rows, Index t) {
        LinearBinaryTask& task = tasks_[unsigned_index(t)];
        BinaryLinear<Rows> steps(rows, column_count(data_), norms_, task, setting_.loss, setting_.offset);
        const LinearPasses<BinaryLinear<Rows>>* passes = nullptr;
        // Only the thread that made the monitor polls it; its own work is counted as it proceeds.
        tell([this, &passes] {
            Progress moment = summed();
            if (passes == nullptr) return moment;
            moment.iteration += passes->iterations();
            moment.violation = passes->violation();
            moment.n_active = passes->active();
            return moment;
        });
        task.report = steps.run(options_, monitor_, passes);
        steps.hand_over();
        close(task);
    }

    void newton(Index t, ThreadTeam& team) {
        LinearBinaryTask& task = tasks_[unsigned_index(t)];
        const double began = monitor_.seconds();
        std::vector<double> signs(task.rows.size(), -1.0);
        std::fill_n(signs.begin(), task.n_positive, 1.0);
        const double constant = setting_.exact_bias ? 1.0 : std::sqrt(setting_.offset);
        const NewtonProblem problem{LinearExamples(data_, task.rows, std::move(signs), constant, team), task.C,
                                    setting_.loss, setting_.exact_bias};
        make_feasible(task);
        BinaryNewton method(problem, {task.variables, task.start.bias, task.start.weights}, monitor_);
        tell([this, &method] {
            Progress moment = summed();
            moment.iteration += method.n_steps();
            moment.violation = method.violation();
            return moment;
        });
        task.report.stop_reason = method.run(options_.tol, options_.max_passes, task.start.width);
        task.report.passes = task.report.iterations = method.n_steps();
        task.report.violation = method.violation();
        task.report.dual = method.dual();
        task.report.width = method.width();
        task.report.seconds = monitor_.seconds() - began;
        task.variables = method.variables();
        task.weights = method.weights();
        task.report.n_support =
            std::count_if(task.variables.begin(), task.variables.end(), [](double a) { return a > 0.0; });
        close(task);
    }

    void make_feasible(LinearBinaryTask& task) const {
        for (std::size_t e = 0; e < task.rows.size(); ++e) {
            const double cap = setting_.loss == Loss::hinge ? task.C[e] : infinity;
            task.variables[e] = std::min(std::max(task.variables[e], 0.0), cap);
        }
    }

    void tell(std::function<Progress()> describe) {
        if (std::this_thread::get_id() == caller_) monitor_.describe(std::move(describe));
    }

    void close(LinearBinaryTask& task) {
        tell([this] { return summed(); });
        const std::lock_guard lock(mutex_);
        task.finished = true;
        done_.iteration += task.report.iterations;
        done_.dual += task.report.dual;
        done_.violation = std::max(done_.violation < infinity ? done_.violation : 0.0, task.report.violation);
        done_.n_support += task.report.n_support;
    }

    Progress summed() {
        const std::lock_guard lock(mutex_);
        return done_;
    }

    const DataView& data_;
    std::deque<LinearBinaryTask>& tasks_;
    LinearSetting setting_;
    const LinearOptions& options_;
    Monitor monitor_;
    std::vector<double> norms_;
    std::mutex mutex_;
    Progress done_;
    std::thread::id caller_ = std::this_thread::get_id();
};

}  // namespace

StopReason solve_linear_binary(const DataView& data, std::deque<LinearBinaryTask>& tasks, const LinearSetting& setting,
                               const LinearOptions& options, Watcher* watcher) {
    return LinearBatch(data, tasks, setting, options, watcher).by_descent();
}

StopReason solve_newton_binary(const DataView& data, std::deque<LinearBinaryTask>& tasks, const LinearSetting& setting,
                               const LinearOptions& options, Watcher* watcher) {
    return LinearBatch(data, tasks, setting, options, watcher).by_newton();
}

}  // namespace multimargin
