#include "path_sums.hpp"

#include <algorithm>

#include "scores.hpp"

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
            const double* line = member.amounts + k * member.stride + member.first;
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
                    return member.amounts[k * member.stride + member.first + static_cast<Index>(i)] != 0.0;
                });
        }
    }
}

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
    const auto columns = source.columns<double>(share.columns);
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

}  // namespace

bool sum_paths(const KernelSource& source, std::vector<PathShare>& shares, ThreadTeam& team, Monitor& monitor) {
    const auto task = [&](Index t) { sum_share(source, shares[unsigned_index(t)], monitor); };
    team.run(static_cast<Index>(shares.size()), task, [&] { monitor.poll(); });
    return !monitor.stopped();
}

}  // namespace multimargin
