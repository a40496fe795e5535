// The body of the kind "policy": a network that chooses the next action of a schedule, and
// networks that predict the time of a schedule from the model's feature table, by which the
// schedules that the policy passes through are ranked.
//
// Thread safety: free functions without state; bodies are immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/hardware/hardware.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/policy_observation.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/network/network.h"
#include "foretune/model/policy/policy_network.h"
#include "foretune/model/proposer.h"

namespace foretune {

struct PolicyBody final : ModelBody {
  PolicyNetwork policy;
  std::uint32_t max_steps = 12;  // of an episode
  // Scores are divided by it before they are probabilities.
  double temperature = 1;
  std::vector<Network> networks;
  [[nodiscard]] bool equals(const ModelBody& other) const override;
};

// nullptr where the model is of another kind, or was read without its body.
const PolicyBody* policy_of(const Model& model);
void set_policy(Model& model, PolicyBody body);

// Nests on one walk of the policy from the plain nest, those that cannot be compiled left out.
// Without `rng` every action is the one with the highest score.
class PolicyWalker {
 public:
  // All must outlive it.
  PolicyWalker(const PolicyBody& body, const loop::Computation& computation,
               const loop::VectorUnit& unit, const loop::PolicyMachine& machine);
  // Appends the nests of the walk and returns how many steps it took.
  std::size_t walk(Rng* rng, std::vector<loop::Nest>& nests);

 private:
  [[nodiscard]] std::size_t choose(Rng* rng) const;

  const PolicyBody& body_;
  loop::LoopActions actions_;
  loop::PolicyObserver observer_;
  loop::Nest plain_;
  PolicyEvaluator evaluator_;
  std::vector<float> loops_;
  std::vector<float> whole_;
  std::vector<float> scores_;
  std::vector<std::uint8_t> mask_;
};

// Returns the machine that a policy sees for a CPU.
loop::PolicyMachine policy_machine(const Hardware& hardware);
loop::VectorUnit policy_unit(const Hardware& hardware);

// Schedules of one problem, which has to be a loop nest. The model must outlive the proposer.
// Errors: kMismatch for a model of another kind and for another problem.
Result<std::unique_ptr<ConfigProposer>> make_policy_proposer(const Model& model,
                                                             const Problem& problem,
                                                             const Hardware& hardware);

// The row of the table of kinds.
const ModelKind& policy_model_kind();

}  // namespace foretune
