#include "foretune/model/train/training_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "foretune/interop/ck/ck_engine.h"

namespace foretune::train_internal {
namespace {

// The share of its weight that a time keeps when neighbours disturbed it.
constexpr float kDisturbedShare = 0.3F;

bool is_disturbed(const Dataset::Row& row) { return (row.flags & kFlagLoaded) != 0; }

// Lower is better.
std::tuple<int, int, int> preference(const Dataset::Row& row) {
  return {row.outcome == Outcome::kOk ? 0 : 1, is_disturbed(row) ? 1 : 0,
          (row.flags & kFlagReference) != 0 ? 0 : 1};
}

// The best time of each problem; one that was disturbed only where there is no other.
std::vector<float> best_times(const Dataset& dataset, const std::vector<bool>& preferred) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  std::vector<float> best(dataset.problems().size(), kNone);
  std::vector<float> disturbed = best;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    if (preferred[i] && row.outcome == Outcome::kOk) {
      float& of_problem = (is_disturbed(row) ? disturbed : best)[row.problem];
      of_problem = std::min(of_problem, row.time_ns);
    }
  }
  for (std::size_t p = 0; p < best.size(); ++p) {
    best[p] = best[p] == kNone ? disturbed[p] : best[p];
  }
  return best;
}

float row_weight(double relative, double weight_decay) {
  return static_cast<float>(std::max(0.05, std::exp(-weight_decay * std::max(0.0, relative))));
}

}  // namespace

std::vector<bool> preferred_rows(const Dataset& dataset) {
  std::unordered_map<std::uint64_t, RowIndex> chosen;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    if (!row.has_time()) {
      continue;
    }
    const std::uint64_t key = (std::uint64_t{row.problem} << 32U) | row.config;
    const auto [found, is_new] = chosen.emplace(key, i);
    if (!is_new && preference(row) < preference(dataset.rows()[found->second])) {
      found->second = i;
    }
  }
  std::vector<bool> out(dataset.size(), false);
  for (const auto& [key, row] : chosen) {
    out[row] = true;
  }
  return out;
}

Result<TrainingSet> make_training_set(const Dataset& dataset, const FeatureTable& table,
                                      double weight_decay) {
  TrainingSet out;
  out.matrix.columns = table.columns().size();
  const std::vector<bool> preferred = preferred_rows(dataset);
  const std::vector<float> best = best_times(dataset, preferred);
  // One for each machine of Dataset::by_machine().
  std::map<std::uint64_t, Hardware> hardware;
  std::vector<double> features(out.matrix.columns);
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    if (!row.has_time()) {
      out.failed_rows += row.outcome == Outcome::kOk || row.stage == Stage::kEvaluate ? 0U : 1U;
      continue;
    }
    if (!preferred[i] || !std::isfinite(best[row.problem])) {
      continue;
    }
    const Problem& problem = dataset.problems()[row.problem];
    auto facts = hardware.find(problem.machine());
    if (facts == hardware.end()) {
      facts = hardware
                  .emplace(problem.machine(),
                           engine_fingerprint(table, dataset.machine_of(problem)).hardware)
                  .first;
    }
    feature_row(table, problem, facts->second, dataset.configs()[row.config], features);
    out.matrix.values.insert(out.matrix.values.end(), features.begin(), features.end());
    const auto relative =
        std::log(static_cast<double>(row.time_ns) / static_cast<double>(best[row.problem]));
    out.row.push_back(i);
    out.problem.push_back(row.problem);
    out.log_time.push_back(static_cast<float>(std::log(static_cast<double>(row.time_ns))));
    out.relative.push_back(static_cast<float>(relative));
    out.censored.push_back(row.outcome == Outcome::kCensored);
    out.trust.push_back(is_disturbed(row) ? kDisturbedShare : 1.0F);
    out.weight.push_back(row_weight(relative, weight_decay) * out.trust.back());
  }
  if (out.size() == 0) {
    return fail(ErrorCode::kInvalidArgument, "the data set holds no successful measurement");
  }
  return out;
}

Result<const FeatureTable*> table_for(const Dataset& dataset, const std::string& name) {
  const DatasetHeader& header = dataset.header();
  if (!name.empty()) {
    FORETUNE_TRY(const FeatureTable* table, find_feature_table(name));
    if (const Support support = table->supports(header.problem_type, header.config_schema);
        !support) {
      return fail(ErrorCode::kMismatch, support.reason());
    }
    return table;
  }
  for (const FeatureTable* table : feature_tables()) {
    if (table->supports(header.problem_type, header.config_schema)) {
      return table;
    }
  }
  return fail(ErrorCode::kUnsupported, "no feature table of this version describes configs of ",
              header.config_schema.name, " v", header.config_schema.version);
}

Result<TrainingData> training_data(const Dataset& dataset, const TrainOptions& options) {
  TrainingData out;
  FORETUNE_TRY(out.table, table_for(dataset, options.feature_table));
  FORETUNE_TRY(out.set, make_training_set(dataset, *out.table, options.weight_decay));
  if (out.set.size() < kFewestExamples) {
    return fail(ErrorCode::kInvalidArgument,
                "the data set holds one successful measurement, and a model compares at least two");
  }
  const std::vector<std::string_view> names(options.without_columns.begin(),
                                            options.without_columns.end());
  FORETUNE_TRY(const std::vector<std::uint16_t> found, find_columns(*out.table, names));
  out.set.matrix.left_out.assign(found.begin(), found.end());
  if (!options.base_column.empty()) {
    const std::vector<std::string_view> base{options.base_column};
    FORETUNE_TRY(const std::vector<std::uint16_t> column, find_columns(*out.table, base));
    if (out.table->columns()[column.front()].is_categorical) {
      return fail(ErrorCode::kInvalidArgument, "trees cannot begin with ", options.base_column,
                  ", whose numbers are labels");
    }
    out.set.base_column = column.front();
  }
  return out;
}

std::vector<double> predictions_of(const Forest& forest, const TrainingSet& set, std::size_t step) {
  const std::size_t columns = set.matrix.columns;
  std::vector<double> out(set.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < out.size(); i += step) {
    out[i] = predict_reference(forest, std::span(set.matrix.values).subspan(i * columns, columns));
  }
  return out;
}

std::vector<float> weights_of(const TrainingSet& set, double weight_decay) {
  std::vector<float> out;
  for (std::size_t i = 0; i < set.size(); ++i) {
    out.push_back(row_weight(static_cast<double>(set.relative[i]), weight_decay) * set.trust[i]);
  }
  return out;
}

}  // namespace foretune::train_internal
