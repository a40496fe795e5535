// The payload of a gemm problem: B, as a file of weights. Two forms are read, both of
// little-endian f32 values:
//
//   NumPy's .npy, versions 1.0 and 2.0, a matrix in C's or Fortran's order
//   no header at all: the k * n values alone
//
// A matrix has the form of B in memory: k rows of n where the layout stores B by rows (rrr, crr), n
// rows of k where it stores B by columns (rcr, ccr), as frameworks keep the weights of a linear
// layer. A file without a header is therefore B's memory, byte by byte; a file in Fortran's order
// is transposed when it is read. Thread safety: free functions. Cost: reading copies each value
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/result.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/payload.h"

namespace foretune {

// Positions of the numbers that describe weights (described_value()).
enum class GemmWeightsValue : std::uint8_t {
  kZeros = 0,         // share of values that are zero
  kSubnormals = 1,    // share of values below 2^-126, which some CPUs multiply slowly
  kLog2Largest = 2,   // log2 of the largest magnitude; -150 when all values are zero
  kLog2Smallest = 3,  // log2 of the smallest magnitude above zero; -150 when all values are zero
};

const PayloadInfo& gemm_weights_info();

// Fills `out`, k * n values, with B as the problem's layout stores it: k rows of n, or n rows of k.
// Errors: kCorrupt and kUnsupported for the form of the file, kMismatch for another shape,
// kInvalidArgument for values that are not finite, with the place.
Status read_gemm_weights(const GemmProblem& problem, std::span<const std::byte> bytes,
                         std::span<float> out);

}  // namespace foretune
