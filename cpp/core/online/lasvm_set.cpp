#include "online/lasvm_set.hpp"

#include <algorithm>
#include <numeric>

namespace multimargin {

namespace {

// Threads are used from about ten microseconds of work; so many panels or scores are one task.
constexpr Index least_shared_work = 65'536, panels_together = 16, machines_together = 16;
// What a new example costs beside its kernel values: each pair of its class scans its places so many times.
constexpr Index visits_of_step = 16;
// An evaluation of a kernel function beside the sum over the features.
constexpr Index work_of_function = 8;

// REPROCESS is made a few times more while the two worst errors are farther apart than this, twice as far as the
// margins of the two classes are: whatever the bias, an example is on the wrong side by more than its margin. That is
// rare, except where C is large and the classes are separable; there one step for each example leaves much undone.
constexpr Index more_steps = 3;
constexpr double far_apart = 4.0;

std::shared_ptr<MemberRows> make_rows(std::vector<Index> labels, double cache_bytes) {
    return std::make_shared<MemberRows>(std::move(labels), static_cast<std::size_t>(cache_bytes));
}

}  // namespace

OnlineBinaries::OnlineBinaries(const Kernel& kernel, Index n_features, OnlineScheme scheme, Index n_classes,
                               const OnlineOptions& options, std::uint64_t seed)
    : scheme_(scheme),
      n_classes_(n_classes),
      options_(options),
      kept_(kernel, n_features),
      table_(n_classes),
      rng_(seed) {
    make_machines();
}

OnlineBinaries::OnlineBinaries(const Kernel& kernel, const BinariesState& state, OnlineScheme scheme, Index n_classes,
                               const OnlineOptions& options)
    : scheme_(scheme),
      n_classes_(n_classes),
      options_(options),
      kept_(kernel, state.kept),
      table_(n_classes),
      rng_(state.random) {
    make_machines();
    if (state.counts.size() != machines_.size() || state.beta.size() != state.slots.size() ||
        state.errors.size() != state.slots.size()) {
        throw std::invalid_argument("a state needs the members of each machine");
    }
    table_.resize(kept_.n_slots());
    uses_.resize(unsigned_index(kept_.n_slots()), 0);
    std::size_t next = 0;
    for (Index m = 0; m < n_machines(); ++m) {
        std::vector<OnlineBinary::Member> members;
        for (Index k = 0; k < state.counts[unsigned_index(m)]; ++k, ++next) {
            if (next >= state.slots.size()) throw std::invalid_argument("a state names more members than it has");
            const Index slot = state.slots[next];
            if (slot < 0 || slot >= kept_.n_slots() || !kept_.is_used(slot)) {
                throw std::invalid_argument("a member of a machine is not kept");
            }
            const double cap = kept_.cap(slot);
            double y = 0.0;
            for (const Group& group : groups_of(kept_.label(slot))) {
                for (const Part& part : group) y = part.machine == m ? part.y : y;
            }
            if (y == 0.0) throw std::invalid_argument("a member has a class that its machine does not know");
            members.push_back({slot, state.beta[next], state.errors[next], y > 0 ? 0.0 : -cap, y > 0 ? cap : 0.0});
            ++uses_[unsigned_index(slot)];
        }
        machines_[unsigned_index(m)].restore(members, world());
    }
}

// Each pair has kernel rows of its own, so that pairs can work at the same time. Machines of all classes ask for the
// same rows and share them.
void OnlineBinaries::make_machines() {
    if (n_classes_ < 2) throw std::invalid_argument("a classifier needs two classes");
    groups_.resize(unsigned_index(n_classes_));
    const double bytes = options_.cache_bytes;
    if (scheme_ == OnlineScheme::ova) {
        std::vector<Index> all(unsigned_index(n_classes_));
        std::iota(all.begin(), all.end(), 0);
        const std::shared_ptr<MemberRows> rows = make_rows(all, bytes);
        for (Index c = 0; c < n_classes_; ++c) machines_.emplace_back(OnlineBinary::Part{c, c, c}, rows);
        for (Index label = 0; label < n_classes_; ++label) {
            groups_of(label).resize(1);
            for (Index c = 0; c < n_classes_; ++c) groups_of(label)[0].push_back({c, c == label ? 1.0 : -1.0});
        }
    } else {
        const double n_pairs = static_cast<double>(n_classes_ * (n_classes_ - 1) / 2);
        for (Index i = 0; i < n_classes_; ++i) {
            for (Index j = i + 1; j < n_classes_; ++j) {
                machines_.emplace_back(OnlineBinary::Part{i, j, i}, make_rows({i, j}, bytes / n_pairs));
            }
        }
        for (Index label = 0; label < n_classes_; ++label) {
            for (Index c = 0; c < n_classes_; ++c) {
                if (c != label) groups_of(label).push_back({{pair_index(label, c), label < c ? 1.0 : -1.0}});
            }
        }
    }
    scores_.resize(machines_.size());
}

Index OnlineBinaries::pair_index(Index i, Index j) const {
    const Index first = std::min(i, j), second = std::max(i, j);
    return first * (2 * n_classes_ - first - 1) / 2 + second - first - 1;
}

// Tasks one after the other, or on threads where these are worth waking: about `work` numbers are read in all.
template <class Task>
void OnlineBinaries::run(Index n_tasks, Index work, const Task& task) {
    if (team_ != nullptr && work >= least_shared_work) return team_->run(n_tasks, task);
    for (Index i = 0; i < n_tasks; ++i) task(i);
}

// The kernel values of a point with all slots.
void OnlineBinaries::evaluate_kernel(const double* x) {
    const Index n_panels = kept_.n_panels(), work = kept_.n_slots() * (kept_.n_features() + work_of_function);
    run((n_panels + panels_together - 1) / panels_together, work, [&](Index task) {
        const Index first = task * panels_together;
        kept_.evaluate_point(x, first, std::min(n_panels, first + panels_together));
    });
}

// The scores of that point, without an exact bias, in the machines that have a part for a class.
void OnlineBinaries::score_for(Index label) {
    for (const Group& group : groups_of(label)) {
        for (const Part& part : group) scores_[unsigned_index(part.machine)] = machine_of(part).score(kept_.point());
    }
}

void OnlineBinaries::score_all() {
    const Index n = n_machines(), n_together = machines_together;
    run((n + n_together - 1) / n_together, kept_.n_slots() * n_classes_, [&](Index task) {
        for (Index m = task * n_together; m < std::min(n, (task + 1) * n_together); ++m) {
            scores_[unsigned_index(m)] = machine(m).score(kept_.point());
        }
    });
}

// Whether a class wins all its pairs. Votes and the DAG then choose it, whatever the other pairs predict.
bool OnlineBinaries::wins_all(Index label) const {
    const std::vector<Group>& groups = groups_[unsigned_index(label)];
    return scheme_ != OnlineScheme::ova && std::all_of(groups.begin(), groups.end(), [&](const Group& group) {
               const Part& part = group.front();
               const bool first = scores_[unsigned_index(part.machine)] + bias(part.machine) > 0.0;
               return first == (part.y > 0.0);
           });
}

// The class that the scores speak for: the largest, most votes, or the end of the path through the DAG. Those for the
// label are known; they decide most cases.
Index OnlineBinaries::decide(Index label) {
    if (wins_all(label)) return label;
    if (scheme_ != OnlineScheme::ova) score_all();
    const auto score = [&](Index m) { return scores_[unsigned_index(m)] + bias(m); };
    if (scheme_ == OnlineScheme::dag) {
        Index first = 0, last = n_classes_ - 1;
        while (first < last) score(pair_index(first, last)) > 0.0 ? --last : ++first;
        return first;
    }
    merits_.assign(unsigned_index(n_classes_), 0.0);
    if (scheme_ == OnlineScheme::ova) {
        for (Index c = 0; c < n_classes_; ++c) merits_[unsigned_index(c)] = score(c);
    } else {
        Index m = 0;
        for (Index i = 0; i < n_classes_; ++i) {
            for (Index j = i + 1; j < n_classes_; ++j) merits_[unsigned_index(score(m++) > 0.0 ? i : j)] += 1.0;
        }
    }
    return std::max_element(merits_.begin(), merits_.end()) - merits_.begin();
}

// A slot for an example that a machine keeps.
Index OnlineBinaries::insert(const double* x, Index label, double cap, Index id) {
    const Index slot = kept_.insert(x, label, cap, id);
    table_.resize(kept_.n_slots());
    std::fill_n(table_.line(slot), table_.ld(), 0.0);
    uses_.resize(unsigned_index(kept_.n_slots()), 0);
    uses_[unsigned_index(slot)] = 0;
    return slot;
}

// Whether any machine without the example would keep it.
bool OnlineBinaries::mark_wanted(std::vector<Group>& groups, Index slot) {
    bool any = false;
    for (Group& group : groups) {
        for (Part& part : group) {
            const OnlineBinary& binary = machine_of(part);
            const double error = part.y - scores_[unsigned_index(part.machine)];
            part.wanted = !(slot >= 0 && binary.has(slot)) && binary.wants(part.y, error, options_);
            any = any || part.wanted;
        }
    }
    return any;
}

void OnlineBinaries::learn(Group& group, Index slot, Index newest) {
    OnlineBinary::World here = world();
    here.newest = newest;
    for (const Part& part : group) {
        OnlineBinary& binary = machine_of(part);
        if (part.wanted) binary.process(slot, part.y, part.y - scores_[unsigned_index(part.machine)], here);
        const Index most = options_.reprocess > 0 ? options_.reprocess + more_steps : 0;
        for (Index step = 0; step < most; ++step) {
            if (step >= options_.reprocess && binary.violation(options_.exact_bias) <= far_apart) break;
            if (!binary.reprocess(here)) break;
        }
    }
}

// Machines are independent, so that each takes all its steps while it is in the cache, on any thread.
Index OnlineBinaries::add(const double* x, Index label, double cap, Index id) {
    if (label < 0 || label >= n_classes_) throw std::invalid_argument("a class is not known");
    if (!(cap > 0.0)) throw std::invalid_argument("an example needs a bound above 0");
    evaluate_kernel(x);
    score_for(label);
    const Index predicted = decide(label);
    std::vector<Group>& groups = groups_of(label);
    Index slot = kept_.find(id), newest = -1;
    if (mark_wanted(groups, slot)) {
        if (slot < 0) slot = newest = insert(x, label, cap, id);
        for (const Group& group : groups) {
            for (const Part& part : group) uses_[unsigned_index(slot)] += part.wanted;
        }
    }
    // By chance all draw from one source, in their order.
    const Index work = options_.selection == Selection::random ? 0 : visits_of_step * kept_.n_slots();
    run(static_cast<Index>(groups.size()), work, [&](Index g) { learn(groups[unsigned_index(g)], slot, newest); });
    for (const Group& group : groups) settle(group);
    keep_to_budget();
    return predicted;
}

// Examples that no machine has any more leave their slots.
void OnlineBinaries::settle(const Group& group) {
    for (const Part& part : group) {
        for (const Index slot : machine_of(part).left()) {
            if (--uses_[unsigned_index(slot)] > 0) continue;
            for (const Group& other : groups_of(kept_.label(slot))) machine_of(other.front()).rows().forget(slot);
            kept_.release(slot);
        }
        machine_of(part).clear_left();
    }
}

bool OnlineBinaries::forget(Index id) {
    const Index slot = kept_.find(id);
    if (slot < 0) return false;
    const Index label = kept_.label(slot);
    for (const Group& group : groups_of(label)) {
        for (const Part& part : group) machine_of(part).expel(slot, world());
    }
    for (const Group& group : groups_of(label)) settle(group);
    return true;
}

// |beta|^2 k(x, x): how far the weights move when the example goes.
double OnlineBinaries::weight_of(Index slot) const {
    double square = 0.0;
    for (Index c = 0; c < n_classes_; ++c) square += table_.at(slot, c) * table_.at(slot, c);
    return square * kept_.diagonal(slot);
}

void OnlineBinaries::keep_to_budget() {
    while (options_.budget >= 0 && kept_.size() > options_.budget) {
        Index least = -1;
        double lightest = infinity;
        for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
            if (!kept_.is_used(slot) || (least >= 0 && !(weight_of(slot) < lightest))) continue;
            lightest = weight_of(slot);
            least = slot;
        }
        forget(kept_.id(least));
    }
}

bool OnlineBinaries::improve() {
    bool any = false;
    for (OnlineBinary& binary : machines_) any = binary.reprocess(world()) || any;
    for (const auto& groups : groups_) {
        for (const Group& group : groups) settle(group);
    }
    return any;
}

Index OnlineBinaries::n_steps() const {
    Index n = 0;
    for (const OnlineBinary& binary : machines_) n += binary.n_steps();
    return n;
}

Index OnlineBinaries::n_support() const {
    Index n = 0;
    for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
        const double* line = table_.line(slot);
        n += kept_.is_used(slot) && std::any_of(line, line + n_classes_, [](double b) { return b != 0.0; });
    }
    return n;
}

double OnlineBinaries::dual() {
    double sum = 0.0;
    for (const OnlineBinary& binary : machines_) sum += binary.dual();
    return sum;
}

double OnlineBinaries::violation() {
    double largest = 0.0;
    for (const OnlineBinary& binary : machines_) largest = std::max(largest, binary.violation(options_.exact_bias));
    return largest;
}

BinariesState OnlineBinaries::state() const {
    BinariesState state;
    state.kept = kept_.state();
    for (const OnlineBinary& binary : machines_) {
        state.counts.push_back(binary.size());
        for (const OnlineBinary::Member& m : binary.members()) {
            state.slots.push_back(m.slot);
            state.beta.push_back(m.beta);
            state.errors.push_back(m.error);
        }
    }
    state.random = rng_.state();
    return state;
}

}  // namespace multimargin
