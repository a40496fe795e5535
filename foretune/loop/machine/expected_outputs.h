// Computes all the outputs that a computation must have, even where the interpreter would take
// minutes.
//
//   const std::vector<double> expected = expected_outputs(computation, inputs, jit);
//   const std::string wrong = difference(computation, expected, got);
//
// The interpreter evaluates small computations. Machine code computes large sums of products, which
// are then proven by Freivalds' idea (1977) in integers:
//
//   sum over s of w[s] out[q, s] = sum over r of in0[q, r] (sum over s of w[s] in1[r, s])
//
// where s are the variables of the output that only one of the two inputs moves with, columns of a
// product or output channels of a convolution, and q the others. The right side needs no loop over
// s around one over q. All is computed modulo 2^64 with random odd weights. An odd weight has an
// inverse, so one wrong output in a sum always changes it; several cancel with a probability below
// 2^-38, since values are whole and at most 2^24. The interpreter computes everything that cannot
// be proven or is wrong.
//
// Thread safety: free functions. Cost: that of reference() below a million points. Above that, sums
// of products take one run of an untuned schedule and a few ns per element of the operands, 0.2 s
// for 2048 cubed; everything else costs as much as reference().
#pragma once

#include <span>
#include <vector>

#include "foretune/loop/computation.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/jit.h"

namespace foretune::loop {

// Returns one value for each of the output's elements(), NaN in places that no point writes.
// `inputs` are integers whose sums are exact in f32, such as whole_inputs().
std::vector<double> expected_outputs(const Computation& computation, const Inputs& inputs,
                                     const Jit& jit);

// Returns true when `sums` are the results of the computation's reduction before any step, by the
// equation above. Also returns false where that does not apply: it needs a sum of products of two
// inputs.
bool has_right_sums(const Computation& computation, const Inputs& inputs,
                    std::span<const float> sums);

}  // namespace foretune::loop
