// The schedules of a textbook: a block of outputs in registers, with reductions around it (Goto and
// van de Geijn: Anatomy of High-Performance Matrix Multiplication, 2008), for every shape of block
// that fits, the most promising first by a count of instructions. They serve without tuning, and as
// the start of a search.
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
  // Cycles for the multiply-adds and loads of one step of the reductions, for all blocks together,
  // if everything is in the first cache.
  double cycles = 0;
};

// Returns the tiles, best first; empty where no variable of the output has neighbouring elements.
std::vector<RegisterTile> register_tiles(const Computation& computation, const VectorUnit& unit);

// The cache blocking of the operands. 0 and false omit a part.
struct CacheBlocks {
  std::int64_t lane_step = 0;       // of the lane variable, around all below
  std::int64_t reduction_step = 0;  // of the longest reduction
  std::int64_t row_step = 0;
  bool packs_lanes = false;  // the input that moves with the lanes, before the loop over row_step
  bool rows_first = false;   // blocks of rows are outside of blocks of vectors
  // Blocks of vectors are outermost, for large inputs that move with the lanes.
  bool lanes_outermost = false;
};

// Returns a nest with loops over all other variables, over cache blocks, over register blocks, then
// the block: rows, reductions, lanes.
Nest nest_of(const Computation& computation, const VectorUnit& unit, const RegisterTile& tile,
             const CacheBlocks& blocks);

// Returns nests in the order worth trying. The first is the choice without measuring.
std::vector<Nest> textbook_nests(const Computation& computation, const VectorUnit& unit,
                                 std::size_t count);

}  // namespace foretune::loop
