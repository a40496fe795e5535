#include "foretune/model/network/network_scorer.h"

#include <algorithm>
#include <utility>

#include "foretune/model/internal/score_mean.h"
#include "foretune/model/internal/table_pool.h"
#include "foretune/model/network/internal/prepared_network.h"

namespace foretune {
namespace {

// Candidates whose columns of both are computed at once: their values stay in the second cache
// level until they are used.
constexpr std::size_t kChunk = 10 * kNetworkLanes;

class NetworkPool final : public TablePool {
 public:
  NetworkPool(const std::vector<Network>& networks, const FeatureTable& table,
              const Hardware& hardware, ConfigWords configs, double residual_std, CpuIsa isa)
      : TablePool(table, hardware, configs), residual_variance_(residual_std * residual_std) {
    const std::vector<double> of_configs = config_columns(table, configs);
    const std::size_t first_of_both =
        problem_columns() + feature_count(table, FeatureKind::kConfig);
    for (const Network& network : networks) {
      networks_.emplace_back(network, problem_columns(), first_of_both, of_configs, size(), isa);
      sees_both_ =
          sees_both_ || network.problem_inputs + network.config_inputs < network.inputs.size();
    }
    const std::size_t interactions =
        sees_both_ ? feature_count(table, FeatureKind::kInteraction) : 0;
    interactions_ = interactions * kChunk;
    chunk_offset_ = reserve(interactions_ * sizeof(double));
    for (const PreparedNetwork& network : networks_) {
      scratch_offset_.push_back(reserve(network.scratch_floats() * sizeof(float)));
    }
    scores_offset_ = reserve(kNetworkLanes * sizeof(double));
  }

 private:
  void score_candidates(const Problem& problem, std::span<const double> problem_row,
                        std::byte* base, std::span<double> scores,
                        std::span<double> uncertainty) const noexcept override {
    for (std::size_t n = 0; n < networks_.size(); ++n) {
      networks_[n].begin(problem_row, problem.fields(), scratch(base, n));
    }
    for (std::size_t first = 0; first < size(); first += kChunk) {
      score_chunk(problem, base, first, std::min(kChunk, size() - first), scores, uncertainty);
    }
    finish_scores(networks_.size(), residual_variance_, scores, uncertainty);
  }

  float* scratch(std::byte* base, std::size_t network) const {
    return reinterpret_cast<float*>(base + scratch_offset_[network]);
  }

  void score_chunk(const Problem& problem, std::byte* base, std::size_t first, std::size_t count,
                   std::span<double> scores, std::span<double> uncertainty) const {
    auto* columns = reinterpret_cast<double*>(base + chunk_offset_);
    if (sees_both_) {
      interaction_columns(problem, configs().subspan(first, count),
                          std::span(columns, interactions_), kChunk);
    }
    const std::span block_scores(reinterpret_cast<double*>(base + scores_offset_), kNetworkLanes);
    for (std::size_t n = 0; n < networks_.size(); ++n) {
      for (std::size_t at = 0; at < count; at += kNetworkLanes) {
        const std::size_t lanes = std::min(kNetworkLanes, count - at);
        networks_[n].score((first + at) / kNetworkLanes, lanes, columns + at, kChunk,
                           scratch(base, n), block_scores);
        for (std::size_t i = 0; i < lanes; ++i) {
          add_score(n, first + at + i, block_scores[i], scores, uncertainty);
        }
      }
    }
  }

  double residual_variance_;
  std::vector<PreparedNetwork> networks_;
  bool sees_both_ = false;
  std::size_t interactions_ = 0;  // room for a chunk of candidates
  std::size_t chunk_offset_ = 0;
  std::vector<std::size_t> scratch_offset_;
  std::size_t scores_offset_ = 0;
};

}  // namespace

Result<std::unique_ptr<PreparedPool>> prepare_networks(const std::vector<Network>& networks,
                                                       const FeatureTable& table,
                                                       double residual_std, ConfigWords configs,
                                                       const Hardware& hardware, CpuIsa isa) {
  FORETUNE_TRY_STATUS(check_pool_configs(configs));
  return std::make_unique<NetworkPool>(networks, table, hardware, configs, residual_std, isa);
}

Result<std::unique_ptr<Scorer>> network_scorer(std::vector<Network> networks,
                                               const FeatureTable& table, std::size_t fields,
                                               double residual_std, CpuIsa isa) {
  if (networks.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a model without a network cannot score");
  }
  FORETUNE_TRY_STATUS(check_residual(residual_std));
  for (const Network& network : networks) {
    FORETUNE_TRY_STATUS(network.validate(table, fields));
  }
  return std::make_unique<MemberScorer<Network>>(prepare_networks, std::move(networks), table,
                                                 residual_std, isa);
}

}  // namespace foretune
