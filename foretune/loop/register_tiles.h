// The schedules that a textbook would give: a block of outputs in registers, reductions around it
// (Goto and van de Geijn: Anatomy of High-Performance Matrix Multiplication, 2008), for every shape
// of block that fits, the most promising first by counting instructions. What one would run who
// does not tune, and where a search may start.
//
// Thread safety: free functions. Cost: some ten microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

struct RegisterTile {
  std::size_t lane_var = 0;  // across vector lanes
  std::size_t row_var = 0;   // the other side of the block; vars.size(): none
  std::int64_t vectors = 1;
  std::int64_t rows = 1;
  // Cycles that the multiply-adds and loads of one step of the reductions take, all blocks
  // together, if everything is in the nearest cache.
  double cycles = 0;
};

// Best first. Empty where no variable of the output has neighbouring elements.
std::vector<RegisterTile> register_tiles(const Computation& computation, const VectorUnit& unit);

// How the operands of blocks are kept in caches: 0 and false leave that out.
struct CacheBlocks {
  std::int64_t lane_step = 0;       // of the lane variable, around everything below
  std::int64_t reduction_step = 0;  // of the longest reduction
  std::int64_t row_step = 0;
  bool packs_lanes = false;  // the input that moves with the lanes, before the loop over row_step
  bool rows_first = false;   // blocks of rows lie outside of blocks of vectors
  // Blocks of vectors lie outside of everything: what moves with the lanes is large.
  bool lanes_outermost = false;
};

// Loops over all other variables, over cache blocks, over register blocks, then the block: rows,
// reductions, lanes.
Nest nest_of(const Computation& computation, const VectorUnit& unit, const RegisterTile& tile,
             const CacheBlocks& blocks);

// The first is what one would take without measuring; the others are worth trying, in order.
std::vector<Nest> textbook_nests(const Computation& computation, const VectorUnit& unit,
                                 std::size_t count);

}  // namespace foretune::loop
