// What a computation means and what a schedule of it does, by the plainest loops there are: the
// oracle that everything fast is compared with.
//
//   Rng rng(1);
//   const auto values = whole_inputs(computation, rng);
//   const Inputs inputs(values.begin(), values.end());
//   const std::string wrong = difference(computation, reference(computation, inputs), got);
//
// Thread safety: free functions without state. Cost: some hundred nanoseconds a point.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

using Inputs = std::vector<std::span<const float>>;  // one per input, its elements() each

// What the computation means, schedule ignored: in doubles, by loops over the variables in their
// order. One value for each of the output's elements(); NaN in places that no point writes.
std::vector<double> reference(const Computation& computation, const Inputs& inputs);

// The steps applied to what the reduction gives: `reduced` has a value for each of the output's
// elements().
std::vector<double> with_steps(const Computation& computation, const Inputs& inputs,
                               std::vector<double> reduced);

// The same by walking the nest as it is written, remainders included, with sums in doubles. Marks,
// packs and blocks do not change what a nest means, so they are not looked at.
// Errors: kInternal where the nest does not visit every point once.
Result<std::vector<double>> interpret(const Computation& computation, const Nest& nest,
                                      const Inputs& inputs);

// Random whole numbers from -4 to 4, without 0 in what is divided by: sums of up to 2^20 products
// of two of them are exact in f32 in any order, so results can be compared for equality.
std::vector<std::vector<float>> whole_inputs(const Computation& computation, Rng& rng);

// Empty where `got` is what was expected: exactly, or in computations with a division within a few
// units in the last place of max(1, |expected|). Else one sentence: the first wrong place, both
// values and how many are wrong. Places where NaN is expected are not compared; NaN elsewhere never
// passes.
std::string difference(const Computation& computation, std::span<const double> expected,
                       std::span<const float> got);

}  // namespace foretune::loop
