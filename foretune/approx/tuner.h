// Tunes how a network computes: finds configs of the family "network-cpu" that are as fast as a
// loss of quality allows.
//
//   ApproxOptions options{.budgets = {0.5, 1, 2}};
//   FORETUNE_TRY(const ApproxResult result,
//                tune_network(family, *measurer, nullptr, problem, task, options, hooks));
//   result.chosen.front();  // the fastest
//
// Knobs are timed and judged one by one (effects.h). A few random networks correct the models of
// quality and time (models.h). The models recommend networks for every budget (search.h), which are
// measured, and correct the models again. Everything up to here uses the tuning images. The chosen
// networks are then timed in turns and judged by the test images, on which nothing is chosen.
//
// Thread safety: one call belongs to one thread; hooks.stop may be set from a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/statistics.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/journal.h"
#include "foretune/family/family.h"
#include "foretune/graph/task.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/problem.h"

namespace foretune::approx {

struct ApproxOptions {
  std::vector<double> budgets{0.5, 1, 2, 3};  // losses in points, each at least 0
  std::vector<std::int32_t> knobs;            // as the family offers them
  std::int64_t effect_images = 2500;          // tuning images that judge single knobs
  int fit_networks = 40;                      // random networks that correct the models
  int judged_networks = 0;                    // more of them, which only judge the models
  int rounds = 2;                             // of recommending and measuring
  int per_budget = 6;                         // networks that are measured a budget and round
  std::size_t chosen = 20;                    // at most
  int compare_rounds = 15;
  int threads = 1;         // of a call
  int effect_threads = 1;  // while images are judged
  std::uint64_t seed = 42;
};

// A network that was measured. Losses are in points, compared with the exact network on the same
// images.
struct ApproxConfig {
  Config config;
  std::string text;    // Space::describe()
  double budget = 0;   // the smallest that it keeps, by loss_high
  double time_ns = 0;  // of a call
  double speedup = 0;  // over the exact network
  double predicted_ns = 0;
  double predicted_loss = 0;
  double tune_loss = 0;
  double loss_high = 0;  // what the loss on other images stays below in 19 of 20 cases
  double test_quality = kNotANumber;
  double test_loss = kNotANumber;
};

// The models beside what was measured, on random networks that they never saw and that lose at most
// ten points.
struct ModelJudgement {
  std::size_t networks = 0;
  double p1_error = 0;  // mean absolute error of P1, in points
  double p1_spearman = 0;
  double p2_error = 0;
  double p2_spearman = 0;
  double fit_error = 0;  // of the corrected model
  double fit_spearman = 0;
  double time_error = 0;  // mean relative error of the predicted time
};

struct ApproxResult {
  ApproxConfig exact;
  std::vector<ApproxConfig> chosen;  // fastest first
  std::size_t measured = 0;          // networks whose quality was measured on all tuning images
  ModelJudgement judgement;          // of options.judged_networks
  double front_ms = 0;               // of the whole front of the separable model
  double profile_seconds = 0;        // times and effects of single knobs
  double seconds = 0;
};

// Appends every measurement of a whole network to `journal` when there is one. hooks.now_s is
// required. Errors: kInvalidArgument for options that make no sense; kUnsupported when nothing
// could be measured; kCancelled after hooks.stop; those of plans and of the journal.
Result<ApproxResult> tune_network(const Family& family, Measurer& measurer, JournalWriter* journal,
                                  const Problem& problem,
                                  const std::shared_ptr<const graph::Task>& task,
                                  const ApproxOptions& options, const CollectHooks& hooks,
                                  const std::function<void(std::string_view)>& on_phase);

}  // namespace foretune::approx
