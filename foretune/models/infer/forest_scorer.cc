#include "foretune/models/infer/forest_scorer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/models/infer/forest_engine.h"

namespace foretune {
namespace {

constexpr std::size_t kAlignment = 64;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class ForestPool final : public PreparedPool {
 public:
  ForestPool(const FeatureTable& table, const Hardware& hardware,
             std::span<const std::int32_t> words, std::size_t width, double residual_std)
      : table_(table),
        hardware_(hardware),
        words_(words.begin(), words.end()),
        width_(width),
        size_(words.size() / width),
        residual_variance_(residual_std * residual_std),
        problem_columns_(feature_count(table, FeatureKind::kProblem)),
        interaction_columns_(feature_count(table, FeatureKind::kInteraction)) {}

  Status add_forests(const std::vector<Forest>& forests, CpuIsa isa) {
    std::vector<FeatureKind> kinds;
    for (const FeatureInfo& info : table_.columns()) {
      kinds.push_back(info.kind);
    }
    const std::vector<double> config_columns = config_features();
    problem_offset_ = 0;
    chunk_offset_ = aligned(problem_columns_ * sizeof(double));
    codes_offset_ = chunk_offset_ + aligned(interaction_columns_ * kEngineBlock * sizeof(double));
    std::size_t codes = 0;
    std::size_t scratch = 0;
    for (const Forest& forest : forests) {
      FORETUNE_TRY(std::unique_ptr<ForestEngine> engine,
                   ForestEngine::create(forest, kinds, config_columns, size_, isa));
      codes += engine->codes_bytes();
      scratch = std::max(scratch, engine->scratch_bytes());
      engines_.push_back(std::move(engine));
    }
    scratch_offset_ = codes_offset_ + codes;
    // Room to align it.
    workspace_bytes_ = scratch_offset_ + scratch + kAlignment;
    return {};
  }

  std::size_t size() const override { return size_; }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    FORETUNE_CHECK(workspace.size() >= workspace_bytes_ && scores.size() == size_);
    FORETUNE_CHECK(uncertainty.empty() || uncertainty.size() == size_);
    void* start = workspace.data();
    std::size_t space = workspace.size();
    auto* base = static_cast<std::byte*>(
        std::align(kAlignment, workspace_bytes_ - kAlignment, start, space));
    const std::span problem_row(reinterpret_cast<double*>(base + problem_offset_),
                                problem_columns_);
    table_.problem_row(problem, hardware_, problem_row);
    add_interactions(problem, base);
    std::byte* codes = base + codes_offset_;
    for (std::size_t f = 0; f < engines_.size(); ++f) {
      const ForestEngine& engine = *engines_[f];
      engine.run(codes, base + scratch_offset_, problem_row);
      codes += engine.codes_bytes();
      add_scores(f, base + scratch_offset_, scores, uncertainty);
    }
    finish(scores, uncertainty);
  }

 private:
  std::vector<double> config_features() const {
    const std::size_t columns = feature_count(table_, FeatureKind::kConfig);
    std::vector<double> row(columns);
    std::vector<double> out(columns * size_);
    for (std::size_t i = 0; i < size_; ++i) {
      table_.config_row(std::span(words_).subspan(i * width_, width_), row);
      for (std::size_t c = 0; c < columns; ++c) {
        out[c * size_ + i] = row[c];
      }
    }
    return out;
  }

  // In chunks, so that the columns stay in the first cache levels until they are codes.
  void add_interactions(const Problem& problem, std::byte* base) const {
    auto* columns = reinterpret_cast<double*>(base + chunk_offset_);
    std::byte* codes = base + codes_offset_;
    for (const auto& engine : engines_) {
      engine->begin(codes);
      codes += engine->codes_bytes();
    }
    for (std::size_t first = 0; first < size_; first += kEngineBlock) {
      const std::size_t count = std::min(kEngineBlock, size_ - first);
      table_.interaction_columns(
          problem, hardware_, std::span(words_).subspan(first * width_, count * width_), width_,
          std::span(columns, interaction_columns_ * kEngineBlock), kEngineBlock);
      codes = base + codes_offset_;
      for (const auto& engine : engines_) {
        engine->add_chunk(codes, first, count, columns, kEngineBlock);
        codes += engine->codes_bytes();
      }
    }
  }

  // Sums in `scores`; in `uncertainty` the sums of squared distances from the mean so far
  // (Welford 1962).
  void add_scores(std::size_t index, const std::byte* scratch, std::span<double> scores,
                  std::span<double> uncertainty) const {
    const ForestEngine& engine = *engines_[index];
    const auto before = static_cast<double>(index);
    for (std::size_t i = 0; i < size_; ++i) {
      const double score = engine.sum(scratch, i);
      if (!uncertainty.empty()) {
        const double distance = index == 0 ? 0 : score - scores[i] / before;
        uncertainty[i] =
            index == 0 ? 0 : uncertainty[i] + distance * distance * before / (before + 1);
      }
      scores[i] = index == 0 ? score : scores[i] + score;
    }
  }

  void finish(std::span<double> scores, std::span<double> uncertainty) const {
    const auto count = static_cast<double>(engines_.size());
    if (engines_.size() > 1) {
      for (double& score : scores) {
        score /= count;
      }
    }
    for (double& value : uncertainty) {
      const double variance = engines_.size() > 1 ? value / (count - 1) : 0;
      value = std::sqrt(residual_variance_ + variance);
    }
  }

  const FeatureTable& table_;
  Hardware hardware_;
  std::vector<std::int32_t> words_;
  std::size_t width_;
  std::size_t size_;
  double residual_variance_;
  std::size_t problem_columns_;
  std::size_t interaction_columns_;
  std::vector<std::unique_ptr<ForestEngine>> engines_;
  std::size_t problem_offset_ = 0;
  std::size_t chunk_offset_ = 0;
  std::size_t codes_offset_ = 0;
  std::size_t scratch_offset_ = 0;
  std::size_t workspace_bytes_ = 0;
};

Result<std::unique_ptr<Scorer>> make_forest_scorer(const Model& model) {
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  if (feature_table_id(*table) != model.feature_table_id) {
    return fail(ErrorCode::kMismatch,
                "the model was trained on another version of the feature table ",
                model.feature_table);
  }
  FORETUNE_TRY(std::unique_ptr<Scorer> scorer,
               ForestScorer::create(model.forests, *table, model.residual_std));
  return scorer;
}

Result<std::unique_ptr<PreparedPool>> prepare_forests(const std::vector<Forest>& forests,
                                                      const FeatureTable& table,
                                                      double residual_std, CpuIsa isa,
                                                      std::span<const std::int32_t> words,
                                                      std::size_t width, const Hardware& hardware) {
  if (width == 0 || words.empty() || words.size() % width != 0) {
    return fail(ErrorCode::kInvalidArgument, words.size(), " words are not configs of ", width,
                " words");
  }
  auto pool = std::make_unique<ForestPool>(table, hardware, words, width, residual_std);
  FORETUNE_TRY_STATUS(pool->add_forests(forests, isa));
  return pool;
}

Result<std::unique_ptr<PreparedPool>> prepare_forest_model(const Model& model,
                                                           std::span<const std::int32_t> words,
                                                           std::size_t width) {
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  return prepare_forests(model.forests, *table, model.residual_std, best_cpu_isa(), words, width,
                         model.fingerprint.hardware);
}

struct ModelKind {
  std::string_view name;
  Result<std::unique_ptr<Scorer>> (*make_scorer)(const Model& model);
  Result<std::unique_ptr<PreparedPool>> (*prepare)(const Model& model,
                                                   std::span<const std::int32_t> words,
                                                   std::size_t width);
};

constexpr std::array kKinds{ModelKind{"gbdt", &make_forest_scorer, &prepare_forest_model}};

Result<const ModelKind*> kind_of(const Model& model) {
  const auto* const found = std::find_if(
      kKinds.begin(), kKinds.end(), [&](const ModelKind& kind) { return kind.name == model.kind; });
  if (found == kKinds.end()) {
    return fail(ErrorCode::kUnsupported, "models of kind '",
                std::string_view(model.kind).substr(0, 40), "' are not known to this version");
  }
  return found;
}

Status check_scored(const Model& model, const Problem& problem, const Config& config) {
  if (problem.type() != model.problem_type) {
    return fail(ErrorCode::kMismatch, "the model is not for problems like '", problem.text(), "'");
  }
  if (config.schema != model.config_schema.id() ||
      config.words.size() != model.config_schema.parameters.size()) {
    return fail(ErrorCode::kMismatch, "the model scores configs of ", model.config_schema.name);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ForestScorer>> ForestScorer::create(std::vector<Forest> forests,
                                                           const FeatureTable& table,
                                                           double residual_std, CpuIsa isa) {
  if (forests.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a model without a forest cannot score");
  }
  if (!(residual_std >= 0 && std::isfinite(residual_std))) {
    return fail(ErrorCode::kInvalidArgument, "the residual of the model is not a number from 0");
  }
  for (const Forest& forest : forests) {
    FORETUNE_TRY_STATUS(forest.validate());
    if (forest.feature_count != table.columns().size()) {
      return fail(ErrorCode::kMismatch, "the forest has ", forest.feature_count,
                  " features, the feature table ", table.name(), " has ", table.columns().size());
    }
  }
  std::unique_ptr<ForestScorer> scorer(new ForestScorer());
  scorer->forests_ = std::move(forests);
  scorer->table_ = &table;
  scorer->residual_std_ = residual_std;
  scorer->isa_ = isa;
  return scorer;
}

Result<std::unique_ptr<PreparedPool>> ForestScorer::prepare(std::span<const std::int32_t> words,
                                                            std::size_t width,
                                                            const Hardware& hardware) const {
  return prepare_forests(forests_, *table_, residual_std_, isa_, words, width, hardware);
}

Result<std::unique_ptr<Scorer>> make_scorer(const Model& model) {
  FORETUNE_TRY(const ModelKind* const kind, kind_of(model));
  return kind->make_scorer(model);
}

Result<std::unique_ptr<PreparedPool>> prepare_checked(const Model& model,
                                                      std::span<const std::int32_t> words,
                                                      std::size_t width) {
  FORETUNE_TRY(const ModelKind* const kind, kind_of(model));
  return kind->prepare(model, words, width);
}

Result<std::vector<double>> score_configs(const Model& model, const Problem& problem,
                                          std::span<const Config> configs) {
  std::vector<std::int32_t> words;
  for (const Config& config : configs) {
    FORETUNE_TRY_STATUS(check_scored(model, problem, config));
    words.insert(words.end(), config.words.begin(), config.words.end());
  }
  std::vector<double> scores(configs.size());
  if (configs.empty()) {
    return scores;
  }
  FORETUNE_TRY(const std::unique_ptr<PreparedPool> pool,
               prepare_checked(model, words, model.config_schema.parameters.size()));
  std::vector<std::byte> workspace(pool->workspace_bytes());
  pool->score(problem, workspace, scores, {});
  return scores;
}

Result<double> score_config(const Model& model, const Problem& problem, const Config& config) {
  FORETUNE_TRY_STATUS(check_scored(model, problem, config));
  FORETUNE_TRY([[maybe_unused]] const ModelKind* const kind, kind_of(model));
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  std::vector<double> row(table->columns().size());
  feature_row(*table, problem, model.fingerprint.hardware, config, row);
  double sum = 0;
  for (const Forest& forest : model.forests) {
    sum += predict_reference(forest, row);
  }
  return sum / static_cast<double>(model.forests.size());
}

}  // namespace foretune
