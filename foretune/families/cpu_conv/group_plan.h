// How the kernels of narrow groups (kernels/group_kernel.h) cover a grid: blocks of channels, whose
// vectors hold several groups, and blocks of neighbouring points of a row.
//
// Thread safety: constant after planning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/families/cpu_conv/input_slab.h"
#include "foretune/kernels/group_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

struct GroupChannels {
  std::ptrdiff_t groups = 1;
  std::ptrdiff_t of_block = 1;  // groups
  std::ptrdiff_t blocks = 1;
  std::ptrdiff_t inputs = 1;  // channels of a group
  std::ptrdiff_t outputs = 1;
  std::ptrdiff_t lanes = 1;
  std::vector<std::int32_t> gather;  // as of GroupCall; empty for groups of one channel

  // Groups have at most `lanes` channels.
  GroupChannels() = default;
  GroupChannels(const ConvView& view, int lanes_of_vector);

  [[nodiscard]] const std::int32_t* gather_lanes() const {
    return gather.empty() ? nullptr : gather.data();
  }
  [[nodiscard]] std::ptrdiff_t groups_in(std::ptrdiff_t block) const {
    return block + 1 < blocks ? of_block : groups - block * of_block;
  }
  // Returns true when a block leaves lanes of a vector unused.
  [[nodiscard]] bool is_partial(std::ptrdiff_t block) const {
    return groups_in(block) * outputs < lanes || groups_in(block) * inputs < lanes;
  }
};

// Neighbouring points of a row that a kernel computes, and the columns of taps that they read.
struct GroupPoints {
  Range points;
  std::vector<GroupColumn> columns;  // without those that are outside of the image
};

// The rows and columns of a grid.
struct GroupGrid {
  GroupRun run = GroupRun::kOne;
  std::ptrdiff_t input_step = 0;
  std::ptrdiff_t taps_of_row = 0;
  std::ptrdiff_t tap_rows = 0;
  std::vector<GroupPoints> points;  // of a row

  GroupGrid() = default;
  // Blocks have at most `most_points`, which kernels of every run must have.
  GroupGrid(const ConvView& view, const ConvGrid& grid, const GroupChannels& channels,
            std::ptrdiff_t most_points, int registers, int most_of_kernels);
};

// Returns the kernels of a config. Errors: kUnsupported for a problem whose groups are wider than a
// vector or when the kernels cannot run here, kInvalidArgument for a pool with too few threads.
Result<const GroupKernelSet*> group_kernels_for(const ConvProblem& problem,
                                                const CpuConvConfig& config,
                                                const ThreadPool* pool);

}  // namespace foretune::cpu_conv
