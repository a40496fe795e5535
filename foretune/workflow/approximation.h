// The options of tuning how a network computes, and the tuning itself. Nothing here prints.
//
//   ApproximationArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const Approximation result, approximate(arguments, invocation, hooks));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/approx/tuner.h"
#include "foretune/base/result.h"
#include "foretune/graph/quality.h"
#include "foretune/problem/problem.h"
#include "foretune/report/approx_report.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct ApproximationArguments {
  std::string task;
  std::int64_t images = 64;
  std::string quality = "accuracy";
  std::string budgets = "0.5,1,2,3";
  std::int64_t keep = 20;
  std::int64_t profile_images = 2500;
  std::int64_t fit = 60;
  std::int64_t judge = 0;
  std::int64_t judge_search = 0;
  std::string output;
  std::string json;
  std::string report;
  std::string figures;
  FamilyArguments family;
  MeasureArguments measuring{.time_limit = 300};

  void visit(OptionList& list);
};

struct ApproximationHooks {
  const std::atomic<bool>* stop = nullptr;         // once true, the work ends soon
  std::function<void(std::string_view)> on_phase;  // the current work, often; may be empty
};

struct Approximation {
  Approximation(LiveFamily family, Problem tuned)
      : live(std::move(family)), problem(std::move(tuned)) {}

  LiveFamily live;
  Problem problem;
  std::string network;          // the name of its file
  std::vector<double> budgets;  // in the metric's unit
  const graph::QualityMetric* metric = nullptr;
  approx::ApproxResult result;
};

// Errors: kInvalidArgument for budgets that are no numbers; those of the files and of
// approx::tune_network().
Result<Approximation> approximate(const ApproximationArguments& arguments,
                                  const Invocation& invocation, const ApproximationHooks& hooks);

// Returns everything as JSON, which docs/reference/file-formats/figures.md describes.
std::string approximation_json(const Approximation& approximation, const Invocation& invocation);

// Returns the contents of the page of --report.
ApproxReport approximation_report(const Approximation& approximation,
                                  const ApproximationArguments& arguments,
                                  const Invocation& invocation);

}  // namespace foretune::workflow
