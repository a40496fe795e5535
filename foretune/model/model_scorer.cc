#include "foretune/model/model_scorer.h"

#include <algorithm>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_kind.h"

namespace foretune {
namespace {

using PoolResult = Result<std::unique_ptr<PreparedPool>>;

Status check_type(const Model& model, const Problem& problem) {
  return problem.type() == model.problem_type
             ? Status()
             : fail(ErrorCode::kMismatch, "the model is not for problems like '",
                    problem.shown_text(), "'");
}

Status check_schema(const Model& model, const Config& config) {
  if (config.schema != model.config_schema.id() ||
      (model.config_schema.kind == SchemaKind::kParametric &&
       config.words.size() != model.config_schema.parameters.size())) {
    return fail(ErrorCode::kMismatch, "the model scores configs of ", model.config_schema.name);
  }
  return {};
}

}  // namespace

void PreparedPool::score_column(std::size_t column, const Problem& problem,
                                std::span<std::byte> workspace, std::span<double> scores,
                                std::span<double> uncertainty) const noexcept {
  FORETUNE_CHECK(column == 0);
  score(problem, workspace, scores, uncertainty);
}

void PreparedPool::score_columns(const Problem& problem, std::span<std::byte> workspace,
                                 std::span<double> scores,
                                 std::span<double> uncertainty) const noexcept {
  const std::size_t columns = column_count();
  FORETUNE_CHECK(scores.size() == columns * size());
  FORETUNE_CHECK(uncertainty.empty() || uncertainty.size() == scores.size());
  for (std::size_t c = 0; c < columns; ++c) {
    score_column(c, problem, workspace, scores.subspan(c * size(), size()),
                 uncertainty.empty() ? uncertainty : uncertainty.subspan(c * size(), size()));
  }
}

Result<std::unique_ptr<Scorer>> make_scorer(const Model& model) {
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  FORETUNE_TRY(std::unique_ptr<Scorer> scorer, kind->make_scorer(model, *table));
  scorer->columns_ = columns_of(model);
  return scorer;
}

std::vector<ScoreColumn> columns_of(const Model& model) {
  const auto kind = find_model_kind(model.kind);
  return kind && (*kind)->columns != nullptr
             ? (*kind)->columns(model)
             : std::vector<ScoreColumn>{{.is_absolute = model.target == "log"}};
}

const Model& column_model(const Model& model, std::size_t column) {
  const auto kind = find_model_kind(model.kind);
  return kind && (*kind)->column_model != nullptr ? (*kind)->column_model(model, column) : model;
}

PoolResult prepare_checked(const Model& model, ConfigWords configs) {
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  return kind->prepare(model, *table, configs);
}

Result<std::vector<double>> score_configs(const Model& model, const Problem& problem,
                                          std::span<const Config> configs) {
  ConfigList list(model.config_schema);
  for (const Config& config : configs) {
    FORETUNE_TRY_STATUS(check_type(model, problem));
    FORETUNE_TRY_STATUS(check_schema(model, config));
    list.add(config.words.view());
  }
  std::vector<double> scores(configs.size());
  if (configs.empty()) {
    return scores;
  }
  FORETUNE_TRY(const std::unique_ptr<PreparedPool> pool, prepare_checked(model, list));
  std::vector<std::byte> workspace(pool->workspace_bytes());
  pool->score(problem, workspace, scores, {});
  return scores;
}

Result<double> score_config(const Model& whole, const Problem& problem, const Config& config) {
  FORETUNE_TRY_STATUS(check_schema(whole, config));
  const Model& model = column_model(whole, 0);
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  if (kind->reads_fields || !table->supports(problem.type(), model.config_schema)) {
    FORETUNE_TRY_STATUS(check_type(model, problem));
  }
  std::vector<double> row(table->columns().size());
  feature_row(*table, problem, model.fingerprint.hardware, config, row);
  return kind->reference_score(model, row, problem);
}

}  // namespace foretune
