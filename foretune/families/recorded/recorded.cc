#include "foretune/families/recorded/recorded.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/space/listed_space.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

struct RecordedEntry {
  Config config;
  double time_ns = 0;
  double spread = 0;
  RecordedOutcome outcome = RecordedOutcome::kOk;
  std::string reason;
  std::vector<MetricValue> metrics;
};

// The entries of one problem, sorted by config.
using Entries = std::vector<RecordedEntry>;

const RecordedEntry* find_entry(const Entries& entries, const Config& config) {
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), config,
      [](const RecordedEntry& entry, const Config& wanted) { return entry.config < wanted; });
  return found != entries.end() && found->config == config ? &*found : nullptr;
}

// Rows of one (problem, config) become one entry.
RecordedEntry merge_rows(std::span<const RecordedRow* const> rows) {
  RecordedEntry entry{rows[0]->config, 0, 0, rows[0]->outcome, rows[0]->reason, {}};
  for (const RecordedRow* row : rows) {
    if (row->outcome < entry.outcome) {  // declared best first
      entry.outcome = row->outcome;
      entry.reason = row->reason;
    }
  }
  std::vector<double> times_ns;
  std::vector<double> spreads;
  std::map<std::string, std::pair<std::vector<double>, MetricValue>> metrics;
  for (const RecordedRow* row : rows) {
    if (row->outcome == entry.outcome) {
      times_ns.push_back(row->time_ns);
      spreads.push_back(row->spread);
      for (const MetricValue& value : row->metrics) {
        auto& [values, last] = metrics[value.metric];
        values.push_back(value.value);
        last = value;
      }
    }
  }
  for (auto& [name, seen] : metrics) {
    seen.second.value = median(seen.first);
    entry.metrics.push_back(seen.second);
  }
  if (entry.outcome == RecordedOutcome::kOk) {
    entry.time_ns = median(times_ns);
    entry.spread = median(spreads);
  } else if (entry.outcome == RecordedOutcome::kBound) {
    entry.time_ns = *std::max_element(times_ns.begin(), times_ns.end());
  }
  return entry;
}

Entries merge_problem(std::vector<const RecordedRow*> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const RecordedRow* a, const RecordedRow* b) {
    return a->config < b->config;
  });
  Entries entries;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end]->config == rows[begin]->config) {
      ++end;
    }
    entries.push_back(merge_rows(std::span(rows).subspan(begin, end - begin)));
    begin = end;
  }
  return entries;
}

// Nothing was run here, so there is no output to be wrong.
class RecordedData final : public ProblemData {
 public:
  void poison() override {}
  Support verify() override { return Support::yes(); }
  std::int64_t bytes() const override { return 0; }
};

class RecordedRun final : public Run {
 public:
  RecordedRun(RecordedEntry entry, const FamilyInfo& info)
      : entry_(std::move(entry)), info_(info) {}
  void run() override {}
  double simulated_ns() override { return entry_.time_ns; }
  bool simulated_is_bound() override { return entry_.outcome == RecordedOutcome::kBound; }
  double simulated_spread() override { return entry_.spread; }
  std::vector<MetricValue> metrics() override {
    std::vector<MetricValue> out;
    for (const MetricValue& value : entry_.metrics) {
      const MetricInfo* info = find_metric(info_.metrics, value.metric);
      if (info != nullptr && info->stage == MetricStage::kRun) {
        out.push_back(value);
      }
    }
    return out;
  }
  Result<std::vector<MetricValue>> evaluate(std::span<const std::string> names) override {
    std::vector<MetricValue> out;
    for (const std::string& name : names) {
      const MetricValue* value = find_metric(entry_.metrics, name);
      if (value == nullptr) {
        return fail(ErrorCode::kUnsupported, name, " was not recorded for this config");
      }
      out.push_back(*value);
    }
    return out;
  }

 private:
  RecordedEntry entry_;
  const FamilyInfo& info_;
};

class RecordedFamily;

class RecordedArtifact final : public Artifact {
 public:
  RecordedArtifact(const RecordedFamily& family, Config config)
      : family_(family), config_(std::move(config)) {}
  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override;

 private:
  const RecordedFamily& family_;
  Config config_;
};

class RecordedFamily final : public Family {
 public:
  RecordedFamily(FamilyInfo info, std::vector<Problem> problems,
                 std::unordered_map<Problem, std::shared_ptr<const Entries>> entries)
      : info_(std::move(info)), problems_(std::move(problems)), entries_(std::move(entries)) {}

  const FamilyInfo& info() const override { return info_; }
  std::span<const Problem> problems() const { return problems_; }
  Support supports(const Problem& problem) const override {
    return entries_.contains(problem) ? Support::yes()
                                      : Support::no("nothing was recorded for this problem");
  }
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    const auto found = entries_.find(problem);
    if (found == entries_.end()) {
      return fail(ErrorCode::kNotFound, supports(problem).reason());
    }
    std::vector<Config> configs;
    for (const RecordedEntry& entry : *found->second) {
      configs.push_back(entry.config);
    }
    return std::make_unique<ListedSpace>(info_.config_schema, std::move(configs), info_.space,
                                         problem, info_.fingerprint.hardware,
                                         "this config was not measured for this problem");
  }
  std::string artifact_key(const Problem& /*problem*/, const Config& config) const override {
    return to_text(info_.config_schema, config);
  }
  Result<std::unique_ptr<Artifact>> prepare(const Problem& /*problem*/,
                                            const Config& config) const override {
    return std::unique_ptr<Artifact>(std::make_unique<RecordedArtifact>(*this, config));
  }
  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t /*seed*/) const override {
    if (!entries_.contains(problem)) {
      return fail(ErrorCode::kNotFound, supports(problem).reason());
    }
    return std::unique_ptr<ProblemData>(std::make_unique<RecordedData>());
  }
  Result<RecordedEntry> entry(const Problem& problem, const Config& config) const {
    const auto found = entries_.find(problem);
    const RecordedEntry* entry =
        found == entries_.end() ? nullptr : find_entry(*found->second, config);
    if (entry == nullptr) {
      return fail(ErrorCode::kUnsupported, "this config was not measured for ",
                  problem.shown_text());
    }
    return *entry;
  }

 private:
  FamilyInfo info_;
  std::vector<Problem> problems_;
  std::unordered_map<Problem, std::shared_ptr<const Entries>> entries_;
};

Result<std::unique_ptr<Run>> RecordedArtifact::bind(const Problem& problem, ProblemData& /*data*/) {
  FORETUNE_TRY(RecordedEntry entry, family_.entry(problem, config_));
  switch (entry.outcome) {
    case RecordedOutcome::kRefused:
      return fail(ErrorCode::kUnsupported, "recorded as not supported: ", entry.reason);
    case RecordedOutcome::kFailed:
      return fail(ErrorCode::kInvalidArgument, "recorded as failed: ", entry.reason);
    case RecordedOutcome::kOk:
    case RecordedOutcome::kBound:
      break;
  }
  return std::unique_ptr<Run>(std::make_unique<RecordedRun>(std::move(entry), family_.info()));
}

Status check_row(const RecordedRow& row, std::size_t index, const RecordedTable& table,
                 std::uint64_t schema_id) {
  if (row.problem.type() != table.problem_type) {
    return fail(ErrorCode::kMismatch, "recorded row ", index, " is of another problem type");
  }
  if (row.config.schema != schema_id ||
      (table.schema.kind == SchemaKind::kParametric &&
       row.config.words.size() != table.schema.parameters.size())) {
    return fail(ErrorCode::kMismatch, "recorded row ", index, " has a config of another schema");
  }
  const bool timed = row.outcome == RecordedOutcome::kOk || row.outcome == RecordedOutcome::kBound;
  if (timed && !(row.time_ns > 0 && std::isfinite(row.time_ns))) {
    return fail(ErrorCode::kMismatch, "recorded row ", index, " has the time ", row.time_ns, " ns");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Family>> make_recorded(RecordedTable table) {
  if (table.rows.empty()) {
    return fail(ErrorCode::kInvalidArgument, "there are no recorded measurements",
                table.source.empty() ? "" : " in ", table.source);
  }
  if (table.schema.kind == SchemaKind::kParametric && table.schema.parameters.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the recorded configs have no parameters");
  }
  const std::uint64_t schema_id = table.schema.id();
  std::vector<Problem> problems;
  std::unordered_map<Problem, std::vector<const RecordedRow*>> by_problem;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    FORETUNE_TRY_STATUS(check_row(table.rows[i], i, table, schema_id));
    std::vector<const RecordedRow*>& rows = by_problem[table.rows[i].problem];
    if (rows.empty()) {
      problems.push_back(table.rows[i].problem);
    }
    rows.push_back(&table.rows[i]);
  }
  std::unordered_map<Problem, std::shared_ptr<const Entries>> entries;
  for (auto& [problem, rows] : by_problem) {
    entries.emplace(problem, std::make_shared<const Entries>(merge_problem(std::move(rows))));
  }
  if (!table.space && table.schema.kind == SchemaKind::kParametric) {
    table.space = SpaceDefinition{.schema = table.schema, .problem_type = table.problem_type};
  }
  if (table.space &&
      (table.space->schema != table.schema || table.space->problem_type != table.problem_type)) {
    return fail(ErrorCode::kMismatch, "the declared space is not that of the recorded configs");
  }
  FamilyInfo info;
  info.name = "recorded";
  info.description = concat("replays ", table.rows.size(), " measurements",
                            table.source.empty() ? "" : " of ", table.source);
  info.problem_type = table.problem_type;
  if (table.space) {
    FORETUNE_TRY(info.space, CompiledSpace::create(*std::move(table.space)));
  }
  info.config_schema = std::move(table.schema);
  info.fingerprint = std::move(table.fingerprint);
  info.feature_table = std::move(table.feature_table);
  info.max_threads = table.max_threads;
  info.metrics = std::move(table.metrics);
  info.needs_worker = false;
  info.simulated = true;
  return std::unique_ptr<Family>(
      std::make_unique<RecordedFamily>(std::move(info), std::move(problems), std::move(entries)));
}

std::span<const Problem> recorded_problems(const Family& family) {
  const auto* recorded = dynamic_cast<const RecordedFamily*>(&family);
  return recorded == nullptr ? std::span<const Problem>() : recorded->problems();
}

}  // namespace foretune
