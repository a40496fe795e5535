// Distils the fast model from an exact one: many problems are drawn between those of the training
// set and scored by the exact model; a portfolio that covers them is chosen, a small network learns
// to rank it, and on problems that the network did not see it is noted how much its pick loses.
//
//   FORETUNE_TRY(const Distillation fast, distill_model(model, dataset.problems(), {}));
//   model.distilled = fast.model;
//
// Thread safety: free functions without state. Cost: 10 to 60 s, mostly the exact model's scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/model/distilled/distilled_model.h"
#include "foretune/model/model_file.h"

namespace foretune {

struct DistillOptions {
  std::size_t portfolio = DistilledModel::kMaxPortfolio;
  // Drawn problems that the portfolio is chosen for and the bounds are measured on, and those that
  // the network learns from.
  std::size_t calibration_problems = 1200;
  std::size_t problems = 16000;
  std::size_t hidden = 48;
  std::uint32_t epochs = 40;
  std::uint32_t threads = 2;
  std::uint64_t seed = 42;
};

struct Distillation {
  DistilledModel model;
  // Share of the drawn problems for which the portfolio has no legal candidate.
  double without_legal = 0;
};

// `training` holds the problems that the model was trained on.
// Errors: kInvalidArgument for options without sense or no problems, kUnsupported for problems with
// a payload, what scorer and space of the model say.
Result<Distillation> distill_model(const Model& model, std::span<const Problem> training,
                                   const DistillOptions& options);

// Problems between two random ones of `problems` in every size, with the labels of one of them:
// mostly as round as those two are, now and then any size. Never outside the range of each size.
std::vector<Problem> sample_between(std::span<const Problem> problems, std::size_t count, Rng& rng);

}  // namespace foretune
