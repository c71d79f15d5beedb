#include "solvers/binary/path_scores.hpp"

#include <algorithm>

#include "base/memory.hpp"
#include "kernel/score_pass.hpp"

namespace multimargin {

namespace {

// The lines of a share's members that differ from the line before; which of them is line (member, cost).
struct Lines {
    std::vector<const double*> values;
    std::vector<double> signs;
    std::vector<std::size_t> line_of;  // members x costs
};

Lines different_lines(const PathShare& share) {
    Lines lines;
    const Index n = static_cast<Index>(share.rows.size());
    for (const PathMember& member : share.members) {
        for (Index k = 0; k < share.n_costs; ++k) {
            const double* line = member.variables + k * member.stride + member.first;
            if (k == 0 || !std::equal(line, line + n, line - member.stride)) {
                lines.values.push_back(line);
                lines.signs.push_back(member.sign);
            }
            lines.line_of.push_back(lines.values.size() - 1);
        }
    }
    return lines;
}

void count_support(PathShare& share) {
    share.n_support.assign(unsigned_index(share.n_costs), 0);
    for (Index k = 0; k < share.n_costs; ++k) {
        for (std::size_t i = 0; i < share.rows.size(); ++i) {
            share.n_support[unsigned_index(k)] +=
                std::any_of(share.members.begin(), share.members.end(), [&](const PathMember& member) {
                    return member.variables[k * member.stride + member.first + static_cast<Index>(i)] != 0.0;
                });
        }
    }
}

// Some rows of a source with all columns, in memory, each row in one piece.
class BlockColumns final : public KernelColumns<double> {
  public:
    // What the values take, up to which the detour is short of the memory that is far from the processor.
    static constexpr double most_bytes = 4e6;
    static double bytes(const PathShare& share) {
        return 8.0 * static_cast<double>(share.rows.size()) * static_cast<double>(share.columns.size());
    }

    BlockColumns(const KernelColumns<double>& of, std::span<const Index> rows)
        : KernelColumns<double>(of.size()), ld_(of.n_panels() * simd::panel_width) {
        values_.reserve(checked_product(ld_, static_cast<Index>(rows.size())));
        of.fill(rows, values_.data(), ld_);
    }

    // The rows of the block, in their order.
    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        return std::make_unique<BlockRows>(static_cast<Index>(rows.size()));
    }

    void fill_panel(const KernelRows&, Index first_row, Index n_rows, Index panel, double* out,
                    Index ld) const override {
        for (Index r = 0; r < n_rows; ++r) std::copy_n(place(first_row + r, panel), simd::panel_width, out + r * ld);
    }

    void panel_rows(const KernelRows&, Index first_row, Index n_rows, Index panel, double*,
                    const double** values) const override {
        for (Index r = 0; r < n_rows; ++r) values[r] = place(first_row + r, panel);
    }

  private:
    struct BlockRows final : KernelRows {
        explicit BlockRows(Index size) : KernelRows(size) {}
    };
    const double* place(Index row, Index panel) const { return values_.data() + row * ld_ + panel * simd::panel_width; }

    RawArray<double> values_;
    Index ld_;
};

void sum_share(const KernelSource& source, PathShare& share, Monitor& monitor) {
    if (monitor.poll()) return;
    count_support(share);
    const Lines lines = different_lines(share);
    Coefficients coefficients(share.rows, static_cast<Index>(lines.values.size()));
    for (std::size_t c = 0; c < lines.values.size(); ++c) {
        for (std::size_t i = 0; i < share.rows.size(); ++i) {
            const double value = lines.values[c][i];
            if (value != 0.0) coefficients.add(static_cast<Index>(c), static_cast<Index>(i), lines.signs[c] * value);
        }
    }
    std::unique_ptr<KernelColumns<double>> columns = source.columns<double>(share.columns);
    // A row in one piece: panel by panel every page of the matrix would be visited many times.
    if (BlockColumns::bytes(share) <= BlockColumns::most_bytes) {
        columns = std::make_unique<BlockColumns>(*columns, share.rows);
    }
    const Index ld = columns->n_panels() * simd::panel_width;
    AlignedVector<double> found(checked_product(ld, coefficients.n_scores()), 0.0);
    ThreadTeam alone(1);
    if (!add_scores(*columns, coefficients, found.data(), ld, alone, &monitor)) return;
    share.sums.resize(lines.line_of.size() * share.columns.size());
    double* out = share.sums.data();
    for (const std::size_t line : lines.line_of) {
        out = std::copy_n(found.data() + line * unsigned_index(ld), share.columns.size(), out);
    }
}

// The winners among n points that follow one another; `counts` has a line of n for each class.
void vote_at(const PathVotes& votes, Index cost, Index first, Index n, std::vector<double>& counts, std::int64_t* out) {
    const Index n_classes = static_cast<Index>(votes.sums.size());
    counts.assign(unsigned_index(n_classes * n), 0.0);
    const auto line = [&](Index c, Index other) {
        return votes.sums[unsigned_index(c)] + (other * votes.n_costs + cost) * votes.n_points + first;
    };
    Index pair = 0;
    for (Index i = 0; i < n_classes; ++i) {
        for (Index j = i + 1; j < n_classes; ++j, ++pair) {
            const double *of_first = line(i, j - 1), *of_second = line(j, i);
            const double bias = votes.biases[pair * votes.n_costs + cost];
            double *for_first = counts.data() + i * n, *for_second = counts.data() + j * n;
            for (Index p = 0; p < n; ++p) {
                const double won = of_first[p] + of_second[p] + bias > 0.0 ? 1.0 : 0.0;
                for_first[p] += won;
                for_second[p] += 1.0 - won;
            }
        }
    }
    std::fill_n(out, n, std::int64_t{0});
    for (Index c = 1; c < n_classes; ++c) {
        double* best = counts.data();
        const double* own = counts.data() + c * n;
        for (Index p = 0; p < n; ++p) {
            out[p] = own[p] > best[p] ? c : out[p];
            best[p] = std::max(best[p], own[p]);
        }
    }
}

}  // namespace

std::vector<std::int64_t> vote_paths(const PathVotes& votes, ThreadTeam& team) {
    constexpr Index together = 256;  // points whose counts stay close to the processor
    const Index n_classes = static_cast<Index>(votes.sums.size());
    std::vector<std::int64_t> winners(checked_product(votes.n_costs, votes.n_points));
    const auto task = [&](Index cost) {
        std::vector<double> counts;
        for (Index first = 0; first < votes.n_points; first += together) {
            const Index n = std::min(together, votes.n_points - first);
            vote_at(votes, cost, first, n, counts, winners.data() + cost * votes.n_points + first);
        }
    };
    const std::size_t n_votes = checked_product(votes.n_points * votes.n_costs, n_classes * (n_classes - 1) / 2);
    constexpr std::size_t worth_threads = 1'000'000;
    n_votes < worth_threads ? ThreadTeam(1).run(votes.n_costs, task) : team.run(votes.n_costs, task);
    return winners;
}

bool sum_paths(const KernelSource& source, std::vector<PathShare>& shares, ThreadTeam& team, Monitor& monitor) {
    const auto task = [&](Index t) { sum_share(source, shares[unsigned_index(t)], monitor); };
    team.run(static_cast<Index>(shares.size()), task, [&] { monitor.poll(); });
    return !monitor.stopped();
}

}  // namespace multimargin
