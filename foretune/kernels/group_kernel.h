// Kernels for convolutions whose groups are narrow: vectors lie along the channels, those of
// several groups side by side. Groups of one channel are the simplest case. The operands are read
// where they are, and an input point that several taps of a row multiply is loaded once.
//
// A block of channels is a vector: `lanes / (channels of a group)` groups. Lane l of an output is
//
//   output[p][l] = max(floor, bias[l] + addend[p][l] + sum over rows r, columns c, taps t, inputs
//   i:
//                       input[p * stride + t + r + c][gather[i][l]] * weights[r][c][i][t][l])
//
// Operands are f32, or bf16 or i8 with an output of the same type or of sums (f32 or i32), which
// kernels/output_stage.h defines. bf16 is multiplied as f32; of i8 the input's zero is subtracted
// first, and weights are words of 32 bits whose upper half is 0.
//
// The gradient of weights, in f32 only, is
//
//   sums[i][t][l] += sum over rows r, points p: input[r][p * stride + t][gather[i][l]] *
//   output[r][p][l]
//
// No kernel reads or writes a byte outside of the given points and channels, tails included.
// Thread safety: free functions on constant tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "foretune/hardware/cpu.h"
#include "foretune/kernels/output_stage.h"

namespace foretune {

inline constexpr int kMaxGroupPoints = 14;
inline constexpr int kMaxGradientPoints = 8;

// Neighbouring taps of a filter's row, and the distance of the points that read them, both
// unrolled. Other rows are columns of one tap each.
enum class GroupRun : std::uint8_t {
  kOne = 0,  // any stride
  kTwo,
  kThree,
  kThreeByTwo,  // of stride 2
  kFive,
  kFiveByTwo,
  kSeven,
};
inline constexpr int kGroupRuns = 7;

struct GroupRunShape {
  int taps = 1;
  int stride = 1;
};
constexpr GroupRunShape shape_of(GroupRun run) {
  switch (run) {
    case GroupRun::kOne:
      break;
    case GroupRun::kTwo:
      return {.taps = 2, .stride = 1};
    case GroupRun::kThree:
      return {.taps = 3, .stride = 1};
    case GroupRun::kThreeByTwo:
      return {.taps = 3, .stride = 2};
    case GroupRun::kFive:
      return {.taps = 5, .stride = 1};
    case GroupRun::kFiveByTwo:
      return {.taps = 5, .stride = 2};
    case GroupRun::kSeven:
      return {.taps = 7, .stride = 1};
  }
  return {};
}

// Returns how many neighbouring input points a block of points reads.
constexpr int points_read(GroupRun run, int points) {
  return (points - 1) * shape_of(run).stride + shape_of(run).taps;
}

// Returns the most points of a block: sums, the weights of a row, an input and a gather's indices
// stay in registers.
constexpr int max_group_points(GroupRun run, int registers) {
  const int most = registers - shape_of(run).taps - 2;
  return most < kMaxGroupPoints ? most : kMaxGroupPoints;
}

// Where a row of taps begins, in elements.
struct GroupRow {
  std::ptrdiff_t input = 0;
  std::ptrdiff_t weight = 0;
};

// A column of taps. Bit q of `inside` says that input point q of the block is within the image;
// others are not read and count as 0.
struct GroupColumn {
  std::ptrdiff_t input = 0;
  std::ptrdiff_t weight = 0;
  std::uint32_t inside = 0;
};

// Distances are in elements.
struct GroupCall {
  const void* input = nullptr;  // of the first point, at the first row and column
  // Between input points: neighbours, or with a run of one tap those of neighbouring points.
  std::ptrdiff_t input_step = 0;
  const float* weights = nullptr;  // of the first block
  const GroupRow* rows = nullptr;
  int row_count = 0;
  const GroupColumn* columns = nullptr;
  int column_count = 0;
  // [input][lane]: the lane of the input that a lane of the output multiplies; null for groups of
  // one channel and one filter.
  const std::int32_t* gather = nullptr;
  int inputs = 1;  // of a group
  // Channels of a block, 1 to lanes; only kernels with a tail look at them for a vector's length.
  int input_channels = 0;
  int output_channels = 0;
  // Blocks to compute, whose channels follow each other.
  int blocks = 1;
  std::ptrdiff_t block_weights = 0;  // between the weights of blocks
  const float* bias = nullptr;       // of the first channel, or null; for i8 the bits of i32
  const void* addend = nullptr;      // as the output, or null
  void* output = nullptr;
  std::ptrdiff_t output_step = 0;
  float floor = -std::numeric_limits<float>::infinity();  // or 0 for a ReLU
  // Only for bf16 and i8: the output is one of sums.
  bool stores_sums = false;
  // Only for i8, as of OutputStageCall.
  std::int32_t input_zero = 0;
  const float* scales = nullptr;
  float addend_scale = 1;
  std::int32_t addend_zero = 0;
  std::int32_t output_zero = 0;
};

// One block of channels and of points, over rows of the output.
struct GroupGradientCall {
  const float* input = nullptr;
  std::ptrdiff_t input_step = 0;  // as of GroupCall
  const float* output = nullptr;  // its gradient
  std::ptrdiff_t output_step = 0;
  // [row]: where it begins in the input and in the output.
  const std::ptrdiff_t* input_rows = nullptr;
  const std::ptrdiff_t* output_rows = nullptr;
  std::ptrdiff_t rows = 0;
  std::uint32_t inside = 0;  // as of GroupColumn
  const std::int32_t* gather = nullptr;
  int inputs = 1;
  int input_channels = 0;
  int output_channels = 0;
  float* sums = nullptr;  // [input][tap][lane], added to
};

using GroupKernel = void (*)(const GroupCall& call);
using GroupGradientKernel = void (*)(const GroupGradientCall& call);

struct GroupKernelSet {
  int lanes = 1;
  // [run][gathers][tail][points - 1]
  GroupKernel table[kGroupRuns][2][2][kMaxGroupPoints] = {};                 // NOLINT
  GroupGradientKernel gradients[kGroupRuns][2][2][kMaxGradientPoints] = {};  // NOLINT

  // Returns nullptr when there is no such block. `tail`: vectors are not full.
  [[nodiscard]] GroupKernel find(GroupRun run, bool gathers, bool tail, int points) const {
    return points < 1 || points > kMaxGroupPoints
               ? nullptr
               : table[static_cast<int>(run)][gathers ? 1 : 0][tail ? 1 : 0][points - 1];
  }
  [[nodiscard]] GroupGradientKernel find_gradient(GroupRun run, bool gathers, bool tail,
                                                  int points) const {
    return points < 1 || points > kMaxGradientPoints
               ? nullptr
               : gradients[static_cast<int>(run)][gathers ? 1 : 0][tail ? 1 : 0][points - 1];
  }
};

// Returns the kernels for `isa`, or nullptr when this build has none or this CPU cannot run them.
// `element`: the type of the operands, of which only AVX-512 has kernels for bf16 and i8.
const GroupKernelSet* group_kernel_set(CpuIsa isa, OutputType element = OutputType::kF32);

}  // namespace foretune
