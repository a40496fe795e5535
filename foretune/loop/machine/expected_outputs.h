// The outputs that a computation has to have, all of them, also where the interpreter would take
// minutes.
//
//   const std::vector<double> expected = expected_outputs(computation, inputs, jit);
//   const std::string wrong = difference(computation, expected, got);
//
// The interpreter walks what is small. Sums of products that are large are computed by machine code
// and then proven, by Freivalds' idea (1977) in whole numbers:
//
//   sum over s of w[s] out[q, s] = sum over r of in0[q, r] (sum over s of w[s] in1[r, s])
//
// where s are the variables of the output that only one of the two inputs moves with, columns of a
// product or output channels of a convolution, and q the others. The right side needs no loop over
// s around one over q. All is computed modulo 2^64 with random odd weights. An odd weight has an
// inverse, so one wrong output in a sum always changes it; several cancel with a probability below
// 2^-38, since values are whole and at most 2^24. What cannot be proven, or is wrong, is computed
// by the interpreter.
//
// Thread safety: free functions. Cost: below a million points as reference(); of sums of products
// above it one run of a schedule that nobody tuned and a few ns an element of the operands, for
// 2048 cubed 0.2 s; of all else as reference() again.
#pragma once

#include <span>
#include <vector>

#include "foretune/loop/computation.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/jit.h"

namespace foretune::loop {

// `inputs` are whole numbers whose sums are exact in f32, such as whole_inputs(). One value for
// each of the output's elements(); NaN in places that no point writes.
std::vector<double> expected_outputs(const Computation& computation, const Inputs& inputs,
                                     const Jit& jit);

// Whether `sums` holds what the computation's reduction gives before any step, by the equation
// above. False also where it does not apply: it takes a sum of products of two inputs.
bool has_right_sums(const Computation& computation, const Inputs& inputs,
                    std::span<const float> sums);

}  // namespace foretune::loop
