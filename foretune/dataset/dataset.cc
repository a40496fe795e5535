#include "foretune/dataset/dataset.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

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

std::uint16_t clamp_samples(std::uint32_t samples) {
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(samples, std::numeric_limits<std::uint16_t>::max()));
}

}  // namespace

std::string_view to_string(DatasetRole role) {
  return role == DatasetRole::kValidation ? "validation" : "training";
}

std::uint32_t Dataset::intern_problem(const Problem& problem) {
  const auto [found, is_new] =
      problem_ids_.emplace(problem, static_cast<std::uint32_t>(problems_.size()));
  if (is_new) {
    problems_.push_back(problem);
  }
  return found->second;
}

Status Dataset::describe_payloads(PayloadStore& payloads) {
  for (Problem& problem : problems_) {
    FORETUNE_TRY(problem, payloads.describe(problem));
  }
  return {};
}

std::uint32_t Dataset::intern_config(const Config& config) {
  const auto [found, is_new] =
      config_ids_.emplace(config, static_cast<std::uint32_t>(configs_.size()));
  if (is_new) {
    configs_.push_back(config);
  }
  return found->second;
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
    if (metric.metric == MetricId::kTimeNs) {
      row.time_ns = to_float(metric.value);
      row.spread = to_float(metric.spread);
      row.samples = clamp_samples(metric.samples);
    } else if (metric.metric == MetricId::kMedianNs) {
      row.median_ns = to_float(metric.value);
    } else {
      extras_.push_back({index, metric});
    }
  }
  add_row(row);
  if (!measurement.samples_ns.empty()) {
    samples_.push_back({index, measurement.samples_ns});
  }
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
  if (row.time_ns > 0) {
    const auto spread = static_cast<double>(row.spread);
    out.metrics.push_back(
        {MetricId::kTimeNs, static_cast<double>(row.time_ns), spread, row.samples});
    if (row.median_ns > 0) {
      out.metrics.push_back(
          {MetricId::kMedianNs, static_cast<double>(row.median_ns), spread, row.samples});
    }
  }
  const auto by_row = [](const auto& entry, RowIndex wanted) { return entry.row < wanted; };
  for (auto extra = std::lower_bound(extras_.begin(), extras_.end(), index, by_row);
       extra != extras_.end() && extra->row == index; ++extra) {
    out.metrics.push_back(extra->value);
  }
  const auto samples = std::lower_bound(samples_.begin(), samples_.end(), index, by_row);
  if (samples != samples_.end() && samples->row == index) {
    out.samples_ns = samples->values_ns;
  }
  return out;
}

Dataset::Row Dataset::rounded(const Row& row) {
  Row out = row;
  if (!has_time(row.outcome)) {
    out.time_ns = 0;
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

namespace {

int rank_of(Outcome outcome) {
  return outcome == Outcome::kOk ? 0 : outcome == Outcome::kCensored ? 1 : 2;
}

}  // namespace

std::size_t Dataset::deduplicate() {
  const auto key = [this](RowIndex i) {
    return std::tuple(rows_[i].problem, rows_[i].config, rows_[i].context);
  };
  std::vector<bool> keep(rows_.size(), false);
  std::vector<RowIndex> order;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, Outcome, float, float>> compared;
  for (RowIndex i = 0; i < rows_.size(); ++i) {
    // Rows that were timed in turn belong together; only what is the same row is a repetition.
    const Row& row = rows_[i];
    if ((row.flags & kFlagReference) == 0) {
      order.push_back(i);
    } else if (compared
                   .emplace(row.problem, row.config, row.context, row.outcome, row.time_ns,
                            row.spread)
                   .second) {
      keep[i] = true;
    }
  }
  std::sort(order.begin(), order.end(), [&](RowIndex a, RowIndex b) {
    return std::tuple(key(a), rank_of(rows_[a].outcome), a) <
           std::tuple(key(b), rank_of(rows_[b].outcome), b);
  });
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && key(order[end]) == key(order[begin])) {
      ++end;
    }
    Row& first = rows_[order[begin]];
    keep[order[begin]] = true;
    std::vector<double> times;
    std::vector<double> medians;
    for (std::size_t i = begin; i < end; ++i) {
      const Row& row = rows_[order[i]];
      if (row.outcome == Outcome::kOk) {
        times.push_back(static_cast<double>(row.time_ns));
        if (row.median_ns > 0) {
          medians.push_back(static_cast<double>(row.median_ns));
        }
      } else if (row.outcome == Outcome::kCensored && first.outcome == Outcome::kCensored) {
        // Of several lower bounds the highest says most.
        first.time_ns = std::max(first.time_ns, row.time_ns);
      }
    }
    if (times.size() > 1) {
      first.time_ns = static_cast<float>(median(times));
      first.spread = std::max(first.spread, static_cast<float>(relative_spread(times)));
      first.median_ns = medians.empty() ? 0.0F : static_cast<float>(median(medians));
    }
    first = rounded(first);
    begin = end;
  }
  deduplicate_baselines();
  return keep_rows(keep);
}

void Dataset::deduplicate_baselines() {
  std::map<std::pair<std::uint32_t, std::string>, std::vector<double>> times;
  for (const Baseline& baseline : baselines_) {
    times[{baseline.problem, baseline.name}].push_back(static_cast<double>(baseline.time_ns));
  }
  baselines_.clear();
  for (const auto& [key, values] : times) {
    baselines_.push_back({key.first, key.second, static_cast<float>(median(values))});
  }
}

std::size_t Dataset::keep_rows(const std::vector<bool>& keep) {
  std::vector<RowIndex> moved_to(rows_.size(), std::numeric_limits<RowIndex>::max());
  std::vector<Row> rows;
  for (RowIndex i = 0; i < rows_.size(); ++i) {
    if (keep[i]) {
      moved_to[i] = static_cast<RowIndex>(rows.size());
      rows.push_back(rows_[i]);
    }
  }
  const auto follow = [&](auto& entries) {
    std::erase_if(entries, [&](auto& entry) { return !keep[entry.row]; });
    for (auto& entry : entries) {
      entry.row = moved_to[entry.row];
    }
  };
  follow(extras_);
  follow(samples_);
  const std::size_t removed = rows_.size() - rows.size();
  rows_ = std::move(rows);
  return removed;
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
  return sum;
}

namespace {

// Copies rows between data sets. Values are interned when first met, so that the receiving side
// holds only what its rows use. By index throughout: both may be the same data set.
class RowCopier {
 public:
  RowCopier(const Dataset& from, Dataset& to)
      : from_(from),
        to_(to),
        problems_(from.problems().size(), kUnknown),
        configs_(from.configs().size(), kUnknown),
        contexts_(from.contexts().size(), kUnknown) {}

  // Copies what belongs to problems that are kept; an empty `keep` keeps all.
  void copy(const std::vector<bool>& keep) {
    const auto is_kept = [&](std::uint32_t problem) { return keep.empty() || keep[problem]; };
    const std::size_t rows = from_.size();
    const std::size_t extras = from_.extras().size();
    const std::size_t samples = from_.samples().size();
    const std::size_t baselines = from_.baselines().size();
    if (keep.empty()) {
      to_.reserve(to_.size() + rows);
    }
    std::vector<RowIndex> moved_to(rows, kUnknown);
    for (std::size_t i = 0; i < rows; ++i) {
      if (is_kept(from_.rows()[i].problem)) {
        moved_to[i] = static_cast<RowIndex>(to_.size());
        to_.add_row(translated(from_.rows()[i]));
      }
    }
    for (std::size_t i = 0; i < extras; ++i) {
      const Dataset::ExtraMetric extra = from_.extras()[i];
      if (moved_to[extra.row] != kUnknown) {
        to_.add_extra({moved_to[extra.row], extra.value});
      }
    }
    for (std::size_t i = 0; i < samples; ++i) {
      if (const RowIndex row = moved_to[from_.samples()[i].row]; row != kUnknown) {
        to_.add_samples({row, std::vector<float>(from_.samples()[i].values_ns)});
      }
    }
    for (std::size_t i = 0; i < baselines; ++i) {
      Dataset::Baseline own = from_.baselines()[i];
      if (!is_kept(own.problem)) {
        continue;
      }
      own.problem = problem_of(own.problem);
      if (std::find(to_.baselines().begin(), to_.baselines().end(), own) == to_.baselines().end()) {
        to_.add_baseline(std::move(own));
      }
    }
  }

 private:
  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t problem_of(std::uint32_t id) {
    if (problems_[id] == kUnknown) {
      problems_[id] = to_.intern_problem(Problem(from_.problems()[id]));
    }
    return problems_[id];
  }

  Dataset::Row translated(Dataset::Row row) {
    row.problem = problem_of(row.problem);
    std::uint32_t& config = configs_[row.config];
    if (config == kUnknown) {
      config = to_.intern_config(Config(from_.configs()[row.config]));
    }
    row.config = config;
    std::uint32_t& context = contexts_[row.context];
    if (context == kUnknown) {
      context = to_.intern_context(Context(from_.contexts()[row.context]));
    }
    row.context = static_cast<std::uint16_t>(context);
    row.reason = row.reason == 0 ? 0 : to_.intern_reason(std::string(from_.reason(row.reason)));
    return row;
  }

  const Dataset& from_;
  Dataset& to_;
  std::vector<std::uint32_t> problems_;
  std::vector<std::uint32_t> configs_;
  std::vector<std::uint32_t> contexts_;
};

}  // namespace

Status Dataset::check_mergeable(const Dataset& other) const {
  if (other.header_.family != header_.family) {
    return fail(ErrorCode::kMismatch, "family '", other.header_.family, "' cannot be merged with '",
                header_.family, "'");
  }
  if (other.header_.problem_type != header_.problem_type) {
    return fail(ErrorCode::kMismatch, "data sets of different problem types cannot be merged");
  }
  if (other.header_.config_schema != header_.config_schema) {
    return fail(ErrorCode::kMismatch, "config schema ", other.header_.config_schema.name, " v",
                other.header_.config_schema.version, " cannot be merged with ",
                header_.config_schema.name, " v", header_.config_schema.version,
                other.header_.config_schema.name == header_.config_schema.name &&
                        other.header_.config_schema.version == header_.config_schema.version
                    ? ": their parameters differ"
                    : "");
  }
  return {};
}

Status Dataset::merge(const Dataset& other) {
  const Status mergeable = check_mergeable(other);
  if (!mergeable && other.holds_nothing()) {
    return {};
  }
  if (!mergeable && holds_nothing()) {
    *this = other;
    return {};
  }
  FORETUNE_TRY_STATUS(mergeable);
  RowCopier(other, *this).copy({});
  return {};
}

Dataset Dataset::filter_problems(const std::vector<bool>& keep) const {
  FORETUNE_CHECK(keep.size() == problems_.size());
  Dataset out(header_);
  if (!keep.empty()) {
    RowCopier(*this, out).copy(keep);
  }
  return out;
}

}  // namespace foretune
