// The options of measuring given configs of one problem, and the measuring itself: each config is
// verified alone, then all are timed against each other, beside the family's default and a model's
// pick. Nothing here prints.
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/space.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/problem_arguments.h"

namespace foretune::workflow {

struct MeasureConfigsArguments {
  OneProblemArguments problem;
  std::vector<std::string> configs;
  std::string model;
  std::string metrics;
  std::int64_t rounds = 15;
  std::string json;
  FamilyArguments family;
  MeasureArguments measuring;

  void visit(OptionList& list);
  // Declares all but the problem, the configs and the file of figures.
  void visit_measuring(OptionList& list);
};

struct MeasuredConfig {
  std::string name;  // "given", "default", "model's pick", or several of them
  Config config;
  std::optional<Measurement> alone{};   // verified, with all metrics
  std::optional<Measurement> beside{};  // timed against the others

  // Returns the time beside the others; nullptr unless both measurements went well.
  [[nodiscard]] const MetricValue* time() const;
};

struct MeasuredConfigs {
  LiveFamily live;
  Problem problem;
  std::unique_ptr<Space> space;
  std::vector<MeasuredConfig> configs;
};

// Errors: kInvalidArgument for a config that is not legal, or when there is nothing to measure;
// kUnsupported for a problem that the family does not run, or without a pick; those of the files.
Result<MeasuredConfigs> measure_configs(const MeasureConfigsArguments& arguments,
                                        const Invocation& invocation);

}  // namespace foretune::workflow
