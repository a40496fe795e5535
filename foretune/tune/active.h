// Collecting with a model in the loop. A first round measures a few stratified configs of every
// problem; before each further round a model is trained on what is measured so far, and a policy
// (active_policy.h) says which configs of which problems come next. Everything else is collect():
// the journal, what is kept and skipped, early stopping, budgets.
//
//   const ActiveOptions active{.measurements = 26 * problems.size()};
//   FORETUNE_TRY(const CollectResult result,
//                collect_active(family, *measurer, *journal, problems, options, active, train,
//                               hooks));
//
// The same seed and times give the same set. A run that was interrupted anywhere goes through its
// rounds again when it is started with the same options, taking from the journal what is there
// instead of measuring it; so it reaches the set that it would have reached, at the price of
// training again. Rows in the file that no round asks for (of another collection) are not learned
// from, though the best of them are incumbents.
//
// Thread safety: as collect().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/models/infer/scorer.h"
#include "foretune/tune/active_policy.h"
#include "foretune/tune/collect.h"

namespace foretune {

struct ActiveOptions {
  // In all, those of earlier runs into the same file included.
  std::uint64_t measurements = 0;
  std::uint32_t rounds = 5;  // the first one included; trainings are one less
  // Of every problem before there is a model: this share of the mean, and never below the minimum.
  double first_share = 0.3;
  std::uint32_t minimum = 4;
  ActivePolicy policy = active_policies().front();
};

// Errors: kInvalidArgument for fewer measurements than `minimum` for every problem, no rounds, and
// a share that is none.
Status check_active_options(const ActiveOptions& active, std::size_t problems);

// Learns to score configs from `measured`. Asks now and then whether it may go on, and returns
// kCancelled when not. Called once a round, by the thread that collects.
using ActiveTrainer = std::function<Result<std::unique_ptr<Scorer>>(
    const Dataset& measured, const std::function<bool()>& may_go_on)>;

// As many candidates of a problem are scored at most; of a larger space random ones, others every
// round, and the neighbours of the best measured.
inline constexpr std::size_t kMostCandidates = 4096;

// `options` as for collect(): seed, budget (of this run; the time of training counts) and previous,
// which a journal with rows needs. What is selected there (search_space, first, confirm_top) is not
// looked at. Progress counts rounds, trainings and their seconds (with hooks.now_s).
// Errors: those of collect(), of the trainer and of check_active_options(); kInvalidArgument for a
// journal with rows and no previous.
Result<CollectResult> collect_active(const Family& family, Measurer& measurer,
                                     JournalWriter& journal, std::span<const Problem> problems,
                                     const CollectOptions& options, const ActiveOptions& active,
                                     const ActiveTrainer& train, const CollectHooks& hooks);

}  // namespace foretune
