#include "foretune/model/forest/forest_scorer.h"

#include <algorithm>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/model/forest/forest_engine.h"
#include "foretune/model/internal/score_mean.h"
#include "foretune/model/pool_columns.h"

namespace foretune {
namespace {

class ForestPool final : public PreparedPool {
 public:
  ForestPool(const FeatureTable& table, const Hardware& hardware, ConfigWords configs,
             double residual_std)
      : table_(table),
        hardware_(hardware),
        configs_(configs),
        size_(configs.size()),
        residual_variance_(residual_std * residual_std),
        problem_columns_(feature_count(table, FeatureKind::kProblem)),
        interaction_columns_(feature_count(table, FeatureKind::kInteraction)) {}

  Status add_forests(const std::vector<Forest>& forests, CpuIsa isa) {
    std::vector<FeatureKind> kinds;
    for (const FeatureInfo& info : table_.columns()) {
      kinds.push_back(info.kind);
    }
    const std::vector<double> of_configs = config_columns(table_, configs_);
    problem_offset_ = 0;
    chunk_offset_ = pool_aligned(problem_columns_ * sizeof(double));
    codes_offset_ =
        chunk_offset_ + pool_aligned(interaction_columns_ * kEngineBlock * sizeof(double));
    std::size_t codes = 0;
    std::size_t scratch = 0;
    for (const Forest& forest : forests) {
      FORETUNE_TRY(std::unique_ptr<ForestEngine> engine,
                   ForestEngine::create(forest, kinds, of_configs, size_, isa));
      codes += engine->codes_bytes();
      scratch = std::max(scratch, engine->scratch_bytes());
      engines_.push_back(std::move(engine));
    }
    scratch_offset_ = codes_offset_ + codes;
    // Room to align it.
    workspace_bytes_ = scratch_offset_ + scratch + kPoolAlignment;
    return {};
  }

  std::size_t size() const override { return size_; }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    FORETUNE_CHECK(workspace.size() >= workspace_bytes_ && scores.size() == size_);
    FORETUNE_CHECK(uncertainty.empty() || uncertainty.size() == size_);
    auto* base = pool_base(workspace, workspace_bytes_ - kPoolAlignment);
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
    finish_scores(engines_.size(), residual_variance_, scores, uncertainty);
  }

 private:
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
      table_.interaction_columns(problem, hardware_, configs_.view().subspan(first, count),
                                 std::span(columns, interaction_columns_ * kEngineBlock),
                                 kEngineBlock);
      codes = base + codes_offset_;
      for (const auto& engine : engines_) {
        engine->add_chunk(codes, first, count, columns, kEngineBlock);
        codes += engine->codes_bytes();
      }
    }
  }

  void add_scores(std::size_t index, const std::byte* scratch, std::span<double> scores,
                  std::span<double> uncertainty) const {
    for (std::size_t i = 0; i < size_; ++i) {
      add_score(index, i, engines_[index]->sum(scratch, i), scores, uncertainty);
    }
  }

  const FeatureTable& table_;
  Hardware hardware_;
  ConfigList configs_;
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

}  // namespace

Result<std::unique_ptr<PreparedPool>> ForestScorer::prepare_checked(
    const std::vector<Forest>& forests, const FeatureTable& table, double residual_std,
    ConfigWords configs, const Hardware& hardware, CpuIsa isa) {
  FORETUNE_TRY_STATUS(check_pool_configs(configs));
  auto pool = std::make_unique<ForestPool>(table, hardware, configs, residual_std);
  FORETUNE_TRY_STATUS(pool->add_forests(forests, isa));
  return pool;
}

Result<std::unique_ptr<ForestScorer>> ForestScorer::create(std::vector<Forest> forests,
                                                           const FeatureTable& table,
                                                           double residual_std, CpuIsa isa) {
  if (forests.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a model without a forest cannot score");
  }
  FORETUNE_TRY_STATUS(check_residual(residual_std));
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

Result<std::unique_ptr<PreparedPool>> ForestScorer::prepare(ConfigWords configs,
                                                            const Hardware& hardware) const {
  return prepare_checked(forests_, *table_, residual_std_, configs, hardware, isa_);
}

}  // namespace foretune
