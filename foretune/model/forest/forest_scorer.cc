#include "foretune/model/forest/forest_scorer.h"

#include <algorithm>
#include <utility>

#include "foretune/model/forest/forest_engine.h"
#include "foretune/model/internal/score_mean.h"
#include "foretune/model/internal/table_pool.h"

namespace foretune {
namespace {

class ForestPool final : public TablePool {
 public:
  ForestPool(const FeatureTable& table, const Hardware& hardware, ConfigWords configs,
             double residual_std)
      : TablePool(table, hardware, configs),
        residual_variance_(residual_std * residual_std),
        interactions_(feature_count(table, FeatureKind::kInteraction) * kEngineBlock),
        chunk_offset_(reserve(interactions_ * sizeof(double))) {}

  Status add_forests(const std::vector<Forest>& forests, CpuIsa isa) {
    std::vector<FeatureKind> kinds;
    for (const FeatureInfo& info : table().columns()) {
      kinds.push_back(info.kind);
    }
    const std::vector<double> of_configs = config_columns(table(), configs());
    std::size_t codes = 0;
    std::size_t scratch = 0;
    for (const Forest& forest : forests) {
      FORETUNE_TRY(std::unique_ptr<ForestEngine> engine,
                   ForestEngine::create(forest, kinds, of_configs, size(), isa));
      codes += engine->codes_bytes();
      scratch = std::max(scratch, engine->scratch_bytes());
      engines_.push_back(std::move(engine));
    }
    codes_offset_ = reserve(codes);
    scratch_offset_ = reserve(scratch);
    return {};
  }

 private:
  void score_candidates(const Problem& problem, std::span<const double> problem_row,
                        std::byte* base, std::span<double> scores,
                        std::span<double> uncertainty) const noexcept override {
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

  // In chunks, so that the columns stay in the first cache levels until they are codes.
  void add_interactions(const Problem& problem, std::byte* base) const {
    auto* columns = reinterpret_cast<double*>(base + chunk_offset_);
    std::byte* codes = base + codes_offset_;
    for (const auto& engine : engines_) {
      engine->begin(codes);
      codes += engine->codes_bytes();
    }
    for (std::size_t first = 0; first < size(); first += kEngineBlock) {
      const std::size_t count = std::min(kEngineBlock, size() - first);
      interaction_columns(problem, first, count, std::span(columns, interactions_), kEngineBlock);
      codes = base + codes_offset_;
      for (const auto& engine : engines_) {
        engine->add_chunk(codes, first, count, columns, kEngineBlock);
        codes += engine->codes_bytes();
      }
    }
  }

  void add_scores(std::size_t index, const std::byte* scratch, std::span<double> scores,
                  std::span<double> uncertainty) const {
    for (std::size_t i = 0; i < size(); ++i) {
      add_score(index, i, engines_[index]->sum(scratch, i), scores, uncertainty);
    }
  }

  double residual_variance_;
  std::size_t interactions_;  // room for a chunk of candidates
  std::vector<std::unique_ptr<ForestEngine>> engines_;
  std::size_t chunk_offset_;
  std::size_t codes_offset_ = 0;
  std::size_t scratch_offset_ = 0;
};

}  // namespace

Result<std::unique_ptr<PreparedPool>> prepare_forests(const std::vector<Forest>& forests,
                                                      const FeatureTable& table,
                                                      double residual_std, ConfigWords configs,
                                                      const Hardware& hardware, CpuIsa isa) {
  FORETUNE_TRY_STATUS(check_pool_configs(configs));
  auto pool = std::make_unique<ForestPool>(table, hardware, configs, residual_std);
  FORETUNE_TRY_STATUS(pool->add_forests(forests, isa));
  return pool;
}

Result<std::unique_ptr<Scorer>> forest_scorer(std::vector<Forest> forests,
                                              const FeatureTable& table, double residual_std,
                                              CpuIsa isa) {
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
  return std::make_unique<MemberScorer<Forest>>(prepare_forests, std::move(forests), table,
                                                residual_std, isa);
}

}  // namespace foretune
