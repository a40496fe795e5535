// The elements of a convolution's tensors of every type, beside floats or doubles that hold the
// same values.
// Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/families/cpu_conv/quantization.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/output_stage.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::cpu_conv {

// Return the types of operands and of the result.
OutputType operand_type(const ConvProblem& problem);
OutputType result_type(const ConvProblem& problem);

// Fills values that the type holds exactly: f32 multiples of 2^-23 in [-1, 1), bf16 odd multiples
// of 2^-8 there, i8 all integers, i32 those up to 2^20.
void draw_values(OutputType type, std::span<float> values, Rng& rng);

// Returns the elements of values plus `zero`. Errors: kUnsupported when memory is short.
Result<AlignedBuffer> encode_values(OutputType type, std::span<const float> values, float zero = 0);
// Returns the value of an element.
double decode_value(OutputType type, const float* elements, std::size_t index);

// Returns the output of i8 for a sum, by the steps that kernels/output_stage.h gives, each computed
// in doubles and rounded to f32: a product or sum of two floats is rounded once by this.
double quantized(double sum, std::size_t filter, double addend, bool has_addend, bool relu,
                 const ConvQuantization& quantization);

}  // namespace foretune::cpu_conv
