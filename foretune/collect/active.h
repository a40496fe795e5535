// Collecting with a model in the loop. A first round measures a few stratified configs of every
// problem; before each further round a model is trained on what is measured so far, and a policy
// (active_policy.h) chooses the next configs of each problem. collect() does everything else: the
// journal, keeping and skipping, early stopping, budgets.
//
//   const ActiveOptions active{.measurements = 26 * problems.size()};
//   FORETUNE_TRY(const CollectResult result,
//                collect_active(family, *measurer, *journal, problems, options, active, train,
//                               hooks));
//
// The same seed and times give the same set. An interrupted run that is started again with the same
// options repeats its rounds, and takes measurements from the journal where it has them. So it
// reaches the same set as without the interruption, at the price of training again. It does not
// learn from rows in the file that no round selects (of another collection), though the best of
// them are incumbents.
//
// Thread safety: that of collect().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "foretune/base/result.h"
#include "foretune/collect/active_policy.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/scorer.h"

namespace foretune {

struct ActiveOptions {
  // Total, including those of earlier runs into the same file.
  std::uint64_t measurements = 0;
  std::uint32_t rounds = 5;  // including the first one; there is one training less
  // Measurements per problem in the first round, before there is a model: this share of the mean,
  // and never below the minimum.
  double first_share = 0.3;
  std::uint32_t minimum = 4;
  ActivePolicy policy = active_policies().front();
};

// Errors: kInvalidArgument for fewer measurements than `minimum` for every problem, no rounds, and
// an invalid share.
Status check_active_options(const ActiveOptions& active, std::size_t problems);

// Learns to score configs from `measured`. It calls `may_go_on` now and then, and returns
// kCancelled when that is false. The collecting thread calls it once per round.
using ActiveTrainer = std::function<Result<std::unique_ptr<Scorer>>(
    const Dataset& measured, const std::function<bool()>& may_go_on)>;

// The largest number of scored candidates per problem. In a larger space these are random ones,
// others every round, and the neighbours of the best measured.
inline constexpr std::size_t kMaxCandidates = 4096;

// `options` as for collect(): seed, budget (of this run, including the time of training) and
// previous, which a journal with rows requires. The selection there (search_space, first,
// confirm_top) is ignored. Progress counts rounds, trainings and their seconds (with hooks.now_s).
// Errors: those of collect(), of the trainer and of check_active_options(); kInvalidArgument for a
// journal with rows and no previous.
Result<CollectResult> collect_active(const Family& family, Measurer& measurer,
                                     JournalWriter& journal, std::span<const Problem> problems,
                                     const CollectOptions& options, const ActiveOptions& active,
                                     const ActiveTrainer& train, const CollectHooks& hooks);

}  // namespace foretune
