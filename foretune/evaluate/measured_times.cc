#include "foretune/evaluate/measured_times.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "foretune/base/statistics.h"

namespace foretune {
namespace {

bool is_time(float value) { return std::isfinite(value) && value > 0; }

// An impossible time is a defect of its source; it must not become an oracle.
MeasuredState state_of(const Dataset::Row& row) {
  switch (row.outcome) {
    case Outcome::kOk:
      return is_time(row.time_ns) ? MeasuredState::kOk : MeasuredState::kFailed;
    case Outcome::kCensored:
      return is_time(row.time_ns) ? MeasuredState::kBound : MeasuredState::kFailed;
    case Outcome::kUnsupported:
      return MeasuredState::kRefused;
    default:  // failures of any kind
      break;
  }
  return MeasuredState::kFailed;
}

// Several times. Those that neighbours disturbed count only where there are no others.
struct Times {
  std::vector<double> values_ns;
  double spread = 0;
  bool is_disturbed = true;

  void add(const Dataset::Row& row, double scale) {
    const bool disturbed = (row.flags & kFlagLoaded) != 0;
    if (disturbed && !is_disturbed) {
      return;
    }
    if (!disturbed && is_disturbed) {
      *this = Times{.is_disturbed = false};
    }
    values_ns.push_back(scale * static_cast<double>(row.time_ns));
    if (std::isfinite(row.spread)) {
      spread = std::max(spread, static_cast<double>(row.spread));
    }
  }
};

// Returns the factor for the times of a comparison. With it, the times of configs that earlier
// comparisons of the problem also have agree in the median with their known times.
double scale_to(const std::unordered_map<std::uint32_t, std::vector<double>>& known_ns,
                std::span<const Dataset::Row> comparison) {
  std::vector<double> factors;
  for (const Dataset::Row& row : comparison) {
    const auto found = known_ns.find(row.config);
    if (found != known_ns.end() && state_of(row) == MeasuredState::kOk) {
      factors.push_back(median(found->second) / static_cast<double>(row.time_ns));
    }
  }
  return factors.empty() || comparison.size() < 2 ? 1 : median(factors);
}

// Returns a scale for every row. Different comparisons are minutes or days apart, and other work
// slows a machine down as a whole: ratios within a comparison hold, nanoseconds do not. Consecutive
// re-measured rows are one comparison until a config repeats.
std::vector<double> scales_of(const Dataset& dataset) {
  const std::span<const Dataset::Row> rows = dataset.rows();
  std::vector<double> scales(rows.size(), 1);
  std::vector<std::unordered_map<std::uint32_t, std::vector<double>>> known_ns(
      dataset.problems().size());
  for (std::size_t begin = 0; begin < rows.size();) {
    if ((rows[begin].flags & kFlagReference) == 0) {
      ++begin;
      continue;
    }
    std::unordered_set<std::uint32_t> seen;
    std::size_t end = begin;
    while (end < rows.size() && (rows[end].flags & kFlagReference) != 0 &&
           rows[end].problem == rows[begin].problem && seen.insert(rows[end].config).second) {
      ++end;
    }
    auto& known = known_ns[rows[begin].problem];
    const double scale = scale_to(known, rows.subspan(begin, end - begin));
    for (std::size_t i = begin; i < end; ++i) {
      scales[i] = scale;
      if (state_of(rows[i]) == MeasuredState::kOk) {
        known[rows[i].config].push_back(scale * static_cast<double>(rows[i].time_ns));
      }
    }
    begin = end;
  }
  return scales;
}

// Merges `rows`, which are all of one problem and config. `scales` are for all rows of the data
// set.
MeasuredCandidate merge(const Dataset& dataset, std::span<const double> scales,
                        std::span<const RowIndex> rows) {
  MeasuredCandidate out;
  out.config = dataset.rows()[rows[0]].config;
  out.state = MeasuredState::kRefused;
  out.outcome = Outcome::kUnsupported;
  Times ordinary;
  Times reference;
  double bound_ns = 0;
  for (const RowIndex index : rows) {
    const Dataset::Row& row = dataset.rows()[index];
    const MeasuredState state = state_of(row);
    if (state < out.state) {
      out.state = state;
      out.outcome = row.outcome;
    }
    if (state == MeasuredState::kOk) {
      ((row.flags & kFlagReference) != 0 ? reference : ordinary).add(row, scales[index]);
    } else if (state == MeasuredState::kBound) {
      bound_ns = std::max(bound_ns, static_cast<double>(row.time_ns));
    }
  }
  if (out.state == MeasuredState::kBound) {
    out.time_ns = bound_ns;
  }
  if (!reference.values_ns.empty()) {
    out.reference_ns = median(reference.values_ns);
    out.reference_spread = reference.spread;
    out.is_reference_disturbed = reference.is_disturbed;
  }
  if (out.state == MeasuredState::kOk) {
    // Without an ordinary time the re-measured one is the best that is known.
    const Times& times = ordinary.values_ns.empty() ? reference : ordinary;
    out.time_ns = median(times.values_ns);
    out.spread = times.spread;
    out.is_disturbed = times.is_disturbed;
    out.has_ordinary_time = !ordinary.values_ns.empty();
  }
  return out;
}

}  // namespace

MeasuredTimes::MeasuredTimes(const Dataset& dataset) : oracles_(dataset.problems().size()) {
  const std::span<const Dataset::Row> rows = dataset.rows();
  const std::uint64_t schema = dataset.header().config_schema.id();
  std::vector<RowIndex> order;
  order.reserve(rows.size());
  for (RowIndex i = 0; i < rows.size(); ++i) {
    if (dataset.configs()[rows[i].config].schema == schema) {
      order.push_back(i);
    }
  }
  const auto key = [&](RowIndex i) { return std::tuple(rows[i].problem, rows[i].config); };
  const std::vector<double> scales = scales_of(dataset);
  std::sort(order.begin(), order.end(),
            [&](RowIndex a, RowIndex b) { return std::tuple(key(a), a) < std::tuple(key(b), b); });
  begins_.assign(oracles_.size() + 1, 0);
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && key(order[end]) == key(order[begin])) {
      ++end;
    }
    candidates_.push_back(merge(dataset, scales, std::span(order).subspan(begin, end - begin)));
    ++begins_[rows[order[begin]].problem + 1];
    begin = end;
  }
  for (std::size_t p = 0; p < oracles_.size(); ++p) {
    begins_[p + 1] += begins_[p];
  }
  for (std::uint32_t p = 0; p < oracles_.size(); ++p) {
    find_oracle(p);
  }
}

void MeasuredTimes::find_oracle(std::uint32_t problem) {
  Oracle& oracle = oracles_[problem];
  Oracle reference;
  const MeasuredCandidate* best = nullptr;
  for (const MeasuredCandidate& candidate : candidates(problem)) {
    if (candidate.state != MeasuredState::kOk) {
      continue;
    }
    if (!candidate.is_disturbed && (best == nullptr || candidate.time_ns < best->time_ns)) {
      best = &candidate;
    }
    if (candidate.reference_ns > 0 && !candidate.is_reference_disturbed &&
        (reference.time_ns < 0 || candidate.reference_ns < reference.time_ns)) {
      reference.time_ns = candidate.reference_ns;
      reference.spread = candidate.reference_spread;
      reference.config = candidate.config;
    }
  }
  if (best == nullptr) {
    return;
  }
  oracle.time_ns = best->time_ns;
  oracle.spread = best->spread;
  oracle.config = best->config;
  if (best->reference_ns > 0 && reference.time_ns > 0) {
    oracle.reference_ns = reference.time_ns;
    oracle.reference_spread = reference.spread;
    oracle.reference_config = reference.config;
  }
}

const MeasuredCandidate* MeasuredTimes::find(std::uint32_t problem, std::uint32_t config) const {
  const std::span<const MeasuredCandidate> all = candidates(problem);
  const auto found = std::lower_bound(
      all.begin(), all.end(), config,
      [](const MeasuredCandidate& candidate, std::uint32_t id) { return candidate.config < id; });
  return found != all.end() && found->config == config ? &*found : nullptr;
}

double MeasuredTimes::oracle_ns(std::uint32_t problem) const {
  const Oracle& oracle = oracles_[problem];
  return oracle.reference_ns > 0 ? oracle.reference_ns : oracle.time_ns;
}

std::uint32_t MeasuredTimes::oracle_config(std::uint32_t problem) const {
  const Oracle& oracle = oracles_[problem];
  return oracle.reference_ns > 0 ? oracle.reference_config : oracle.config;
}

Comparison MeasuredTimes::compare(std::uint32_t problem, const MeasuredCandidate& pick) const {
  const Oracle& oracle = oracles_[problem];
  const bool by_reference = oracle.reference_ns > 0 && pick.reference_ns > 0;
  Comparison out;
  out.best_ns = by_reference ? oracle.reference_ns : oracle.time_ns;
  out.best_config = by_reference ? oracle.reference_config : oracle.config;
  if (pick.state == MeasuredState::kFailed || pick.state == MeasuredState::kRefused) {
    return out;
  }
  out.pick_ns = by_reference ? pick.reference_ns : pick.time_ns;
  out.tolerance = std::max({kTieTolerance, by_reference ? oracle.reference_spread : oracle.spread,
                            by_reference ? pick.reference_spread : pick.spread});
  // A bound may be below the best time, but the efficiency is at most 1.
  out.efficiency = std::min(1.0, out.best_ns / out.pick_ns);
  out.is_bound = pick.state == MeasuredState::kBound;
  out.is_reference = by_reference;
  out.is_tie = !out.is_bound && out.pick_ns <= out.best_ns * (1 + out.tolerance);
  return out;
}

}  // namespace foretune
