#include <cmath>
#include <utility>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/network_scorer.h"
#include "foretune/model/policy/policy_body.h"

namespace foretune {
namespace {

// Networks are stored with a share, which this kind does not have.
constexpr double kUnusedShare = 1;
constexpr std::uint32_t kMostSteps = 1024;

void put_policy(ByteWriter& writer, const Model& model) {
  const PolicyBody& body = *policy_of(model);
  writer.put_varint(body.max_steps);
  writer.put(body.temperature);
  put_policy_network(writer, body.policy);
}

Status check_policy(const PolicyBody& body) {
  FORETUNE_TRY_STATUS(body.policy.validate());
  if (body.max_steps == 0 || body.max_steps > kMostSteps || !(body.temperature > 0) ||
      !std::isfinite(body.temperature)) {
    return fail(ErrorCode::kCorrupt, "the policy takes ", body.max_steps,
                " steps at a temperature of ", body.temperature);
  }
  return {};
}

Result<std::shared_ptr<const ModelBody>> read_policy(
    const Model& /*header*/, std::span<const std::span<const std::byte>> sections,
    const ColumnMap& columns) {
  auto body = std::make_shared<PolicyBody>();
  ByteReader reader(sections[0]);
  const std::uint64_t steps = reader.get_varint();
  body->max_steps = static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, kMostSteps + 1));
  body->temperature = reader.get<double>();
  FORETUNE_TRY(body->policy, get_policy_network(reader));
  FORETUNE_TRY_STATUS(check_policy(*body));
  FORETUNE_TRY(ReadNetworks read, read_networks(sections[1], columns));
  body->networks = std::move(read.networks);
  return std::shared_ptr<const ModelBody>(std::move(body));
}

Status check_policy_body(const Model& model, const FeatureTable& table, bool /*was_just_read*/) {
  const PolicyBody* const body = policy_of(model);
  if (body == nullptr) {
    return fail(ErrorCode::kCorrupt, "a model of kind '", model.kind, "' has no policy");
  }
  FORETUNE_TRY_STATUS(check_policy(*body));
  return check_networks(body->networks, model, table);
}

ModelFacts describe_policy(const Model& model) {
  const PolicyBody& body = *policy_of(model);
  std::size_t weights = 0;
  for (const DenseLayer* const layer : body.policy.layers()) {
    weights += layer->weights.size() + layer->bias.size();
  }
  ModelFacts facts = facts_of(body.networks);
  facts.add("policy", concat(count_text(weights), " weights, ", body.policy.width(),
                             " units wide, at most ", body.max_steps, " actions"));
  facts.figures.emplace_back("policy_weights", static_cast<double>(weights));
  facts.figures.emplace_back("policy_steps", static_cast<double>(body.max_steps));
  return facts;
}

}  // namespace

bool PolicyBody::equals(const ModelBody& other) const {
  const auto* const same = dynamic_cast<const PolicyBody*>(&other);
  return same != nullptr && same->policy == policy && same->max_steps == max_steps &&
         same->temperature == temperature && same->networks == networks;
}

const PolicyBody* policy_of(const Model& model) { return body_as<PolicyBody>(model.body); }

void set_policy(Model& model, PolicyBody body) {
  model.kind = policy_model_kind().name;
  model.body = std::make_shared<const PolicyBody>(std::move(body));
}

const ModelKind& policy_model_kind() {
  static const ModelKind kind{
      .name = "policy",
      .description = "a policy that schedules loop nests step by step",
      .sections = {{.id = section_id("POLI"), .name = "policy", .put = &put_policy},
                   {.id = section_id("PNET"),
                    .name = "policy networks",
                    .put =
                        [](ByteWriter& writer, const Model& model) {
                          put_networks(writer, kUnusedShare, policy_of(model)->networks);
                        }}},
      .read = &read_policy,
      .check = &check_policy_body,
      .make_scorer =
          [](const Model& model, const FeatureTable& table) {
            return make_network_scorer(policy_of(model)->networks, model, table);
          },
      .prepare =
          [](const Model& model, const FeatureTable& table, ConfigWords configs) {
            return prepare_networks(policy_of(model)->networks, table, model.residual_std, configs,
                                    model.fingerprint.hardware);
          },
      .reference_score =
          [](const Model& model, std::span<const double> row, const Problem& problem) {
            return reference_score(policy_of(model)->networks, row, problem);
          },
      .describe = &describe_policy,
      .attribute =
          [](const Model& model, const Problem& problem, const Explained& out) {
            attribute(policy_of(model)->networks, problem, 1, out);
          },
      .make_proposer = &make_policy_proposer};
  return kind;
}

}  // namespace foretune
