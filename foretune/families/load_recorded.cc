#include "foretune/families/load_recorded.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "foretune/families/recorded/triton_space.h"
#include "foretune/features/feature_table.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/triton.h"

namespace foretune {
namespace {

RecordedOutcome recorded_outcome(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return RecordedOutcome::kOk;
    case Outcome::kCensored:
      return RecordedOutcome::kBound;
    case Outcome::kUnsupported:
      return RecordedOutcome::kRefused;
    default:  // failures of any kind
      break;
  }
  return RecordedOutcome::kFailed;
}

std::string feature_table_for(ProblemType type, const ConfigSchema& schema) {
  for (const FeatureTable* table : feature_tables()) {
    if (table->supports(type, schema)) {
      return std::string(table->name());
    }
  }
  return {};
}

std::uint64_t pair_id(const Dataset::Row& row) {
  return (std::uint64_t{row.problem} << 32U) | row.config;
}

// Adds the metrics of a row that are not there yet.
void add_metrics(const Dataset& dataset, RowIndex row, std::vector<MetricValue>& metrics) {
  for (const Dataset::ExtraMetric& extra : dataset.extras(row)) {
    const std::string& name = dataset.metric(extra.metric).name;
    if (find_metric(metrics, name) == nullptr) {
      metrics.emplace_back(name, extra.value, extra.spread, extra.samples);
    }
  }
}

}  // namespace

Result<Dataset> import_csv_file(const std::filesystem::path& path, const CsvFacts& facts,
                                ImportReport* report) {
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = facts.family;
  header.role = facts.role;
  header.config_schema = triton_gemm_schema();
  header.space_text = triton_gemm_space().text();
  header.fingerprint = h200_fingerprint();
  if (!facts.device.empty()) {
    FORETUNE_TRY(header.fingerprint, known_device(facts.device));
  }
  ImportReport own;
  Result<Dataset> triton = import_csv(path, header, &own);
  if (triton && triton->size() > 0) {
    if (facts.device.empty()) {
      own.notes.emplace_back(
          "the file names no device: the times are taken as those of an NVIDIA H200",
          own.rows_kept);
    }
    if (report != nullptr) {
      *report = std::move(own);
    }
    return triton;
  }
  header.problem_type = ProblemType{};  // that of the columns
  header.config_schema = ConfigSchema{};
  header.space_text.clear();
  if (facts.device.empty()) {
    header.fingerprint = Fingerprint{};
    header.fingerprint.device = concat("unknown device of ", path.filename().string());
  }
  return import_csv(path, header, report);
}

Result<RecordedTable> recorded_table(const Dataset& measured) {
  // Metrics that a later stage found out are to stand beside the time of their config.
  Dataset joined(measured.header());
  if (!measured.extras().empty()) {
    joined = measured;
    joined.deduplicate();
  }
  const Dataset& dataset = measured.extras().empty() ? measured : joined;
  const DatasetHeader& header = dataset.header();
  RecordedTable table;
  table.schema = header.config_schema;
  table.problem_type = header.problem_type;
  table.fingerprint = header.fingerprint;
  table.feature_table = feature_table_for(table.problem_type, table.schema);
  if (!header.space_text.empty()) {
    FORETUNE_TRY(table.space, SpaceDefinition::parse(header.space_text));
  } else if (table.schema == triton_gemm_schema()) {
    table.space = triton_gemm_space();
  }
  std::unordered_set<std::uint64_t> remeasured;
  for (const Dataset::Row& row : dataset.rows()) {
    if ((row.flags & kFlagReference) != 0 && row.outcome == Outcome::kOk) {
      remeasured.insert(pair_id(row));
    }
  }
  for (const Context& context : dataset.contexts()) {
    table.max_threads = std::max<int>(table.max_threads, context.threads);
  }
  for (MetricInfo& info : dataset.present_metrics()) {
    if (info.name != kTimeNs) {
      table.metrics.push_back(std::move(info));
    }
  }
  // Metrics that a later stage found out of a config stand with its first time, not with the
  // second.
  std::unordered_map<std::uint64_t, RowIndex> evaluated;
  for (const Dataset::ExtraMetric& extra : dataset.extras()) {
    const Dataset::Row& row = dataset.rows()[extra.row];
    if (row.outcome == Outcome::kOk && (row.flags & kFlagReference) == 0 &&
        remeasured.contains(pair_id(row))) {
      evaluated.emplace(pair_id(row), extra.row);
    }
  }
  const std::uint64_t schema_id = table.schema.id();
  table.rows.reserve(dataset.size());
  for (RowIndex index = 0; index < dataset.size(); ++index) {
    const Dataset::Row& row = dataset.rows()[index];
    const Config& config = dataset.configs()[row.config];
    const bool replaced = (row.flags & kFlagReference) == 0 && remeasured.contains(pair_id(row));
    // Baselines (a vendor's library) are no configs of the schema.
    if (replaced || config.schema != schema_id || row.is_evaluation() ||
        (row.outcome == Outcome::kOk && !row.has_time())) {
      continue;
    }
    const RecordedOutcome outcome = recorded_outcome(row.outcome);
    const bool failed = outcome == RecordedOutcome::kRefused || outcome == RecordedOutcome::kFailed;
    table.rows.push_back({dataset.problems()[row.problem], config, static_cast<double>(row.time_ns),
                          static_cast<double>(row.spread), outcome,
                          failed ? concat(to_string(row.outcome), row.reason == 0 ? "" : ": ",
                                          dataset.reason(row.reason))
                                 : std::string()});
    if (!failed) {
      add_metrics(dataset, index, table.rows.back().metrics);
      if (const auto first = evaluated.find(pair_id(row)); first != evaluated.end()) {
        add_metrics(dataset, first->second, table.rows.back().metrics);
      }
    }
  }
  return table;
}

Result<Dataset> import_measurements(const std::filesystem::path& path, ImportReport* report,
                                    const CsvFacts& facts) {
  if (path.extension() == ".ftd") {
    // The largest files there are, which finding out their format would read twice.
    return import_dataset(path, std::nullopt, report);
  }
  FORETUNE_TRY(const ExchangeFormat format, detect_format(path));
  return format == ExchangeFormat::kCsv ? import_csv_file(path, facts, report)
                                        : import_dataset(path, format, report);
}

Result<RecordedTable> load_recorded_table(const std::filesystem::path& path,
                                          const std::string& device) {
  FORETUNE_TRY(const Dataset dataset, import_measurements(path, nullptr, {.device = device}));
  FORETUNE_TRY(RecordedTable table, recorded_table(dataset));
  table.source = path.filename().string();
  return table;
}

}  // namespace foretune
