// A stencil in two dimensions, `steps` times over: each cell becomes a weighted sum of neighbours.
#pragma once
namespace stencil {
constexpr long kHalo = 8;     // rows around a grid that may be read: steps * radius at most
constexpr long kMargin = 16;  // columns, a multiple of the longest vector
// Pointers are to the cell (0, 0) of grids with the halo around them.
struct Plan {
  long rows, columns, stride, steps, radius;
  bool wraps;  // beyond an edge lies the opposite one; else the grid lies there mirrored
  float *input = nullptr, *scratch = nullptr, *output = nullptr, *tiles[2] = {};
  long block = 0, tile_rows = 0, tile_columns = 0, fuse = 0, down_first = 0;
  float across[5] = {-0.125F, -0.0625F, 0, -0.0625F, -0.125F};  // weights, from the left
  float down[5] = {0.0625F, 0.125F, 0.25F, 0.125F, 0.0625F};    // and from above
};
// Sets the cells around a grid, so many rows and columns, as the border says.
void set_halo(const Plan& plan, float* grid, long depth);
// All steps, by vectors of 4, 8 and 16 numbers: each for the CPUs that have them.
using Run = void(const Plan& plan);
Run run4, run8, run16;
}  // namespace stencil
