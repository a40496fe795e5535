#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "foretune/features/feature_table.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/policy/policy_body.h"

namespace foretune {
namespace {

using loop::LoopActions;
using loop::Nest;
using loop::PolicyObserver;

// As many as stored schedules have.
constexpr std::size_t kMostLoops = 10;
// Walks for each schedule that is asked for, beside the one without chance.
constexpr std::size_t kWalks = 2;

class PolicyProposer final : public ConfigProposer {
 public:
  // Without a scorer schedules are in the order of the walks.
  PolicyProposer(const PolicyBody& body, loop::Computation computation, Problem problem,
                 const Hardware& hardware, std::unique_ptr<Scorer> scorer)
      : computation_(std::move(computation)),
        problem_(std::move(problem)),
        hardware_(hardware),
        scorer_(std::move(scorer)),
        space_(loop::ScheduleSpace::of_loops(computation_, policy_unit(hardware), std::nullopt,
                                             {.max_loops = kMostLoops})),
        walker_(body, computation_, policy_unit(hardware), policy_machine(hardware)) {}

  std::vector<Config> propose(std::size_t count, Rng& rng) override {
    std::vector<std::vector<Nest>> walks(kWalks * count + (walked_ ? 0 : 1));
    for (std::vector<Nest>& nests : walks) {
      walker_.walk(walked_ ? &rng : nullptr, nests);
      walked_ = true;
    }
    std::vector<Config> configs = ends_first(walks);
    if (scorer_ == nullptr) {
      configs.resize(std::min(configs.size(), count));
      return configs;
    }
    return best_of(std::move(configs), count);
  }

 private:
  // The ends of all walks, then what comes before them.
  [[nodiscard]] std::vector<Config> ends_first(const std::vector<std::vector<Nest>>& walks) const {
    std::vector<Config> configs;
    std::unordered_set<Config> seen;
    std::size_t longest = 0;
    for (const std::vector<Nest>& nests : walks) {
      longest = std::max(longest, nests.size());
    }
    for (std::size_t before = 1; before <= longest; ++before) {
      for (const std::vector<Nest>& nests : walks) {
        if (before > nests.size()) {
          continue;
        }
        Config config = space_->config({.nest = nests[nests.size() - before], .cursor = 0});
        if (seen.insert(config).second) {
          configs.push_back(std::move(config));
        }
      }
    }
    return configs;
  }

  [[nodiscard]] std::vector<double> scores_of(const std::vector<Config>& configs) const {
    std::vector<double> scores(configs.size());
    const ConfigList list{std::span<const Config>(configs)};
    if (const auto pool = scorer_->prepare(list, hardware_)) {
      std::vector<std::byte> workspace((*pool)->workspace_bytes());
      (*pool)->score(problem_, workspace, scores, {});
    }
    return scores;
  }

  [[nodiscard]] std::vector<Config> best_of(std::vector<Config> configs, std::size_t count) const {
    const std::vector<double> scores = scores_of(configs);
    std::vector<std::size_t> order(configs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
    std::vector<Config> out;
    for (std::size_t i = 0; i < std::min(count, order.size()); ++i) {
      out.push_back(std::move(configs[order[i]]));
    }
    return out;
  }

  loop::Computation computation_;
  Problem problem_;
  Hardware hardware_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<loop::ScheduleSpace> space_;
  PolicyWalker walker_;
  bool walked_ = false;
};

// Returns false for other instructions than those that the times are of, and for problems that
// differ in something that all problems of the training had in common: another kind of them.
Result<bool> knows_times_of(const Model& model, const Problem& problem, const Hardware& hardware) {
  if (policy_unit(hardware).isa != policy_unit(model.fingerprint.hardware).isa) {
    return false;
  }
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  std::vector<double> row(feature_count(*table, FeatureKind::kProblem));
  if (row.size() != model.problem_range.size()) {
    return true;
  }
  table->problem_row(problem, model.fingerprint.hardware, row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto& [low, high] = model.problem_range[i];
    if (low == high && row[i] != low) {
      return false;
    }
  }
  return true;
}

}  // namespace

PolicyWalker::PolicyWalker(const PolicyBody& body, const loop::Computation& computation,
                           const loop::VectorUnit& unit, const loop::PolicyMachine& machine)
    : body_(body),
      actions_(computation, unit, {.max_loops = kMostLoops}),
      observer_(computation, unit, machine),
      plain_(Nest::plain(computation)),
      evaluator_(body.policy),
      loops_(PolicyObserver::kLoopFloats),
      whole_(PolicyObserver::kWholeColumns),
      scores_(LoopActions::kCount),
      mask_(LoopActions::kCount) {}

std::size_t PolicyWalker::walk(Rng* rng, std::vector<Nest>& nests) {
  Nest nest = plain_;
  for (std::uint32_t step = 0;; ++step) {
    const double left = 1 - static_cast<double>(step) / static_cast<double>(body_.max_steps);
    if (observer_.observe(nest, left, loops_, whole_)) {
      nests.push_back(nest);
    }
    if (step == body_.max_steps) {
      return step;
    }
    actions_.write_mask(nest, mask_);
    evaluator_.score(loops_, whole_, std::min(nest.loops.size(), LoopActions::kLevels), scores_);
    const std::size_t chosen = choose(rng);
    auto next = actions_.apply(nest, chosen);
    if (chosen == LoopActions::kStop || !next) {
      return step + 1;
    }
    nest = *std::move(next);
  }
}

std::size_t PolicyWalker::choose(Rng* rng) const {
  std::size_t best = LoopActions::kStop;
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    best = mask_[i] != 0 && scores_[i] > scores_[best] ? i : best;
  }
  if (rng == nullptr) {
    return best;
  }
  std::array<double, LoopActions::kCount> weights{};
  double sum = 0;
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    if (mask_[i] != 0) {
      weights[i] = std::exp(static_cast<double>(scores_[i] - scores_[best]) / body_.temperature);
      sum += weights[i];
    }
  }
  double left = rng->uniform() * sum;
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    left -= weights[i];
    if (left < 0) {
      return i;
    }
  }
  return best;
}

loop::PolicyMachine policy_machine(const Hardware& hardware) {
  loop::PolicyMachine machine;
  if (const double l1 = hardware.get(HardwareValue::kL1Bytes); l1 > 0) {
    machine.l1_bytes = l1;
  }
  if (const double l2 = hardware.get(HardwareValue::kL2Bytes); l2 > 0) {
    machine.l2_bytes = l2;
  }
  return machine;
}

loop::VectorUnit policy_unit(const Hardware& hardware) {
  return loop::VectorUnit::of(hardware.get(HardwareValue::kVectorBytes) >= 64 ? CpuIsa::kAvx512
                                                                              : CpuIsa::kAvx2);
}

Result<std::unique_ptr<ConfigProposer>> make_policy_proposer(const Model& model,
                                                             const Problem& problem,
                                                             const Hardware& hardware) {
  const PolicyBody* const body = policy_of(model);
  if (body == nullptr) {
    return fail(ErrorCode::kMismatch, "a model of kind '", model.kind, "' is no policy");
  }
  FORETUNE_TRY(loop::Computation computation, loop::computation_of(problem));
  FORETUNE_TRY(const bool knows_times, knows_times_of(model, problem, hardware));
  std::unique_ptr<Scorer> scorer;
  if (knows_times) {
    FORETUNE_TRY(scorer, make_scorer(model));
  }
  return std::unique_ptr<ConfigProposer>(std::make_unique<PolicyProposer>(
      *body, std::move(computation), problem, hardware, std::move(scorer)));
}

}  // namespace foretune
