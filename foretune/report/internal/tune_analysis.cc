#include "foretune/report/internal/tune_analysis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "foretune/base/quantities.h"
#include "foretune/base/significant.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/metrics/pareto.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/tune_report.h"

namespace foretune::report_internal {
namespace {

constexpr int kMetricDigits = 4;

// Nanoseconds per unit of time; nothing for other units.
std::optional<double> nanoseconds_per(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, double>, 4> kTimes{
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  for (const auto& [name, nanoseconds] : kTimes) {
    if (name == unit) {
      return nanoseconds;
    }
  }
  return std::nullopt;
}

// Twice as much of it means something: it has a zero that is none of it.
bool has_ratios(std::string_view unit) {
  return nanoseconds_per(unit) || unit == "B" || unit == "J";
}

void analyse_front(const TuneResult& result, TuneAnalysis& out) {
  const Judge& judge = *result.judge;
  const std::size_t dimensions = judge.objective().targets.size();
  std::vector<std::size_t> feasible;
  std::vector<double> targets;
  for (std::size_t i = 0; i < result.measured.size(); ++i) {
    const Judgement& judgement = result.measured[i].judgement;
    if (judgement.is_feasible()) {
      feasible.push_back(i);
      targets.insert(targets.end(), judgement.targets.begin(), judgement.targets.end());
    }
  }
  if (feasible.empty()) {
    return;
  }
  const PointSet points{targets, dimensions};
  std::vector<std::size_t> front = pareto_front(points);
  std::sort(front.begin(), front.end(),
            [&](std::size_t a, std::size_t b) { return points[a][0] < points[b][0]; });
  for (std::size_t i = 0; i < points.size(); ++i) {
    out.dominated += std::any_of(front.begin(), front.end(), [&](std::size_t better) {
      return dominates(points[better], points[i]);
    });
  }
  std::vector<double> low(dimensions, HUGE_VAL);
  std::vector<double> high(dimensions, -HUGE_VAL);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    low[i % dimensions] = std::min(low[i % dimensions], targets[i]);
    high[i % dimensions] = std::max(high[i % dimensions], targets[i]);
  }
  double box = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const double sign = is_maximised(judge, judge.metrics()[d]) ? -1 : 1;
    out.best.push_back(sign * low[d]);
    out.worst.push_back(sign * high[d]);
    box *= high[d] - low[d];
  }
  out.hypervolume = hypervolume(points, high);
  out.share = box > 0 && std::isfinite(box) ? out.hypervolume / box : kNotANumber;
  for (const std::size_t index : front) {
    out.front.push_back(feasible[index]);
  }
  std::vector<double> compared;
  for (const TunedConfig& tuned : result.finalists) {
    compared.insert(compared.end(), tuned.judgement.targets.begin(), tuned.judgement.targets.end());
  }
  // A single point has nothing to give up.
  if (result.finalists.size() > 1 && compared.size() == result.finalists.size() * dimensions) {
    out.knee = knee({compared, dimensions});
  }
}

std::string limit_text(const BoundValue& bound, double limit, const MetricInfo& info) {
  const std::string value = metric_text(limit, info.unit);
  return bound.kind == BoundValue::Kind::kAbsolute ? value : concat(value, " (", bound.text(), ")");
}

std::string configs_text(std::size_t count) { return count_of(count, "config"); }

std::string_view bounds_word(const TuneResult& result) {
  return result.judge->objective().bounds.size() == 1 ? "bound" : "bounds";
}

}  // namespace

double metric_value(std::span<const MetricValue> values, std::string_view name) {
  const MetricValue* const found = find_metric(values, name);
  return found == nullptr ? kNotANumber : found->value;
}

bool is_maximised(const Judge& judge, const MetricInfo& info) {
  const Objective& objective = judge.objective();
  const bool is_only_target = !objective.is_pareto() && objective.targets.front() == info.name;
  return (is_only_target ? objective.direction : info.direction) == Direction::kMaximise;
}

std::optional<Packing> packing_of(const TuneResult& result, const TunedConfig& tuned) {
  const double pack_ns = metric_value(tuned.values, kPackNs);
  double unpacked_ns = HUGE_VAL;
  const auto consider = [&](const TunedConfig& other) {
    if (metric_value(other.values, kPackNs) == 0) {
      unpacked_ns = std::min(unpacked_ns, other.time_ns);
    }
  };
  std::for_each(result.measured.begin(), result.measured.end(), consider);
  std::for_each(result.finalists.begin(), result.finalists.end(), consider);
  if (result.by_default) {
    consider(*result.by_default);
  }
  if (!(pack_ns > 0) || !std::isfinite(unpacked_ns)) {
    return std::nullopt;
  }
  const double gain_ns = unpacked_ns - tuned.time_ns;
  return Packing{pack_ns, gain_ns > 0 ? std::ceil(pack_ns / gain_ns) : HUGE_VAL};
}

std::string packing_text(const std::optional<Packing>& packing) {
  if (!packing) {
    return std::string(kNoNumber);
  }
  return runs_text(packing->pays_after);
}

TuneAnalysis analyse_tuning(const TuneResult& result) {
  TuneAnalysis out;
  out.hypervolume = kNotANumber;
  out.share = kNotANumber;
  for (const TunedConfig& tuned : result.measured) {
    ++(tuned.judgement.is_feasible() ? out.met : tuned.judgement.is_kept() ? out.kept : out.missed);
  }
  for (const TunedConfig& tuned : result.finalists) {
    out.now_missed += tuned.judgement.is_feasible() ? 0U : 1U;
  }
  if (result.judge->objective().is_pareto()) {
    analyse_front(result, out);
  }
  return out;
}

std::size_t chosen_finalist(const TuneResult& result, const TuneAnalysis& analysis) {
  // A single point of a front is the best in everything.
  const bool has_best = !result.judge->objective().is_pareto() || result.finalists.size() == 1;
  return has_best ? 0 : analysis.knee.value_or(result.finalists.size());
}

std::string config_text(const ConfigSchema& schema, const TunedConfig& tuned) {
  return tuned.text.empty() ? to_text(schema, tuned.config) : tuned.text;
}

std::string metric_gain_text(const Judge& judge, const MetricInfo& info, double value,
                             double by_default) {
  if (!std::isfinite(value) || !std::isfinite(by_default)) {
    return std::string(kNoNumber);
  }
  const bool more = is_maximised(judge, info);
  if (has_ratios(info.unit)) {
    const double worse = more ? by_default : value;
    const double ratio = worse == 0 ? kNotANumber : (more ? value : by_default) / worse;
    // Neither is any better where both have none of it.
    return value == by_default                  ? "1.00x"
           : std::isfinite(ratio) && ratio >= 0 ? concat(fixed(ratio, ratio < 100 ? 2 : 0), "x")
                                                : std::string(kNoNumber);
  }
  const double gain = more ? value - by_default : by_default - value;
  return concat(gain < 0 ? "" : "+", significant(gain, 3));
}

std::vector<std::string> bound_lines(const TuneResult& result) {
  const Judge& judge = *result.judge;
  std::vector<std::string> out;
  const std::vector<MetricBound>& bounds = judge.objective().bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const MetricBound& bound = bounds[i];
    const MetricInfo& info = *find_metric(judge.metrics(), bound.metric);
    std::string line =
        concat(bound.metric,
               bound.is_upper ? " <= " : " >= ", limit_text(bound.bound, judge.limit(i), info));
    bool is_relative = bound.bound.kind != BoundValue::Kind::kAbsolute;
    if (bound.keep) {
      line += concat(", kept ", bound.is_upper ? "up to " : "down to ",
                     limit_text(*bound.keep, judge.keep_limit(i), info));
      is_relative = is_relative || bound.keep->kind != BoundValue::Kind::kAbsolute;
    }
    if (is_relative) {
      line += concat("; the baseline has ",
                     metric_text(metric_value(result.baseline, bound.metric), info.unit));
    }
    out.push_back(std::move(line));
  }
  return out;
}

std::string tried_text(const TuneResult& result) {
  std::string out;
  if (result.legal_configs) {
    out = concat("; ", count_of(*result.legal_configs, "legal config"));
  }
  const std::uint64_t tried = result.steps.size();
  if (result.exhausted) {
    out += ", all of them tried";
  } else if (result.legal_configs && *result.legal_configs > tried) {
    out += concat(", ", count_text(*result.legal_configs - tried), " of them not tried");
  }
  return out;
}

std::string bounds_met_text(const TuneResult& result, const TuneAnalysis& analysis) {
  const std::vector<MetricBound>& bounds = result.judge->objective().bounds;
  if (bounds.empty()) {
    return {};
  }
  std::string out = concat(configs_text(analysis.met), " ", word_for(analysis.met, "meets", "meet"),
                           " the ", bounds_word(result), ", ");
  if (std::any_of(bounds.begin(), bounds.end(),
                  [](const MetricBound& bound) { return bound.keep.has_value(); })) {
    out += concat(count_text(analysis.kept), " more ", word_for(analysis.kept, "is", "are"),
                  " kept, ");
  }
  return out + concat(count_text(analysis.missed), " ", word_for(analysis.missed, "misses", "miss"),
                      bounds.size() == 1 ? " it" : " one");
}

std::string front_text(const TuneResult& result, const TuneAnalysis& analysis) {
  const std::size_t compared = result.finalists.size();
  return concat(
      count_text(analysis.front.size()), " of ", configs_text(analysis.met),
      result.judge->objective().bounds.empty()
          ? ""
          : concat(" that ", word_for(analysis.met, "meets", "meet"), " the ", bounds_word(result)),
      ", ", count_text(analysis.dominated), " dominated; ", count_text(compared),
      word_for(compared, " remains", " remain"), " after the final comparison");
}

std::string hypervolume_text(const TuneResult& result, const TuneAnalysis& analysis) {
  const Judge& judge = *result.judge;
  std::string reference;
  for (std::size_t d = 0; d < analysis.worst.size(); ++d) {
    const MetricInfo& info = judge.metrics()[d];
    reference +=
        concat(d == 0 ? "" : ", ", info.name, " ", metric_text(analysis.worst[d], info.unit));
  }
  if (reference.empty() || std::isnan(analysis.share)) {
    return "none, for a target has the same value everywhere";
  }
  return concat(percent_text(analysis.share),
                " % of the box from the best of each target to the worst (", reference, ")");
}

std::string now_missed_text(const TuneAnalysis& analysis) {
  if (analysis.now_missed == 0) {
    return {};
  }
  return concat("In the final comparison ", configs_text(analysis.now_missed), " ",
                word_for(analysis.now_missed, "misses", "miss"),
                " a bound by a little; nothing else was left.");
}

std::string values_text(const Judge& judge, const TunedConfig& tuned, bool only_targets) {
  std::string out;
  const std::size_t count =
      only_targets ? judge.objective().targets.size() : judge.metrics().size();
  for (const MetricInfo& info : judge.metrics().first(count)) {
    out += concat(out.empty() ? "" : ", ", info.name, " ",
                  metric_text(metric_value(tuned.values, info.name), info.unit));
  }
  return out;
}

}  // namespace foretune::report_internal

namespace foretune {

std::string metric_text(double value, std::string_view unit) {
  if (!std::isfinite(value)) {
    return std::string(report_internal::kNoNumber);
  }
  if (const std::optional<double> nanoseconds = report_internal::nanoseconds_per(unit);
      nanoseconds && value >= 0) {
    return nanoseconds_text(value * *nanoseconds);
  }
  if (unit == "B") {
    return bytes_text(value);
  }
  return concat(significant(value, report_internal::kMetricDigits), unit.empty() ? "" : " ", unit);
}

}  // namespace foretune
