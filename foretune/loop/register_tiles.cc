#include "foretune/loop/register_tiles.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace foretune::loop {
namespace {

// For x86 cores since 2017: multiply-adds and loads of whole vectors per cycle, and the cycles
// until a sum can be added to again.
constexpr double kPerCycle = 2;
constexpr double kLatency = 4;

double block_cycles(std::int64_t vectors, std::int64_t rows) {
  const auto sums = static_cast<double>(vectors * rows);
  const double loads = static_cast<double>(vectors + rows) / kPerCycle;
  // Sums of a single block are spread over several registers where they are few.
  return std::max({sums / kPerCycle, loads, std::min(kLatency, sums)});
}

std::int64_t extent_of(const Computation& computation, std::size_t var) {
  return var < computation.vars.size() ? computation.vars[var].extent : 1;
}

double all_cycles(std::int64_t all_vectors, std::int64_t all_rows, const RegisterTile& tile) {
  double cycles = 0;
  for (std::int64_t v = 0; v < all_vectors; v += tile.vectors) {
    const std::int64_t vectors = std::min(tile.vectors, all_vectors - v);
    const std::int64_t whole = all_rows / tile.rows;
    const std::int64_t rest = all_rows % tile.rows;
    cycles += static_cast<double>(whole) * block_cycles(vectors, tile.rows);
    cycles += rest > 0 ? block_cycles(vectors, rest) : 0;
  }
  return cycles;
}

// True when lanes may lie along a variable: it moves by neighbours in the output, and by neighbours
// or not at all in the combined inputs.
bool takes_lanes(const Computation& computation, std::size_t var) {
  if (computation.vars[var].is_reduction || computation.output.stride_of(var) != 1) {
    return false;
  }
  for (int i = 0; i < computation.combined; ++i) {
    const std::int64_t stride = computation.inputs[static_cast<std::size_t>(i)].stride_of(var);
    if (stride != 0 && stride != 1) {
      return false;
    }
  }
  return true;
}

// Returns the variables for the rows of a block. The rows reuse the vectors of the input that moves
// with the lanes.
std::vector<std::size_t> row_vars(const Computation& computation, std::size_t lane_var) {
  std::vector<std::size_t> rows;
  for (std::size_t v = 0; v < computation.vars.size(); ++v) {
    if (v == lane_var || computation.vars[v].is_reduction || computation.vars[v].extent == 1) {
      continue;
    }
    for (int i = 0; i < computation.combined; ++i) {
      const Tensor& input = computation.inputs[static_cast<std::size_t>(i)];
      if (input.stride_of(lane_var) != 0 && input.stride_of(v) == 0) {
        rows.push_back(v);
      }
    }
  }
  if (rows.empty()) {
    rows.push_back(computation.vars.size());
  }
  return rows;
}

}  // namespace

std::vector<RegisterTile> register_tiles(const Computation& computation, const VectorUnit& unit) {
  std::vector<RegisterTile> tiles;
  const std::int64_t most = unit.registers - kOperandRegisters;
  for (std::size_t lane_var = 0; lane_var < computation.vars.size(); ++lane_var) {
    if (!takes_lanes(computation, lane_var)) {
      continue;
    }
    const std::int64_t all_vectors =
        (extent_of(computation, lane_var) + unit.lanes - 1) / unit.lanes;
    for (const std::size_t row_var : row_vars(computation, lane_var)) {
      const std::int64_t all_rows = extent_of(computation, row_var);
      for (std::int64_t vectors = 1; vectors <= std::min(all_vectors, most); ++vectors) {
        for (std::int64_t rows = 1; rows <= std::min(all_rows, most / vectors); ++rows) {
          RegisterTile tile{
              .lane_var = lane_var, .row_var = row_var, .vectors = vectors, .rows = rows};
          tile.cycles = all_cycles(all_vectors, all_rows, tile) * computation.points() /
                        static_cast<double>(extent_of(computation, lane_var) * all_rows);
          tiles.push_back(tile);
        }
      }
    }
  }
  // Among equal tiles the one with the fewest loads per addition comes first.
  const auto loads = [](const RegisterTile& tile) {
    return static_cast<double>(tile.vectors + tile.rows) /
           static_cast<double>(tile.vectors * tile.rows);
  };
  std::stable_sort(tiles.begin(), tiles.end(), [&](const auto& a, const auto& b) {
    return a.cycles != b.cycles ? a.cycles < b.cycles : loads(a) < loads(b);
  });
  return tiles;
}

namespace {

// Builds the loops of a nest from the outside.
class Builder {
 public:
  Builder(const Computation& computation, const VectorUnit& unit, const RegisterTile& tile,
          const CacheBlocks& blocks)
      : c_(computation), tile_(tile), blocks_(blocks), lanes_(tile.vectors * unit.lanes) {
    for (std::size_t v = 0; v < c_.vars.size(); ++v) {
      covers_.push_back(c_.vars[v].extent);
      if (c_.vars[v].is_reduction &&
          (reduction_ == kNone || c_.vars[v].extent > c_.vars[reduction_].extent)) {
        reduction_ = v;
      }
    }
  }

  Nest build() {
    if (blocks_.lanes_outermost) {
      add(tile_.lane_var, lanes_, Mark::kNone);
      pack_lanes();
    }
    for (std::size_t v = 0; v < c_.vars.size(); ++v) {
      if (v != tile_.lane_var && v != tile_.row_var && !c_.vars[v].is_reduction) {
        add(v, 1, Mark::kNone);
      }
    }
    add(tile_.lane_var, blocks_.lane_step, Mark::kNone);
    add(reduction_, blocks_.reduction_step, Mark::kNone);
    if (!blocks_.lanes_outermost) {
      pack_lanes();
    }
    add(tile_.row_var, blocks_.row_step, Mark::kNone);
    if (blocks_.rows_first) {
      add(tile_.row_var, tile_.rows, Mark::kNone);
    }
    add(tile_.lane_var, blocks_.lanes_outermost ? 0 : lanes_, Mark::kNone);
    if (!blocks_.rows_first) {
      add(tile_.row_var, tile_.rows, Mark::kNone);
    }
    nest_.block = static_cast<int>(nest_.loops.size());
    add(tile_.row_var, 1, Mark::kNone);
    // The innermost reduction is the one that moves least in memory.
    std::vector<std::size_t> reductions;
    for (std::size_t v = 0; v < c_.vars.size(); ++v) {
      if (c_.vars[v].is_reduction) {
        reductions.push_back(v);
      }
    }
    std::stable_sort(reductions.begin(), reductions.end(),
                     [&](std::size_t a, std::size_t b) { return distance_of(a) > distance_of(b); });
    for (const std::size_t v : reductions) {
      add(v, 1, Mark::kNone);
    }
    add(tile_.lane_var, 1, Mark::kVector);
    return nest_;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // Adds a loop. Omits a loop of one round, unless it is the last of its variable.
  void add(std::size_t var, std::int64_t step, Mark mark) {
    if (var >= c_.vars.size() || step == 0 || (step > 1 && step >= covers_[var]) ||
        (step == 1 && covers_[var] == 1 && c_.vars[var].extent > 1)) {
      return;
    }
    covers_[var] = step;
    nest_.loops.push_back({.var = static_cast<std::uint8_t>(var), .mark = mark, .step = step});
  }

  [[nodiscard]] std::int64_t distance_of(std::size_t var) const {
    std::int64_t distance = 0;
    for (int i = 0; i < c_.combined; ++i) {
      distance += std::abs(c_.inputs[static_cast<std::size_t>(i)].stride_of(var));
    }
    return distance;
  }

  // Packs the input that moves with the lanes.
  void pack_lanes() {
    for (int i = 0; blocks_.packs_lanes && i < c_.combined; ++i) {
      if (c_.inputs[static_cast<std::size_t>(i)].stride_of(tile_.lane_var) != 0) {
        nest_.packs.push_back({.input = static_cast<std::uint8_t>(i),
                               .level = static_cast<std::uint8_t>(nest_.loops.size())});
        return;
      }
    }
  }

  const Computation& c_;
  const RegisterTile& tile_;
  const CacheBlocks& blocks_;
  std::int64_t lanes_;
  std::vector<std::int64_t> covers_;
  std::size_t reduction_ = kNone;
  Nest nest_;
};

// Returns the cache blocks worth trying around a block, by the amount of data.
std::vector<CacheBlocks> cache_blocks(const Computation& computation) {
  std::int64_t elements = 0;
  std::size_t others = 0;
  for (const Tensor& input : computation.inputs) {
    elements = std::max(elements, input.elements());
  }
  for (const Var& var : computation.vars) {
    others += var.is_reduction || var.extent == 1 ? 0U : 1U;
  }
  std::vector<CacheBlocks> blocks;
  // Other variables than the two of the block could be inside.
  if (others > 2) {
    blocks.push_back({.packs_lanes = true, .lanes_outermost = true});
    blocks.push_back({.lanes_outermost = true});
  }
  for (const bool packs : {false, true}) {
    for (const bool rows_first : {false, true}) {
      blocks.push_back({.packs_lanes = packs, .rows_first = rows_first});
    }
  }
  // A size that a second-level cache holds comfortably.
  constexpr std::int64_t kSmallElements = 96 * 1024;
  if (elements <= kSmallElements || others > 2) {
    return blocks;
  }
  std::vector<CacheBlocks> large;
  for (const bool packs_lanes : {true, false}) {
    for (const std::int64_t reduction_step : {192, 336, 512}) {
      for (const std::int64_t lane_step : {1024, 512, 0}) {
        for (const std::int64_t row_step : {0, 336, 84}) {
          large.push_back({.lane_step = lane_step,
                           .reduction_step = reduction_step,
                           .row_step = row_step,
                           .packs_lanes = packs_lanes,
                           .rows_first = true});
        }
      }
    }
  }
  large.insert(large.end(), blocks.begin(), blocks.end());
  return large;
}

}  // namespace

Nest nest_of(const Computation& computation, const VectorUnit& unit, const RegisterTile& tile,
             const CacheBlocks& blocks) {
  return Builder(computation, unit, tile, blocks).build();
}

std::vector<Nest> textbook_nests(const Computation& computation, const VectorUnit& unit,
                                 std::size_t count) {
  const std::vector<RegisterTile> tiles = register_tiles(computation, unit);
  const std::vector<CacheBlocks> blocks = cache_blocks(computation);
  std::vector<Nest> nests;
  // The best tiles come with all blocks before the next tiles.
  constexpr std::size_t kTilesAtOnce = 8;
  for (std::size_t first = 0; first < tiles.size() && nests.size() < count; first += kTilesAtOnce) {
    for (const CacheBlocks& around : blocks) {
      for (std::size_t t = first; t < std::min(tiles.size(), first + kTilesAtOnce); ++t) {
        Nest nest = nest_of(computation, unit, tiles[t], around);
        if (nests.size() < count && check(computation, nest) &&
            std::find(nests.begin(), nests.end(), nest) == nests.end()) {
          nests.push_back(std::move(nest));
        }
      }
    }
  }
  return nests;
}

}  // namespace foretune::loop
