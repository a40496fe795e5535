#include "foretune/dataset/storable.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <unordered_set>

#include "foretune/base/text.h"

namespace foretune::dataset_internal {
namespace {

Status check_size(std::string_view what, std::string_view text, std::size_t limit) {
  if (text.size() > limit) {
    return fail(ErrorCode::kInvalidArgument, "the ", what, " has ", text.size(), " bytes; at most ",
                limit, " can be stored");
  }
  return {};
}

Status check_schema(const ConfigSchema& schema) {
  FORETUNE_TRY_STATUS(check_size("name of the config schema", schema.name, kMaxNameBytes));
  if (schema.kind == SchemaKind::kSequence && !schema.parameters.empty()) {
    return fail(ErrorCode::kInvalidArgument, "config schema ", schema.name,
                " is a sequence and cannot have parameters");
  }
  if (schema.parameters.size() > kMaxParameters) {
    return fail(ErrorCode::kInvalidArgument, "config schema ", schema.name, " has ",
                schema.parameters.size(), " parameters; at most ", kMaxParameters,
                " can be stored");
  }
  std::unordered_set<std::string_view> names;
  for (const Parameter& parameter : schema.parameters) {
    FORETUNE_TRY_STATUS(check_size("name of a parameter", parameter.name, kMaxNameBytes));
    if (!names.insert(parameter.name).second) {
      return fail(ErrorCode::kInvalidArgument, "config schema ", schema.name, " has the parameter ",
                  parameter.name, " twice");
    }
    if (parameter.labels.size() > kMaxLabels) {
      return fail(ErrorCode::kInvalidArgument, "parameter ", parameter.name, " has ",
                  parameter.labels.size(), " labels; at most ", kMaxLabels, " can be stored");
    }
    for (const std::string& label : parameter.labels) {
      FORETUNE_TRY_STATUS(check_size("label of a parameter", label, kMaxNameBytes));
    }
  }
  return {};
}

Status check_ids(const Dataset& dataset, const Dataset::Row& row) {
  if (row.problem >= dataset.problems().size() || row.config >= dataset.configs().size() ||
      row.context >= dataset.contexts().size() || row.reason >= dataset.reason_count()) {
    return fail(ErrorCode::kInvalidArgument, "it names a value that is not in the data set");
  }
  return {};
}

Status check_sparse(const Dataset& dataset) {
  RowIndex last = 0;
  for (const Dataset::ExtraMetric& extra : dataset.extras()) {
    FORETUNE_TRY_STATUS(check_metric(dataset, extra));
    if (extra.row < last || extra.row >= dataset.size()) {
      return fail(ErrorCode::kInvalidArgument, "the metrics are not in order of rows");
    }
    last = extra.row;
  }
  std::size_t next = 0;
  for (const Dataset::Samples& kept : dataset.samples()) {
    FORETUNE_TRY_STATUS(check_samples(kept.values_ns));
    if (kept.row < next || kept.row >= dataset.size()) {
      return fail(ErrorCode::kInvalidArgument, "the samples are not in order of rows");
    }
    next = std::size_t{kept.row} + 1;
  }
  return {};
}

Status check_metrics(std::span<const MetricInfo> infos) {
  if (infos.size() + common_metrics().size() > kMaxMetrics) {
    return fail(ErrorCode::kUnsupported, "a data set holds at most ", kMaxMetrics, " metrics");
  }
  std::unordered_set<std::string_view> names;
  for (const MetricInfo& info : infos) {
    FORETUNE_TRY_STATUS(check_metric_info(info));
    if (find_metric(common_metrics(), info.name) != nullptr || !names.insert(info.name).second) {
      return fail(ErrorCode::kInvalidArgument, "the metric ", info.name, " is declared twice");
    }
  }
  return {};
}

}  // namespace

Status check_header(const DatasetHeader& header) {
  if (find_problem_schema(header.problem_type) == nullptr) {
    return fail(ErrorCode::kUnsupported, "problem type ", static_cast<int>(header.problem_type),
                " is not known to this version");
  }
  FORETUNE_TRY_STATUS(check_schema(header.config_schema));
  FORETUNE_TRY_STATUS(check_size("family name", header.family, kMaxNameBytes));
  FORETUNE_TRY_STATUS(check_size("text of the space", header.space_text, kMaxTextBytes));
  FORETUNE_TRY_STATUS(check_size("command line", header.created_by, kMaxTextBytes));
  FORETUNE_TRY_STATUS(check_metrics(header.metrics));
  const std::string fingerprint = header.fingerprint.text();
  FORETUNE_TRY_STATUS(check_size("fingerprint", fingerprint, kMaxTextBytes));
  const Result<Fingerprint> parsed = Fingerprint::parse(fingerprint);
  if (!parsed || *parsed != header.fingerprint) {
    return fail(ErrorCode::kInvalidArgument,
                "the machine's fingerprint has no text form (a line break in a name, or a value "
                "out of range)");
  }
  return {};
}

Status check_problem(const DatasetHeader& header, const Problem& problem) {
  if (problem.type() != header.problem_type) {
    return fail(ErrorCode::kMismatch, "'", problem.shown_text(),
                "' is not of the problem type of the data set");
  }
  return {};
}

Status check_config(const DatasetHeader& header, std::uint64_t schema_id, const Config& config) {
  const ConfigSchema& schema = header.config_schema;
  if (config.schema != schema_id) {
    return fail(ErrorCode::kMismatch, "a config is not of the data set's schema ", schema.name,
                " v", schema.version);
  }
  const std::size_t words = config.words.size();
  if (schema.kind == SchemaKind::kSequence ? words > kMaxSequenceWords
                                           : words != schema.parameters.size()) {
    return fail(ErrorCode::kInvalidArgument, "a config of schema ", schema.name, " cannot have ",
                words, " words");
  }
  return {};
}

Status check_context(const Context& context) {
  return check_size("name of a context's device", context.device, kMaxNameBytes);
}

Status check_row(const Dataset::Row& row, bool has_metrics) {
  if (!is_known(row.outcome) || !is_known(row.stage)) {
    const bool is_outcome = !is_known(row.outcome);
    return fail(ErrorCode::kInvalidArgument, "this version does not know its ",
                is_outcome ? "outcome " : "stage ",
                is_outcome ? static_cast<int>(row.outcome) : static_cast<int>(row.stage));
  }
  // An evaluation finds out other metrics of what was timed before.
  const bool may_have_time =
      (row.outcome == Outcome::kOk || row.outcome == Outcome::kCensored) && !row.is_evaluation();
  const bool may_lack_time = row.outcome == Outcome::kOk ? has_metrics && row.median_ns == 0
                                                         : row.outcome != Outcome::kCensored;
  // The comparisons are false for what is not a number, too.
  if (!(row.time_ns == 0 && may_lack_time) &&
      !(may_have_time && row.time_ns > 0 && row.time_ns <= kLongestNs)) {
    return fail(ErrorCode::kInvalidArgument, "time_ns is ", row.time_ns, " with the outcome '",
                to_string(row.outcome),
                "'; a time is positive and at most 1e30, only ok and censored measurements have "
                "one, unless a later stage yielded it, and only an ok one with other metrics may "
                "lack it");
  }
  return {};
}

Status check_metric(const Dataset& dataset, const Dataset::ExtraMetric& metric) {
  if (metric.metric >= dataset.metric_count()) {
    return fail(ErrorCode::kInvalidArgument, "this version does not know the metric ",
                static_cast<int>(metric.metric));
  }
  const std::string& name = dataset.metric(metric.metric).name;
  if (name == kTimeNs || name == kMedianNs) {
    return fail(ErrorCode::kInvalidArgument, name, " is not one that is stored beside the time");
  }
  if (!std::isfinite(metric.value) || !std::isfinite(metric.spread)) {
    return fail(ErrorCode::kInvalidArgument, name, " is not a finite number");
  }
  return {};
}

Status check_samples(std::span<const float> samples_ns) {
  if (samples_ns.empty() || !std::all_of(samples_ns.begin(), samples_ns.end(), [](float value) {
        return value >= 0 && value <= kLongestNs;
      })) {
    return fail(ErrorCode::kInvalidArgument,
                "samples of a time are numbers from 0 to 1e30, at least one of them");
  }
  return {};
}

Status check_baseline(const Dataset& dataset, const Dataset::Baseline& baseline) {
  FORETUNE_TRY_STATUS(check_size("name of a baseline", baseline.name, kMaxNameBytes));
  const bool has_time = baseline.time_ns > 0 && baseline.time_ns <= kLongestNs;
  if (baseline.problem >= dataset.problems().size() ||
      !(has_time || (baseline.time_ns == 0 && !baseline.metrics.empty()))) {
    return fail(ErrorCode::kInvalidArgument, "baseline '", baseline.name.substr(0, 40),
                "' names no problem of the data set, or has no positive time");
  }
  std::bitset<kMaxMetrics + 1> seen;
  for (const Dataset::Baseline::Metric& metric : baseline.metrics) {
    FORETUNE_TRY_STATUS(check_metric(dataset, {.metric = metric.metric, .value = metric.value}));
    if (seen.test(metric.metric)) {
      return fail(ErrorCode::kInvalidArgument, "baseline '", baseline.name.substr(0, 40), "' has ",
                  dataset.metric(metric.metric).name, " twice");
    }
    seen.set(metric.metric);
  }
  return {};
}

Status check_notes(const Notes& notes) {
  for (const auto& [name, text] : notes) {
    FORETUNE_TRY_STATUS(check_size("name of a note", name, kMaxNameBytes));
    FORETUNE_TRY_STATUS(check_size("text of a note", text, kMaxTextBytes));
  }
  return {};
}

Status check_dataset(const Dataset& dataset) {
  const DatasetHeader& header = dataset.header();
  FORETUNE_TRY_STATUS(check_header(header));
  for (const Problem& problem : dataset.problems()) {
    FORETUNE_TRY_STATUS(check_problem(header, problem));
  }
  const std::uint64_t schema_id = header.config_schema.id();
  for (const Config& config : dataset.configs()) {
    FORETUNE_TRY_STATUS(check_config(header, schema_id, config));
  }
  for (const Context& context : dataset.contexts()) {
    FORETUNE_TRY_STATUS(check_context(context));
  }
  if (dataset.contexts().size() > kMaxContexts) {
    return fail(ErrorCode::kUnsupported, "a data set of ", dataset.contexts().size(),
                " contexts cannot be stored; at most ", kMaxContexts, " can");
  }
  if (dataset.size() > kMaxRows) {
    return fail(ErrorCode::kUnsupported, "a data set of ", dataset.size(),
                " rows cannot be stored; at most ", kMaxRows, " can");
  }
  FORETUNE_TRY_STATUS(check_sparse(dataset));
  for (std::size_t i = 0, extra = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    const std::size_t first = extra;
    while (extra < dataset.extras().size() && dataset.extras()[extra].row == i) {
      ++extra;
    }
    const Status ids = check_ids(dataset, row);
    const Status values = check_row(row, extra > first);
    if (!ids || !values) {
      return fail_because(ids ? values.error() : ids.error(), "row ", i);
    }
  }
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    FORETUNE_TRY_STATUS(check_baseline(dataset, baseline));
  }
  return check_notes(dataset.notes());
}

}  // namespace foretune::dataset_internal
