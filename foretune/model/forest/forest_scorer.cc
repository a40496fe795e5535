#include "foretune/model/forest/forest_scorer.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "foretune/model/forest/forest_engine.h"
#include "foretune/model/internal/score_mean.h"
#include "foretune/model/internal/table_pool.h"

namespace foretune {
namespace {

// Returns which config columns a forest splits on.
std::vector<bool> used_config_columns(const std::vector<Forest>& forests,
                                      std::span<const FeatureKind> kinds) {
  std::vector<bool> is_used(kinds.size());
  for (const Forest& forest : forests) {
    for (const std::uint32_t feature : forest.feature) {
      is_used[feature] = true;
    }
  }
  std::vector<bool> out;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == FeatureKind::kConfig) {
      out.push_back(is_used[i]);
    }
  }
  return out;
}

// Candidates that the forests cannot tell apart, whatever the problem is.
struct Alike {
  std::vector<std::uint32_t> first;    // one of each kind
  std::vector<std::uint32_t> kind_of;  // of each candidate, its position in that list
};

// `columns` has the config columns, one after another.
Alike find_alike(const FeatureTable& table, ConfigWords configs, std::span<const double> columns,
                 const std::vector<bool>& is_used) {
  Alike out;
  const auto values = table.interaction_values();
  std::map<std::vector<std::uint64_t>, std::uint32_t> kinds;
  std::vector<std::uint64_t> key;
  for (std::uint32_t i = 0; i < configs.size(); ++i) {
    auto kind = static_cast<std::uint32_t>(out.first.size());
    if (values) {
      key.clear();
      for (std::size_t column = 0; column < is_used.size(); ++column) {
        if (is_used[column]) {
          key.push_back(std::bit_cast<std::uint64_t>(columns[column * configs.size() + i]));
        }
      }
      for (const std::size_t value : *values) {
        key.push_back(static_cast<std::uint64_t>(configs[i][value]));
      }
      kind = kinds.try_emplace(key, kind).first->second;
    }
    if (kind == out.first.size()) {
      out.first.push_back(i);
    }
    out.kind_of.push_back(kind);
  }
  return out;
}

ConfigList chosen(ConfigWords configs, const std::vector<std::uint32_t>& which) {
  std::vector<Config> out;
  for (const std::uint32_t i : which) {
    out.push_back({.words = Config::Words(configs[i])});
  }
  return ConfigList(out);
}

// Scores one candidate of each kind of those that are alike.
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
    std::vector<double> of_configs = config_columns(table(), configs());
    Alike alike = find_alike(table(), configs(), of_configs, used_config_columns(forests, kinds));
    kind_of_ = std::move(alike.kind_of);
    if (alike.first.size() < size()) {
      scored_ = chosen(configs(), alike.first);
      of_configs = config_columns(table(), scored_);
    }
    std::size_t codes = 0;
    std::size_t scratch = 0;
    for (const Forest& forest : forests) {
      FORETUNE_TRY(std::unique_ptr<ForestEngine> engine,
                   ForestEngine::create(forest, kinds, of_configs, scored().size(), isa));
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
    const ConfigWords configs = scored();
    for (std::size_t first = 0; first < configs.size(); first += kEngineBlock) {
      const std::size_t count = std::min(kEngineBlock, configs.size() - first);
      interaction_columns(problem, configs.subspan(first, count), std::span(columns, interactions_),
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
    for (std::size_t i = 0; i < size(); ++i) {
      add_score(index, i, engines_[index]->sum(scratch, kind_of_[i]), scores, uncertainty);
    }
  }

  // One of each kind.
  [[nodiscard]] ConfigWords scored() const { return scored_.size() > 0 ? scored_ : configs(); }

  double residual_variance_;
  std::size_t interactions_;                      // room for a chunk of candidates
  ConfigList scored_{std::span<const Config>{}};  // empty where no two are alike
  std::vector<std::uint32_t> kind_of_;
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
