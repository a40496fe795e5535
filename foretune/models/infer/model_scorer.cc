#include "foretune/models/infer/model_scorer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/forest_scorer.h"
#include "foretune/models/infer/model_kind.h"
#include "foretune/models/infer/network_scorer.h"
#include "foretune/models/infer/pool_columns.h"

namespace foretune {
namespace {

using PoolResult = Result<std::unique_ptr<PreparedPool>>;
using Words = std::span<const std::int32_t>;

// Forests and networks together: a weighted mean. What each takes for 0 is its own, so that the
// spread between the two is that of their scores over the candidates, each without its mean.
class MixedPool final : public PreparedPool {
 public:
  MixedPool(std::unique_ptr<PreparedPool> forests, std::unique_ptr<PreparedPool> networks,
            double share)
      : forests_(std::move(forests)), networks_(std::move(networks)), share_(share) {}

  std::size_t size() const override { return forests_->size(); }
  std::size_t workspace_bytes() const override {
    return kPoolAlignment + pool_aligned(size() * sizeof(double)) +
           std::max(forests_->workspace_bytes(), networks_->workspace_bytes());
  }

  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    FORETUNE_CHECK(workspace.size() >= workspace_bytes());
    void* start = workspace.data();
    std::size_t space = workspace.size();
    auto* base = static_cast<std::byte*>(
        std::align(kPoolAlignment, pool_aligned(size() * sizeof(double)), start, space));
    const std::span of_networks(reinterpret_cast<double*>(base), size());
    const std::span rest =
        workspace.last(workspace.size() - static_cast<std::size_t>(base - workspace.data()) -
                       pool_aligned(size() * sizeof(double)));
    networks_->score(problem, rest, of_networks, {});
    forests_->score(problem, rest, scores, uncertainty);
    double shift = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      shift += (of_networks[i] - scores[i]) / static_cast<double>(size());
    }
    for (std::size_t i = 0; i < size(); ++i) {
      const double difference = of_networks[i] - scores[i];
      scores[i] += share_ * difference;
      if (!uncertainty.empty()) {
        uncertainty[i] =
            std::hypot(uncertainty[i], std::sqrt(share_ * (1 - share_)) * (difference - shift));
      }
    }
  }

 private:
  std::unique_ptr<PreparedPool> forests_;
  std::unique_ptr<PreparedPool> networks_;
  double share_;
};

class MixedScorer final : public Scorer {
 public:
  MixedScorer(std::unique_ptr<Scorer> forests, std::unique_ptr<Scorer> networks, double share)
      : forests_(std::move(forests)), networks_(std::move(networks)), share_(share) {}
  std::string_view kind() const override { return "ensemble"; }
  PoolResult prepare(ConfigWords configs, const Hardware& hardware) const override {
    FORETUNE_TRY(std::unique_ptr<PreparedPool> forests, forests_->prepare(configs, hardware));
    FORETUNE_TRY(std::unique_ptr<PreparedPool> networks, networks_->prepare(configs, hardware));
    return std::make_unique<MixedPool>(std::move(forests), std::move(networks), share_);
  }

 private:
  std::unique_ptr<Scorer> forests_;
  std::unique_ptr<Scorer> networks_;
  double share_;
};

std::size_t field_count(const Model& model) {
  const ProblemSchema* const schema = find_problem_schema(model.problem_type);
  return schema == nullptr ? 0 : schema->fields.size();
}

Result<std::unique_ptr<Scorer>> forest_scorer(const Model& model, const FeatureTable& table) {
  return ForestScorer::create(model.forests, table, model.residual_std);
}

Result<std::unique_ptr<Scorer>> network_scorer(const Model& model, const FeatureTable& table) {
  return NetworkScorer::create(model.networks, table, field_count(model), model.residual_std);
}

Result<std::unique_ptr<Scorer>> mixed_scorer(const Model& model, const FeatureTable& table) {
  FORETUNE_TRY(std::unique_ptr<Scorer> forests, forest_scorer(model, table));
  FORETUNE_TRY(std::unique_ptr<Scorer> networks, network_scorer(model, table));
  return std::make_unique<MixedScorer>(std::move(forests), std::move(networks),
                                       model.network_share);
}

PoolResult prepare_forests(const Model& model, const FeatureTable& table, ConfigWords configs) {
  return ForestScorer::prepare_checked(model.forests, table, model.residual_std, configs,
                                       model.fingerprint.hardware);
}

PoolResult prepare_networks(const Model& model, const FeatureTable& table, ConfigWords configs) {
  return NetworkScorer::prepare_checked(model.networks, table, model.residual_std, configs,
                                        model.fingerprint.hardware);
}

PoolResult prepare_mixed(const Model& model, const FeatureTable& table, ConfigWords configs) {
  FORETUNE_TRY(std::unique_ptr<PreparedPool> forests, prepare_forests(model, table, configs));
  FORETUNE_TRY(std::unique_ptr<PreparedPool> networks, prepare_networks(model, table, configs));
  return std::make_unique<MixedPool>(std::move(forests), std::move(networks), model.network_share);
}

// A column for each metric, each scored by a model of its own.
class MetricsPool final : public PreparedPool {
 public:
  explicit MetricsPool(std::vector<std::unique_ptr<PreparedPool>> parts)
      : parts_(std::move(parts)) {}

  std::size_t size() const override { return parts_.front()->size(); }
  std::size_t column_count() const override { return parts_.size(); }
  std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const std::unique_ptr<PreparedPool>& part : parts_) {
      bytes = std::max(bytes, part->workspace_bytes());
    }
    return bytes;
  }
  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    parts_.front()->score(problem, workspace, scores, uncertainty);
  }
  void score_column(std::size_t column, const Problem& problem, std::span<std::byte> workspace,
                    std::span<double> scores,
                    std::span<double> uncertainty) const noexcept override {
    FORETUNE_CHECK(column < parts_.size());
    parts_[column]->score(problem, workspace, scores, uncertainty);
  }

 private:
  std::vector<std::unique_ptr<PreparedPool>> parts_;
};

class MetricsScorer final : public Scorer {
 public:
  explicit MetricsScorer(std::vector<std::unique_ptr<Scorer>> parts) : parts_(std::move(parts)) {}
  std::string_view kind() const override { return "metrics"; }
  PoolResult prepare(ConfigWords configs, const Hardware& hardware) const override {
    std::vector<std::unique_ptr<PreparedPool>> pools;
    for (const std::unique_ptr<Scorer>& part : parts_) {
      FORETUNE_TRY(pools.emplace_back(), part->prepare(configs, hardware));
    }
    return std::make_unique<MetricsPool>(std::move(pools));
  }

 private:
  std::vector<std::unique_ptr<Scorer>> parts_;
};

Status check_has_metrics(const Model& model) {
  return model.metrics.empty() ? fail(ErrorCode::kCorrupt, "the model has no metrics") : Status();
}

Result<std::unique_ptr<Scorer>> metrics_scorer(const Model& model, const FeatureTable& /*table*/) {
  FORETUNE_TRY_STATUS(check_has_metrics(model));
  std::vector<std::unique_ptr<Scorer>> parts;
  for (const MetricModel& part : model.metrics) {
    FORETUNE_TRY(parts.emplace_back(), make_scorer(*part.model));
  }
  return std::make_unique<MetricsScorer>(std::move(parts));
}

PoolResult prepare_metrics(const Model& model, const FeatureTable& /*table*/, ConfigWords configs) {
  FORETUNE_TRY_STATUS(check_has_metrics(model));
  std::vector<std::unique_ptr<PreparedPool>> pools;
  for (const MetricModel& part : model.metrics) {
    FORETUNE_TRY(pools.emplace_back(), prepare_checked(*part.model, configs));
  }
  return std::make_unique<MetricsPool>(std::move(pools));
}

constexpr std::array kKinds{
    ModelKind{"gbdt", true, false, false, &forest_scorer, &prepare_forests},
    ModelKind{"network", false, true, false, &network_scorer, &prepare_networks},
    ModelKind{"ensemble", true, true, false, &mixed_scorer, &prepare_mixed},
    ModelKind{"metrics", false, false, true, &metrics_scorer, &prepare_metrics}};

Status check_type(const Model& model, const Problem& problem) {
  return problem.type() == model.problem_type
             ? Status()
             : fail(ErrorCode::kMismatch, "the model is not for problems like '", problem.text(),
                    "'");
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

Result<const ModelKind*> kind_of(const Model& model) {
  const auto* const found = std::find_if(
      kKinds.begin(), kKinds.end(), [&](const ModelKind& kind) { return kind.name == model.kind; });
  if (found == kKinds.end()) {
    return fail(ErrorCode::kUnsupported, "models of kind '",
                std::string_view(model.kind).substr(0, 40), "' are not known to this version");
  }
  return found;
}

Result<std::unique_ptr<Scorer>> make_scorer(const Model& model) {
  FORETUNE_TRY(const ModelKind* const kind, kind_of(model));
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  if (feature_table_id(*table) != model.feature_table_id) {
    return fail(ErrorCode::kMismatch,
                "the model was trained on another version of the feature table ",
                model.feature_table);
  }
  FORETUNE_TRY(std::unique_ptr<Scorer> scorer, kind->make_scorer(model, *table));
  scorer->columns_ = columns_of(model);
  return scorer;
}

std::vector<ScoreColumn> columns_of(const Model& model) {
  std::vector<ScoreColumn> out;
  for (const MetricModel& part : model.metrics) {
    out.push_back({.metric = part.metric, .scale = part.scale, .is_absolute = true});
  }
  if (out.empty()) {
    out.push_back({.is_absolute = model.target == "log"});
  }
  return out;
}

const Model& scoring_model(const Model& model) {
  return model.metrics.empty() ? model : *model.metrics.front().model;
}

PoolResult prepare_checked(const Model& model, ConfigWords configs) {
  FORETUNE_TRY(const ModelKind* const kind, kind_of(model));
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
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
  const Model& model = scoring_model(whole);
  FORETUNE_TRY([[maybe_unused]] const ModelKind* const kind, kind_of(model));
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  // Networks read the fields themselves, which mean something else in another type.
  if (!model.networks.empty() || !table->supports(problem.type(), model.config_schema)) {
    FORETUNE_TRY_STATUS(check_type(model, problem));
  }
  std::vector<double> row(table->columns().size());
  feature_row(*table, problem, model.fingerprint.hardware, config, row);
  double of_forests = 0;
  for (const Forest& forest : model.forests) {
    of_forests += predict_reference(forest, row);
  }
  // The same order of operations as the pools have, for the same bits.
  of_forests /= model.forests.empty() ? 1 : static_cast<double>(model.forests.size());
  double of_networks = 0;
  for (const Network& network : model.networks) {
    of_networks += predict_reference(network, row, problem.fields());
  }
  if (model.networks.empty()) {
    return of_forests;
  }
  of_networks /= static_cast<double>(model.networks.size());
  return model.forests.empty() ? of_networks
                               : of_forests + model.network_share * (of_networks - of_forests);
}

}  // namespace foretune
