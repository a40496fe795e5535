// The family that replays measurements: kernels that cannot run here (another GPU, a public data
// set) are searched, trained on and validated on like live ones. It works on a table in memory and
// knows no file format.
//
//   RecordedTable table{.schema = triton_gemm_schema(), .fingerprint = h200_fingerprint()};
//   table.rows.push_back({problem, config, 5574.0});
//   FORETUNE_TRY(auto family, make_recorded(std::move(table)));
//
// The space of a problem holds the configs that were recorded for it; the family refuses a problem
// that is not in the table. FamilyInfo::space declares, for models, which configs would be legal
// for other problems.
// Thread safety: as every Family. Cost: a row takes about 100 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"

namespace foretune {

// The outcome of measuring a recorded config.
enum class RecordedOutcome : std::uint8_t {
  kOk,
  kBound,    // time_ns is a lower bound
  kRefused,  // not supported there
  kFailed,   // crashed, hung, wrong or not prepared there
};

struct RecordedRow {
  Problem problem;
  Config config;
  double time_ns = 0;
  double spread = 0;
  RecordedOutcome outcome = RecordedOutcome::kOk;
  std::string reason;                     // of kRefused and kFailed
  std::vector<MetricValue> metrics = {};  // of kOk and kBound, besides the time
};

struct RecordedTable {
  ConfigSchema schema;
  ProblemType problem_type{};
  // Says which configs are legal for any problem; nothing: only the schema is declared.
  std::optional<SpaceDefinition> space;
  Fingerprint fingerprint;               // of the device on which the times were measured
  std::string feature_table;             // empty when none fits
  std::string source;                    // for descriptions: the file's name
  int max_threads = 1;                   // that the recorded kernels were allowed
  std::vector<MetricInfo> metrics = {};  // that rows have besides the time
  // When a (problem, config) pair has several rows, ok rows take precedence over bounds, and bounds
  // over failures. Among several ok rows the median time counts, among bounds the largest.
  std::vector<RecordedRow> rows;
};

// Errors: kInvalidArgument for an empty table or one without parameters, kMismatch for a row of
// another problem type or schema, or with a time that is not positive.
Result<std::unique_ptr<Family>> make_recorded(RecordedTable table);

// Returns the problems of a recorded family, in the order of their first rows; empty for any other
// family.
std::span<const Problem> recorded_problems(const Family& family);

}  // namespace foretune
