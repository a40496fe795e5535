#include "foretune/dataset/dataset.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/dataset/quantise.h"
#include "foretune/problem/payload_store.h"

namespace foretune {
namespace {

// Converting a double beyond a float's range is undefined.
float to_float(double value) {
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  if (value > kLargest) {
    return std::numeric_limits<float>::infinity();
  }
  return value < -kLargest ? -std::numeric_limits<float>::infinity() : static_cast<float>(value);
}

bool has_time(Outcome outcome) { return outcome == Outcome::kOk || outcome == Outcome::kCensored; }

bool by_row(const Dataset::ExtraMetric& entry, RowIndex wanted) { return entry.row < wanted; }
bool samples_by_row(const Dataset::Samples& entry, RowIndex wanted) { return entry.row < wanted; }

// Returns the number of a value, which is added where it is new.
template <class Value>
std::uint32_t intern(const Value& value, std::unordered_map<Value, std::uint32_t>& ids,
                     std::vector<Value>& values) {
  const auto [found, is_new] = ids.emplace(value, static_cast<std::uint32_t>(values.size()));
  if (is_new) {
    values.push_back(value);
  }
  return found->second;
}

std::uint16_t clamp_samples(std::uint32_t samples) {
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(samples, std::numeric_limits<std::uint16_t>::max()));
}

}  // namespace

std::string_view to_string(DatasetRole role) {
  return role == DatasetRole::kValidation ? "validation" : "training";
}

std::uint32_t Dataset::intern_problem(const Problem& problem) {
  return intern(problem, problem_ids_, problems_);
}

Status Dataset::describe_payloads(PayloadStore& payloads) {
  for (Problem& problem : problems_) {
    FORETUNE_TRY(problem, payloads.describe(problem));
  }
  return {};
}

std::uint32_t Dataset::intern_config(const Config& config) {
  return intern(config, config_ids_, configs_);
}

std::uint32_t Dataset::intern_context(const Context& context) {
  if (const std::optional<std::uint32_t> known = find_context(context)) {
    return *known;
  }
  FORETUNE_CHECK(contexts_.size() + 1 < std::numeric_limits<std::uint16_t>::max());
  context_ids_.emplace(context.hash(), static_cast<std::uint32_t>(contexts_.size()));
  contexts_.push_back(context);
  return static_cast<std::uint32_t>(contexts_.size() - 1);
}

std::optional<std::uint32_t> Dataset::find_problem(const Problem& problem) const {
  const auto found = problem_ids_.find(problem);
  return found == problem_ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint32_t> Dataset::find_config(const Config& config) const {
  const auto found = config_ids_.find(config);
  return found == config_ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint32_t> Dataset::find_context(const Context& context) const {
  // Nearly always the first; a file of nonsense may have thousands.
  if (!contexts_.empty() && contexts_.front() == context) {
    return 0;
  }
  const auto [first, last] = context_ids_.equal_range(context.hash());
  const auto found = std::find_if(
      first, last, [&](const auto& entry) { return contexts_[entry.second] == context; });
  return found == last ? std::nullopt : std::optional(found->second);
}

std::uint32_t Dataset::intern_reason(const std::string& reason) {
  if (reason.empty()) {
    return 0;
  }
  const auto [found, is_new] = reason_ids_.emplace(reason.substr(0, kMaxReasonBytes),
                                                   static_cast<std::uint32_t>(reasons_.size()));
  if (is_new) {
    reasons_.push_back(found->first);
  }
  return found->second;
}

void Dataset::add(const Measurement& measurement) {
  Row row;
  row.problem = intern_problem(measurement.problem);
  row.config = intern_config(measurement.config);
  row.context = static_cast<std::uint16_t>(intern_context(measurement.context));
  row.outcome = measurement.outcome;
  row.stage = measurement.stage;
  row.flags = measurement.flags;
  row.reason = intern_reason(measurement.reason);
  const auto index = static_cast<RowIndex>(rows_.size());
  for (const MetricValue& metric : measurement.metrics) {
    if (metric.metric == kTimeNs) {
      row.time_ns = to_float(metric.value);
      row.spread = to_float(metric.spread);
      row.samples = clamp_samples(metric.samples);
    } else if (metric.metric == kMedianNs) {
      row.median_ns = to_float(metric.value);
    } else {
      extras_.push_back({.row = index,
                         .metric = intern_metric(metric.metric),
                         .samples = metric.samples,
                         .value = metric.value,
                         .spread = metric.spread});
    }
  }
  // One order, whatever that of the measurement.
  const auto own = std::lower_bound(extras_.begin(), extras_.end(), index, by_row);
  std::stable_sort(own, extras_.end(),
                   [](const ExtraMetric& a, const ExtraMetric& b) { return a.metric < b.metric; });
  add_row(row);
  if (!measurement.samples_ns.empty()) {
    samples_.push_back({index, measurement.samples_ns});
  }
}

void Dataset::drop_rows(RowIndex first) {
  rows_.resize(std::min<std::size_t>(first, rows_.size()));
  const auto is_dropped = [&](const auto& entry) { return entry.row >= first; };
  std::erase_if(extras_, is_dropped);
  std::erase_if(samples_, is_dropped);
}

MetricIndex Dataset::intern_metric(std::string_view name) {
  if (const std::optional<MetricIndex> known = find_metric(name)) {
    return *known;
  }
  FORETUNE_CHECK(metric_count() < kMaxMetrics);
  header_.metrics.push_back(metric_info(name));
  return static_cast<MetricIndex>(metric_count() - 1);
}

const MetricInfo& Dataset::metric(MetricIndex index) const {
  const std::span<const MetricInfo> common = common_metrics();
  return index < common.size() ? common[index] : header_.metrics[index - common.size()];
}

std::size_t Dataset::metric_count() const {
  return common_metrics().size() + header_.metrics.size();
}

std::optional<MetricIndex> Dataset::find_metric(std::string_view name) const {
  for (std::size_t i = 0; i < metric_count(); ++i) {
    if (metric(static_cast<MetricIndex>(i)).name == name) {
      return static_cast<MetricIndex>(i);
    }
  }
  return std::nullopt;
}

std::vector<MetricInfo> Dataset::metrics() const {
  std::vector<MetricInfo> out(common_metrics().begin(), common_metrics().end());
  out.insert(out.end(), header_.metrics.begin(), header_.metrics.end());
  return out;
}

std::vector<MetricInfo> Dataset::present_metrics() const {
  std::vector<bool> is_present(metric_count(), false);
  is_present[0] =
      std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.has_time(); });
  for (const ExtraMetric& extra : extras_) {
    is_present[extra.metric] = true;
  }
  std::vector<MetricInfo> out;
  for (std::size_t i = 0; i < is_present.size(); ++i) {
    if (is_present[i]) {
      out.push_back(metric(static_cast<MetricIndex>(i)));
    }
  }
  return out;
}

Status Dataset::check_declarable(std::span<const MetricInfo> infos) const {
  std::set<std::string_view> added;
  for (const MetricInfo& info : infos) {
    const std::optional<MetricIndex> known = find_metric(info.name);
    if (known && metric(*known) != info) {
      return fail(ErrorCode::kMismatch, "the metric ", to_text(info), " is ",
                  to_text(metric(*known)), " in the data set");
    }
    FORETUNE_TRY_STATUS(check_metric_info(info));
    if (!known) {
      added.insert(info.name);
    }
  }
  if (metric_count() + added.size() > kMaxMetrics) {
    return fail(ErrorCode::kUnsupported, "a data set holds at most ", kMaxMetrics, " metrics");
  }
  return {};
}

Status Dataset::declare_metrics(std::span<const MetricInfo> infos) {
  FORETUNE_TRY_STATUS(check_declarable(infos));
  for (const MetricInfo& info : infos) {
    if (!find_metric(info.name)) {
      header_.metrics.push_back(info);
    }
  }
  return {};
}

std::span<const Dataset::ExtraMetric> Dataset::extras(RowIndex row) const {
  const auto first = std::lower_bound(extras_.begin(), extras_.end(), row, by_row);
  const auto last = std::find_if(first, extras_.end(),
                                 [&](const ExtraMetric& extra) { return extra.row != row; });
  return {first, last};
}

std::vector<MetricValue> Dataset::values(RowIndex index) const {
  const Row& row = rows_[index];
  std::vector<MetricValue> out;
  const auto spread = static_cast<double>(row.spread);
  if (row.has_time()) {
    out.emplace_back(kTimeNs, static_cast<double>(row.time_ns), spread, row.samples);
  }
  if (row.median_ns > 0) {
    out.emplace_back(kMedianNs, static_cast<double>(row.median_ns), spread, row.samples);
  }
  for (const ExtraMetric& extra : extras(index)) {
    out.emplace_back(metric(extra.metric).name, extra.value, extra.spread, extra.samples);
  }
  return out;
}

void Dataset::add_baseline(Baseline baseline) {
  std::stable_sort(
      baseline.metrics.begin(), baseline.metrics.end(),
      [](const Baseline::Metric& a, const Baseline::Metric& b) { return a.metric < b.metric; });
  baselines_.push_back(std::move(baseline));
}

Measurement Dataset::measurement(RowIndex index) const {
  const Row& row = rows_[index];
  Measurement out{.problem = problems_[row.problem],
                  .config = configs_[row.config],
                  .context = contexts_[row.context],
                  .outcome = row.outcome,
                  .stage = row.stage,
                  .flags = row.flags,
                  .reason = reasons_[row.reason],
                  .metrics = {},
                  .samples_ns = {}};
  out.metrics = values(index);
  const auto samples = std::lower_bound(samples_.begin(), samples_.end(), index, samples_by_row);
  if (samples != samples_.end() && samples->row == index) {
    out.samples_ns = samples->values_ns;
  }
  return out;
}

Dataset::Row Dataset::rounded(const Row& row) {
  Row out = row;
  if (!has_time(row.outcome)) {
    out.time_ns = 0;
  }
  if (out.time_ns == 0) {
    out.samples = 0;
  }
  out.median_ns = decode_median(encode_median(row.median_ns, out.time_ns), out.time_ns);
  out.spread = out.time_ns == 0 ? 0.0F : decode_spread(encode_spread(row.spread));
  return out;
}

std::vector<std::vector<RowIndex>> Dataset::rows_by_problem() const {
  std::vector<std::vector<RowIndex>> out(problems_.size());
  for (RowIndex i = 0; i < rows_.size(); ++i) {
    out[rows_[i].problem].push_back(i);
  }
  return out;
}

Digest Dataset::fingerprint() const {
  // A sum does not care about order; each row enters by its values, never by ids.
  Digest sum{.high = header_.config_schema.id(), .low = hash64(header_.family)};
  for (const Row& row : rows_) {
    const std::uint64_t key =
        resume_key(problems_[row.problem], configs_[row.config], contexts_[row.context]);
    const std::uint64_t value = hash_combine(std::bit_cast<std::uint32_t>(row.time_ns),
                                             static_cast<std::uint64_t>(row.outcome));
    sum.high += mix64(hash_combine(key, value));
    sum.low += mix64(hash_combine(value, key));
  }
  for (const ExtraMetric& extra : extras_) {
    const Row& row = rows_[extra.row];
    const std::uint64_t key =
        resume_key(problems_[row.problem], configs_[row.config], contexts_[row.context]);
    const std::uint64_t value =
        hash64(metric(extra.metric).name, std::bit_cast<std::uint64_t>(extra.value));
    sum.high += mix64(hash_combine(key, value));
    sum.low += mix64(hash_combine(value, key));
  }
  return sum;
}

}  // namespace foretune
