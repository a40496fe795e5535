// A problem type and a family from outside of the source tree; kernel.cc has what is measured.
#include "foretune/family/function_family.h"
#include "foretune/features/plain_table.h"
#include "foretune/plugin/plugin.h"
#include "kernel.h"

using namespace foretune;  // NOLINT(google-build-using-namespace): an example of user code
using stencil::kHalo, stencil::kMargin;

// Also walks the cells inside of a row, over which it jumps.
void stencil::set_halo(const Plan& plan, float* grid, long depth) {
  const auto inside = [&](long at, long size) {
    const long mirrored = at < 0 ? -1 - at : at >= size ? 2 * size - 1 - at : at;
    return plan.wraps ? (at + size) % size : mirrored;
  };
  for (long row = -depth; depth > 0 && row < plan.rows + depth; ++row) {
    for (long column = -depth; column < plan.columns + depth; ++column) {
      column = column == 0 && row >= 0 && row < plan.rows ? plan.columns : column;
      grid[row * plan.stride + column] =
          grid[inside(row, plan.rows) * plan.stride + inside(column, plan.columns)];
    }
  }
}

namespace {
// 1. The type of problem: its fields, the work of a problem, and how problems are drawn.
enum Field : std::size_t { kRows, kColumns, kSteps, kRadius, kBorder };
constexpr std::string_view kBorders[]{"wrap", "mirror"};
constexpr ProblemField kFields[]{
    {"rows", {}, 0, 16, 16384, {}, {true}, 1, "rows of the grid"},
    {"columns", {}, 0, 16, 16384, {}, {true}, 1, "columns of the grid"},
    {"steps", {}, 0, 1, 4, 1, {true}, 1, "how often all cells are computed"},
    {"radius", {}, 0, 1, 2, 1, {true}, 1, "1 for 5 points, 2 for 9"},
    {"border", kBorders, 2, 0, 1, 0, {}, 1, "what lies beyond the edges"}};
constexpr DrawnSize kDrawn[]{{kRows, 6, 0.8, 16, 16, 2048}, {kColumns, 6, 0.8, 16, 16, 2048}};

std::optional<ProblemWork> work(const Problem& problem) {
  const auto cells = static_cast<double>(problem.field(kRows) * problem.field(kColumns));
  const auto points = static_cast<double>((4 * problem.field(kRadius) + 1) * problem.field(kSteps));
  return ProblemWork{2 * points * cells, 8 * cells};
}
void complete(std::span<std::int64_t> fields, Rng& rng) {
  fields[kSteps] = std::int64_t{1} << rng.below(3);
  fields[kRadius] = rng.between(1, 2);
}
const ProblemTypeInfo kType{.schema = {added_problem_type("stencil2d"), "stencil2d", 1, kFields},
                            .summary = "weighted sums of neighbours in a grid, step after step",
                            .work = &work,
                            .drawn_sizes = kDrawn,
                            .complete = &complete};

// 2. The configs and which of them are legal: data, so that models can carry it.
constexpr std::string_view kSpace = R"(space stencil2d 1 stencil2d
parameter width [] 4 8 16
parameter block [] 1 2 4
parameter tile_rows [] 8 16 32 64 128
parameter tile_columns [] 32 64 128 256 512 16384
parameter fuse [] 1 2 4
parameter order [across down] 0 1
constraint 4 * width <= max(16, hw.vector_bytes) # this CPU has no such vectors
constraint steps % fuse == 0 # the steps are no multiple of those done at once
constraint fuse == 1 || (tile_rows + 16) * (min(tile_columns, columns) + 32) <= 131072 # over 1 MiB
canonical tile_rows min(tile_rows, rows)
canonical tile_columns min(tile_columns, columns)
canonical order select(tile_rows >= rows || tile_columns >= columns, 0, order)
)";

// 3. Grids, and a check of every cell. Values are multiples of a power of two, so sums are exact.
struct Grids final : ProblemData {
  Grids(std::span<const std::int64_t> sizes, std::uint64_t seed)
      : plan{sizes[kRows],  sizes[kColumns], sizes[kColumns] / 16 * 16 + 48,
             sizes[kSteps], sizes[kRadius],  sizes[kBorder] == 0} {
    Rng rng(seed);
    grids[0].resize(static_cast<std::size_t>((plan.rows + 2 * kHalo) * plan.stride));
    for (float& cell : grids[0]) {
      cell = static_cast<float>(rng.between(-15, 15));
    }
    grids[1] = grids[2] = grids[3] = grids[0];
    plan.input = cells(0);
    plan.scratch = cells(1);
    plan.output = cells(2);
    stencil::set_halo(plan, plan.input, kHalo);
    for (long step = 0; step < plan.steps; ++step) {
      stencil::set_halo(plan, cells(3), plan.radius);
      grids[1] = grids[3];
      for (long i = 0; i < plan.rows * plan.stride - 2 * kMargin; ++i) {
        cells(3)[i] = 0;
        for (long by = -plan.radius; by <= plan.radius; ++by) {
          cells(3)[i] += plan.down[by + 2] * plan.scratch[i + by * plan.stride] +
                         plan.across[by + 2] * plan.scratch[i + by];
        }
      }
    }
  }
  void poison() override { grids[2].assign(grids[2].size(), 1e9F); }
  Support verify() override {
    for (long i = 0; i < plan.rows * plan.columns; ++i) {
      const long at = i / plan.columns * plan.stride + i % plan.columns;
      if (plan.output[at] != cells(3)[at]) {
        return Support::no("cell ", i, " is ", plan.output[at], " instead of ", cells(3)[at]);
      }
    }
    return Support::yes();
  }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(16 * grids[0].size()); }
  float* cells(int grid) { return grids[grid].data() + kHalo * plan.stride + kMargin; }
  stencil::Plan plan;
  std::vector<float> grids[4];  // input, scratch, output, and what that should be
};

// 4. The function that the clock sees.
std::function<void()> bind(const Config& config, ProblemData& data) {
  stencil::Plan plan = dynamic_cast<Grids&>(data).plan;
  const Config::Words& words = config.words;
  plan.block = words[1];
  plan.tile_rows = std::min<long>(words[2], plan.rows);
  plan.tile_columns = std::min<long>(words[3], plan.columns);
  plan.fuse = words[4];
  plan.down_first = words[5];
  const long size = 2 * (plan.tile_rows + 2 * kHalo) * (plan.tile_columns + 2 * kMargin);
  const auto run = std::array{stencil::run4, stencil::run8, stencil::run16}[words[0] / 8];
  return [plan, run, tiles = std::vector<float>(static_cast<std::size_t>(size))]() mutable {
    plan.tiles[0] = tiles.data();
    plan.tiles[1] = &tiles[tiles.size() / 2];
    run(plan);
  };
}

Status add_stencil(Plugin& plugin) {
  FORETUNE_TRY_STATUS(plugin.register_problem_type(kType));
  FORETUNE_TRY(SpaceDefinition space, SpaceDefinition::parse(kSpace));
  FORETUNE_TRY_STATUS(
      plugin.register_feature_table(make_plain_table("stencil2d-plain", kType, space.schema)));
  FunctionFamily family{"stencil2d", "stencils on this CPU, by tiles", {}, "stencil2d-plain"};
  FORETUNE_TRY(family.space, CompiledSpace::create(std::move(space)));
  family.defaults = {{16, 2, 32, 512, 1, 0}, {8, 2, 32, 512, 1, 0}, {4, 2, 32, 512, 1, 0}};
  family.make_data = [](const Problem& problem, std::uint64_t seed) {
    return std::make_unique<Grids>(problem.fields(), seed);
  };
  family.bind = &bind;
  return plugin.register_family(function_family(std::move(family)));
}
}  // namespace
FORETUNE_PLUGIN(add_stencil)
