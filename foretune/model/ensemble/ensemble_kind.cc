#include <algorithm>
#include <cmath>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/model/ensemble/ensemble_body.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/forest/forest_scorer.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/network_scorer.h"
#include "foretune/model/pool_columns.h"

namespace foretune {
namespace {

using PoolResult = Result<std::unique_ptr<PreparedPool>>;

// Forests and networks together: a weighted mean. Each has a zero of its own, so that the spread
// between the two is that of their scores over the candidates, each without its mean.
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
    auto* base = pool_base(workspace, pool_aligned(size() * sizeof(double)));
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

PoolResult prepare_ensemble(const Model& model, const FeatureTable& table, ConfigWords configs) {
  const EnsembleParts& parts = ensemble_of(model);
  const Hardware& hardware = model.fingerprint.hardware;
  FORETUNE_TRY(std::unique_ptr<PreparedPool> forests,
               prepare_forests(parts.forests, table, model.residual_std, configs, hardware));
  FORETUNE_TRY(std::unique_ptr<PreparedPool> networks,
               prepare_networks(parts.networks, table, model.residual_std, configs, hardware));
  return std::make_unique<MixedPool>(std::move(forests), std::move(networks), parts.network_share);
}

Result<std::unique_ptr<Scorer>> ensemble_scorer(const Model& model, const FeatureTable& table) {
  const EnsembleParts& parts = ensemble_of(model);
  FORETUNE_TRY(std::unique_ptr<Scorer> forests,
               forest_scorer(parts.forests, table, model.residual_std));
  FORETUNE_TRY(std::unique_ptr<Scorer> networks, make_network_scorer(parts.networks, model, table));
  return std::make_unique<MixedScorer>(std::move(forests), std::move(networks),
                                       parts.network_share);
}

Result<std::shared_ptr<const ModelBody>> read_ensemble(
    const Model& /*header*/, std::span<const std::span<const std::byte>> sections,
    const ColumnMap& columns) {
  EnsembleParts parts;
  FORETUNE_TRY(parts.forests, read_forests(sections[0], columns));
  FORETUNE_TRY(ReadNetworks read, read_networks(sections[1], columns));
  parts.networks = std::move(read.networks);
  parts.network_share = read.share;
  return std::make_shared<const EnsembleBody>(std::move(parts));
}

Status check_ensemble(const Model& model, const FeatureTable& table, bool was_just_read) {
  const EnsembleParts& parts = ensemble_of(model);
  if (!(parts.network_share >= 0 && parts.network_share <= 1)) {
    return fail(ErrorCode::kCorrupt, "the networks' share of the score is not from 0 to 1");
  }
  FORETUNE_TRY_STATUS(check_networks(parts.networks, model, table));
  return check_forests(parts.forests, table, was_just_read);
}

// The same order of operations as the pools have, for the same bits.
double score_ensemble(const Model& model, std::span<const double> row, const Problem& problem) {
  const EnsembleParts& parts = ensemble_of(model);
  const double of_forests = reference_score(parts.forests, row);
  const double of_networks = reference_score(parts.networks, row, problem);
  return of_forests + parts.network_share * (of_networks - of_forests);
}

ModelFacts describe_ensemble(const Model& model) {
  const EnsembleParts& parts = ensemble_of(model);
  ModelFacts facts = facts_of(parts.forests);
  const ModelFacts of_networks = facts_of(parts.networks);
  facts.lines.insert(facts.lines.end(), of_networks.lines.begin(), of_networks.lines.end());
  facts.figures.insert(facts.figures.end(), of_networks.figures.begin(), of_networks.figures.end());
  facts.add("share of networks", fixed(parts.network_share, 2));
  facts.figures.emplace_back("network_share", parts.network_share);
  return facts;
}

void attribute_ensemble(const Model& model, const Problem& problem, const Explained& out) {
  const EnsembleParts& parts = ensemble_of(model);
  attribute(parts.forests, 1 - parts.network_share, out);
  attribute(parts.networks, problem, parts.network_share, out);
}

}  // namespace

bool EnsembleBody::equals(const ModelBody& other) const {
  const auto* const same = dynamic_cast<const EnsembleBody*>(&other);
  return same != nullptr && same->parts == parts;
}

const EnsembleParts& ensemble_of(const Model& model) {
  static const EnsembleParts none;
  const auto* const body = body_as<EnsembleBody>(model.body);
  return body == nullptr ? none : body->parts;
}

const ModelKind& ensemble_model_kind() {
  static const ModelKind kind{.name = "ensemble",
                              .description = "boosted trees and neural networks, mixed",
                              .sections = {{.id = section_id("TREE"),
                                            .name = "forests",
                                            .put =
                                                [](ByteWriter& writer, const Model& model) {
                                                  put_forests(writer, ensemble_of(model).forests);
                                                }},
                                           {.id = section_id("NETW"),
                                            .name = "networks",
                                            .put =
                                                [](ByteWriter& writer, const Model& model) {
                                                  put_networks(writer,
                                                               ensemble_of(model).network_share,
                                                               ensemble_of(model).networks);
                                                }}},
                              .read = &read_ensemble,
                              .check = &check_ensemble,
                              .make_scorer = &ensemble_scorer,
                              .prepare = &prepare_ensemble,
                              .reference_score = &score_ensemble,
                              .describe = &describe_ensemble,
                              .attribute = &attribute_ensemble,
                              .reads_fields = true};
  return kind;
}

void set_ensemble(Model& model, EnsembleParts parts) {
  model.kind = ensemble_model_kind().name;
  model.body = std::make_shared<const EnsembleBody>(std::move(parts));
}

}  // namespace foretune
