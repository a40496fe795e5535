// Evaluates a computation, and a schedule of it, by the plainest loops possible. This is the oracle
// for all fast code.
//
//   Rng rng(1);
//   const auto values = whole_inputs(computation, rng);
//   const Inputs inputs(values.begin(), values.end());
//   const std::string wrong = difference(computation, reference(computation, inputs), got);
//
// Thread safety: free functions without state. Cost: some hundred nanoseconds per point.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

using Inputs = std::vector<std::span<const float>>;  // one per input, with its elements()

// Evaluates the computation without a schedule: in doubles, by loops over the variables in their
// order. Returns one value for each of the output's elements(); NaN in places that no point writes.
std::vector<double> reference(const Computation& computation, const Inputs& inputs);

// Applies the steps to the results of the reduction. `reduced` has a value for each of the output's
// elements().
std::vector<double> with_steps(const Computation& computation, const Inputs& inputs,
                               std::vector<double> reduced);

// Evaluates the computation by walking the nest as written, including remainders, with sums in
// doubles. It ignores marks, packs and blocks, since they do not change the result of a nest.
// Errors: kInternal where the nest does not visit every point once.
Result<std::vector<double>> interpret(const Computation& computation, const Nest& nest,
                                      const Inputs& inputs);

// Returns random integers from -4 to 4, without 0 in divisors. Sums of up to 2^20 products of two
// of them are exact in f32 in any order, so results can be compared for equality.
std::vector<std::vector<float>> whole_inputs(const Computation& computation, Rng& rng);

// Returns an empty string where `got` equals `expected`: exactly, or in computations with a
// division within a few units in the last place of max(1, |expected|). Otherwise returns one
// sentence: the first wrong place, both values and the number of wrong places. Places where NaN is
// expected are not compared; NaN elsewhere never passes.
std::string difference(const Computation& computation, std::span<const double> expected,
                       std::span<const float> got);

}  // namespace foretune::loop
