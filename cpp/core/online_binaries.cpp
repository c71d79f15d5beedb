#include "online_binaries.hpp"

#include <algorithm>

namespace multimargin {

OnlineBinaries::OnlineBinaries(const Kernel& kernel, Index n_features, OnlineScheme scheme, Index n_classes,
                               const OnlineOptions& options, std::uint64_t seed)
    : scheme_(scheme),
      n_classes_(n_classes),
      options_(options),
      kept_(kernel, n_features, static_cast<std::size_t>(options.cache_bytes)),
      table_(n_classes),
      rng_(seed) {
    make_machines();
}

OnlineBinaries::OnlineBinaries(const Kernel& kernel, const BinariesState& state, OnlineScheme scheme, Index n_classes,
                               const OnlineOptions& options)
    : scheme_(scheme),
      n_classes_(n_classes),
      options_(options),
      kept_(kernel, state.kept, static_cast<std::size_t>(options.cache_bytes)),
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
            for (const Part& part : parts_of(kept_.label(slot))) y = part.machine == m ? part.y : y;
            if (y == 0.0) throw std::invalid_argument("a member has a class that its machine does not know");
            members.push_back({slot, state.beta[next], state.errors[next], y > 0 ? 0.0 : -cap, y > 0 ? cap : 0.0});
            ++uses_[unsigned_index(slot)];
        }
        machines_[unsigned_index(m)].restore(members, world());
    }
}

void OnlineBinaries::make_machines() {
    if (n_classes_ < 2) throw std::invalid_argument("a classifier needs two classes");
    if (scheme_ == OnlineScheme::ova) {
        for (Index c = 0; c < n_classes_; ++c) machines_.emplace_back(c, c, false);
    } else {
        for (Index i = 0; i < n_classes_; ++i) {
            for (Index j = i + 1; j < n_classes_; ++j) machines_.emplace_back(j, i, true);
        }
    }
    scores_.resize(machines_.size());
    parts_.resize(unsigned_index(n_classes_));
    for (Index label = 0; label < n_classes_; ++label) {
        std::vector<Part>& parts = parts_[unsigned_index(label)];
        for (Index c = 0; c < n_classes_; ++c) {
            if (scheme_ == OnlineScheme::ova) {
                parts.push_back({c, c == label ? 1.0 : -1.0});
            } else if (c != label) {
                parts.push_back({pair_index(label, c), label < c ? 1.0 : -1.0});
            }
        }
    }
}

Index OnlineBinaries::pair_index(Index i, Index j) const {
    const Index first = std::min(i, j), second = std::max(i, j);
    return first * (2 * n_classes_ - first - 1) / 2 + second - first - 1;
}

OnlineBinary::World OnlineBinaries::world() { return {kept_, table_, options_, rng_, left_}; }

// The machines' scores of a point, without an exact bias, from its kernel values with all slots.
void OnlineBinaries::scores_at(std::span<const double> row) {
    for (std::size_t m = 0; m < machines_.size(); ++m) scores_[m] = machines_[m].score(row);
}

// The class that the scores speak for: the largest, most votes, or the end of the path through the DAG.
Index OnlineBinaries::decide() {
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

// A slot for an example that a machine wants.
Index OnlineBinaries::insert(const double* x, Index label, double cap, Index id) {
    const Index slot = kept_.insert(x, label, cap, id);
    table_.resize(kept_.n_slots());
    std::fill_n(table_.line(slot), table_.ld(), 0.0);
    uses_.resize(unsigned_index(kept_.n_slots()), 0);
    uses_[unsigned_index(slot)] = 0;
    return slot;
}

// Machines know nothing of each other, so that each takes all its steps while it is in the cache.
Index OnlineBinaries::add(const double* x, Index label, double cap, Index id) {
    if (label < 0 || label >= n_classes_) throw std::invalid_argument("a class is not known");
    if (!(cap > 0.0)) throw std::invalid_argument("an example needs a bound above 0");
    scores_at(kept_.point_row(x));
    const Index predicted = decide();
    Index slot = kept_.find(id);
    for (const Part& part : parts_of(label)) {
        OnlineBinary& binary = machines_[unsigned_index(part.machine)];
        const double error = part.y - scores_[unsigned_index(part.machine)];
        if (!(slot >= 0 && binary.has(slot)) && binary.wants(part.y, error, options_)) {
            if (slot < 0) slot = insert(x, label, cap, id);
            ++uses_[unsigned_index(slot)];
            binary.process(slot, part.y, error, world());
        }
        for (Index step = 0; step < options_.reprocess && binary.reprocess(world()); ++step) {
        }
    }
    settle();
    keep_to_budget();
    return predicted;
}

// Examples that no machine has any more leave their slots.
void OnlineBinaries::settle() {
    for (const Index slot : left_) {
        if (--uses_[unsigned_index(slot)] == 0) kept_.release(slot);
    }
    left_.clear();
}

bool OnlineBinaries::forget(Index id) {
    const Index slot = kept_.find(id);
    if (slot < 0) return false;
    for (const Part& part : parts_of(kept_.label(slot))) machines_[unsigned_index(part.machine)].expel(slot, world());
    settle();
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
    settle();
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
