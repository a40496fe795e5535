// Compiled once for each vector width, with the flags for it. So it calls nothing that is inline
// elsewhere: the linker would keep one of the copies for all CPUs.
#include "kernel.h"

namespace stencil {
namespace {
constexpr long kWidth = STENCIL_WIDTH;
typedef float Vector __attribute__((vector_size(4 * STENCIL_WIDTH)));
long smaller(long a, long b) { return a < b ? a : b; }

// `kBlock` rows at once: a vector that is loaded serves all sums that it is part of.
template <long kBlock, long kRadius>
void rows_at_once(const float* from, long from_stride, float* to, long to_stride, long columns,
                  const Plan& plan) {
  for (long column = 0; column < columns; column += kWidth) {
    const long at = smaller(column, columns - kWidth);  // the last vector overlaps the one before
    Vector sums[kBlock] = {};
#pragma GCC unroll 8
    for (long row = -kRadius; row < kBlock + kRadius; ++row) {
      const long sides = row >= 0 && row < kBlock ? kRadius : 0;
#pragma GCC unroll 8
      for (long side = -sides; side <= sides; ++side) {
        Vector cells;
        __builtin_memcpy(&cells, from + row * from_stride + at + side, sizeof cells);
        for (long sum = 0; sum < kBlock; ++sum) {
          if (side != 0 && row == sum) {
            sums[sum] += cells * plan.across[side + 2];
          } else if (side == 0 && row - sum >= -kRadius && row - sum <= kRadius) {
            sums[sum] += cells * plan.down[row - sum + 2];
          }
        }
      }
    }
    for (long sum = 0; sum < kBlock; ++sum) {
      __builtin_memcpy(to + sum * to_stride + at, &sums[sum], sizeof sums[sum]);
    }
  }
}

// `fuse` steps of one tile, whose cells before the last step stay in the cache: each step computes
// as much around the tile as those after it need.
template <long kBlock, long kRadius>
void tile(const Plan& plan, const float* from, float* to, long top, long left) {
  const float* source = from + top * plan.stride + left;
  long source_stride = plan.stride;
  for (long step = 1; step <= plan.fuse; ++step) {
    const bool is_last = step == plan.fuse;
    const long stride = is_last ? plan.stride : plan.tile_columns + 2 * kMargin;
    float* const target =
        is_last ? to + top * stride + left : plan.tiles[step % 2] + kHalo * stride + kMargin;
    const long grow = (plan.fuse - step) * kRadius;
    for (long row = -grow; row < plan.tile_rows + grow; row += kBlock) {
      const long at = smaller(row, plan.tile_rows + grow - kBlock);
      rows_at_once<kBlock, kRadius>(source + at * source_stride - grow, source_stride,
                                    target + at * stride - grow, stride,
                                    plan.tile_columns + 2 * grow, plan);
    }
    source = target;
    source_stride = stride;
  }
}

template <long kBlock, long kRadius>
void run(const Plan& plan) {
  const long across = (plan.columns + plan.tile_columns - 1) / plan.tile_columns;
  const long down = (plan.rows + plan.tile_rows - 1) / plan.tile_rows;
  const float* from = plan.input;
  for (long passes = plan.steps / plan.fuse; passes > 0; --passes) {
    float* const to = passes % 2 == 1 ? plan.output : plan.scratch;
    for (long i = 0; i < across * down; ++i) {
      const long row = (plan.down_first ? i % down : i / across) * plan.tile_rows;
      const long column = (plan.down_first ? i / down : i % across) * plan.tile_columns;
      // The last tiles overlap those before them, so that all are whole.
      tile<kBlock, kRadius>(plan, from, to, smaller(row, plan.rows - plan.tile_rows),
                            smaller(column, plan.columns - plan.tile_columns));
    }
    set_halo(plan, to, passes == 1 ? 0 : plan.fuse * plan.radius);
    from = to;
  }
}

constexpr Run* kRuns[2][3]{{run<1, 1>, run<2, 1>, run<4, 1>}, {run<1, 2>, run<2, 2>, run<4, 2>}};
}  // namespace
void STENCIL_RUN(const Plan& plan) { kRuns[plan.radius - 1][plan.block / 2](plan); }
}  // namespace stencil
