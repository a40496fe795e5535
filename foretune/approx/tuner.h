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

#include "foretune/approx/judgement.h"
#include "foretune/approx/plain_search.h"
#include "foretune/approx/sensitivity.h"
#include "foretune/base/result.h"
#include "foretune/base/statistics.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/journal.h"
#include "foretune/family/family.h"
#include "foretune/graph/quality.h"
#include "foretune/graph/task.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/problem.h"

namespace foretune::approx {

struct ApproxOptions {
  // The family judges by the same one. All losses are in its unit, points of accuracies.
  const graph::QualityMetric* metric = &graph::accuracy_quality();
  std::vector<double> budgets{0.5, 1, 2, 3};  // losses, each at least 0
  std::vector<std::int32_t> knobs;            // as the family offers them
  std::int64_t effect_images = 2500;          // tuning images that judge single knobs
  int fit_networks = 60;                      // random networks that correct the models
  int judged_networks = 0;                    // more of them, which only judge the models
  // Networks that a search without models may measure, to be compared with; 0: no such search.
  int plain_evaluations = 0;
  int rounds = 2;           // of recommending and measuring
  int per_budget = 6;       // networks that are measured a budget and round
  std::size_t chosen = 20;  // at most
  int compare_rounds = 15;
  int threads = 1;         // of a call
  int effect_threads = 1;  // while images are judged
  std::uint64_t seed = 42;
};

// A network that was measured. Losses are compared with the exact network on the same images.
struct ApproxConfig {
  Config config;
  std::string text;    // Space::describe()
  double budget = 0;   // the smallest that it keeps, by loss_high
  double time_ns = 0;  // of a call
  double speedup = 0;  // over the exact network
  double predicted_ns = 0;
  double predicted_loss = 0;
  double predicted_bytes = 0;  // of weights and activations of an image (network_bytes())
  double tune_loss = 0;
  double loss_high = 0;  // what the loss on other images stays below in 19 of 20 cases
  double test_quality = kNotANumber;
  double test_loss = kNotANumber;
};

// A search without models beside ours.
struct SearchComparison {
  std::size_t measured = 0;  // networks whose quality our search measured, random ones among them
  double volume = 0;         // of our front (plain_search.h)
  PlainSearch plain;

  // Returns how many times as many networks the search without models measured; a lower bound where
  // it did not get as far. `more`: networks that ours is charged with besides.
  [[nodiscard]] double evaluations_saved(double more) const {
    return static_cast<double>(plain.evaluations) / (static_cast<double>(measured) + more);
  }
};

struct ApproxResult {
  ApproxConfig exact;
  std::vector<ApproxConfig> chosen;  // faster than the exact one, the fastest first
  std::size_t measured = 0;          // networks whose quality was measured on all tuning images
  // All of these but the exact one, as they were when the search ended: without texts and tests.
  // The budget of one that keeps none is infinite.
  std::vector<ApproxConfig> networks;
  std::vector<LayerSensitivity> layers;
  ModelJudgement judgement;     // of options.judged_networks
  std::string quality_model;    // that predicted losses in the end: loss_model.h's name of its kind
  SearchComparison search;      // with options.plain_evaluations
  double front_ms = 0;          // of the whole front of the separable model
  double profile_seconds = 0;   // times and effects of single knobs
  double profile_networks = 0;  // what the effects took, in whole networks
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
