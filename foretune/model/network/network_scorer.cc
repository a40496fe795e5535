#include "foretune/model/network/network_scorer.h"

#include <algorithm>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/model/internal/score_mean.h"
#include "foretune/model/network/internal/prepared_network.h"
#include "foretune/model/pool_columns.h"

namespace foretune {
namespace {

// Candidates whose columns of both are computed at once: their values stay in the second cache
// level until they are used.
constexpr std::size_t kChunk = 10 * kNetworkLanes;

class NetworkPool final : public PreparedPool {
 public:
  NetworkPool(const std::vector<Network>& networks, const FeatureTable& table,
              const Hardware& hardware, ConfigWords configs, double residual_std, CpuIsa isa)
      : table_(table),
        hardware_(hardware),
        configs_(configs),
        size_(configs.size()),
        residual_variance_(residual_std * residual_std),
        problem_columns_(feature_count(table, FeatureKind::kProblem)) {
    const std::vector<double> of_configs = config_columns(table, configs);
    const std::size_t first_of_both = problem_columns_ + feature_count(table, FeatureKind::kConfig);
    for (const Network& network : networks) {
      networks_.emplace_back(network, problem_columns_, first_of_both, of_configs, size_, isa);
      scratch_floats_.push_back(networks_.back().scratch_floats());
      sees_both_ =
          sees_both_ || network.problem_inputs + network.config_inputs < network.inputs.size();
    }
    chunk_offset_ = pool_aligned(problem_columns_ * sizeof(double));
    const std::size_t interactions =
        sees_both_ ? feature_count(table, FeatureKind::kInteraction) : 0;
    interactions_ = interactions * kChunk;
    std::size_t end = chunk_offset_ + pool_aligned(interactions_ * sizeof(double));
    for (const std::size_t floats : scratch_floats_) {
      scratch_offset_.push_back(end);
      end += pool_aligned(floats * sizeof(float));
    }
    scores_offset_ = end;
    // Room to align it.
    workspace_bytes_ = end + pool_aligned(kNetworkLanes * sizeof(double)) + kPoolAlignment;
  }

  std::size_t size() const override { return size_; }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    FORETUNE_CHECK(workspace.size() >= workspace_bytes_ && scores.size() == size_);
    FORETUNE_CHECK(uncertainty.empty() || uncertainty.size() == size_);
    auto* base = pool_base(workspace, workspace_bytes_ - kPoolAlignment);
    const std::span problem_row(reinterpret_cast<double*>(base), problem_columns_);
    table_.problem_row(problem, hardware_, problem_row);
    for (std::size_t n = 0; n < networks_.size(); ++n) {
      networks_[n].begin(problem_row, problem.fields(), scratch(base, n));
    }
    for (std::size_t first = 0; first < size_; first += kChunk) {
      score_chunk(problem, base, first, std::min(kChunk, size_ - first), scores, uncertainty);
    }
    finish_scores(networks_.size(), residual_variance_, scores, uncertainty);
  }

 private:
  float* scratch(std::byte* base, std::size_t network) const {
    return reinterpret_cast<float*>(base + scratch_offset_[network]);
  }

  void score_chunk(const Problem& problem, std::byte* base, std::size_t first, std::size_t count,
                   std::span<double> scores, std::span<double> uncertainty) const {
    auto* columns = reinterpret_cast<double*>(base + chunk_offset_);
    if (sees_both_) {
      table_.interaction_columns(problem, hardware_, configs_.view().subspan(first, count),
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

  const FeatureTable& table_;
  Hardware hardware_;
  ConfigList configs_;
  std::size_t size_;
  double residual_variance_;
  std::size_t problem_columns_;
  std::vector<PreparedNetwork> networks_;
  std::vector<std::size_t> scratch_floats_;
  std::vector<std::size_t> scratch_offset_;
  bool sees_both_ = false;
  std::size_t interactions_ = 0;
  std::size_t chunk_offset_ = 0;
  std::size_t scores_offset_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<NetworkScorer>> NetworkScorer::create(std::vector<Network> networks,
                                                             const FeatureTable& table,
                                                             std::size_t fields,
                                                             double residual_std, CpuIsa isa) {
  if (networks.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a model without a network cannot score");
  }
  FORETUNE_TRY_STATUS(check_residual(residual_std));
  for (const Network& network : networks) {
    FORETUNE_TRY_STATUS(network.validate(table, fields));
  }
  std::unique_ptr<NetworkScorer> scorer(new NetworkScorer());
  scorer->networks_ = std::move(networks);
  scorer->table_ = &table;
  scorer->residual_std_ = residual_std;
  scorer->isa_ = isa;
  return scorer;
}

Result<std::unique_ptr<PreparedPool>> NetworkScorer::prepare(ConfigWords configs,
                                                             const Hardware& hardware) const {
  return prepare_checked(networks_, *table_, residual_std_, configs, hardware, isa_);
}

Result<std::unique_ptr<PreparedPool>> NetworkScorer::prepare_checked(
    const std::vector<Network>& networks, const FeatureTable& table, double residual_std,
    ConfigWords configs, const Hardware& hardware, CpuIsa isa) {
  FORETUNE_TRY_STATUS(check_pool_configs(configs));
  return std::make_unique<NetworkPool>(networks, table, hardware, configs, residual_std, isa);
}

}  // namespace foretune
