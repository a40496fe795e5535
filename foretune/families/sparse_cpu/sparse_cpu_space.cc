#include "foretune/families/sparse_cpu/sparse_cpu_space.h"

#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/space/schemas/sparse_cpu.h"

namespace foretune::sparse_cpu {
namespace {

constexpr std::string_view kLanes =
    "(select(isa == isa.avx512, 16, select(isa == isa.avx2, 8, 4)) / select(dtype == dtype.f64, 2, "
    "1))";
constexpr std::string_view kBestIsa =
    "select(hw.vector_bytes >= 64, isa.avx512, select(hw.vector_bytes >= 32, isa.avx2, "
    "isa.generic))";
constexpr std::string_view kSums = "select(isa == isa.avx512, 16, 8)";
constexpr std::string_view kIsSpmm = "op == op.spmm";
// Vectors that cover the dense columns, and the blocks that they are cut into.
const std::string kColumnVectors = concat("ceil_div(n, ", kLanes, ")");
const std::string kColumnBlocks = concat("ceil_div(", kColumnVectors, ", vectors)");

std::vector<std::vector<std::int32_t>> domains() {
  return {{0, 1, 2},
          {0, 1},
          {0, 1, 2, 3},
          {1, 2, 3, 4, 5, 6, 7, 8},
          {1, 2, 4, 8},
          {1, 2, 4},
          {1, 16, 64, 256, 1024, 4096, 16384, 65536, 1 << 28},
          {1, 4, 8, 16, 32, 64},
          {1, 4, 8, 16, 32, 64, 256, 1024, 4096, 65536, 1 << 20, 1 << 28},
          {1, 2, 4, 8, 16, 32, 64},
          {0, 1, 2, 3},
          {1, 16, 64, 256, 1024, 4096}};
}

void add_format_rules(std::vector<Constraint>& out) {
  out.push_back({concat("isa <= ", kBestIsa), "the CPU does not have these instructions"});
  out.push_back({concat("isa == ", kBestIsa, " || isa == isa.avx2"),
                 "the portable kernels are for CPUs with nothing better"});
  out.push_back({"op == op.spmv || format == format.csr && vector == vector.columns",
                 "only products with a vector have another storage or vectors along another axis"});
  out.push_back(
      {"op != op.spmv || format == format.sell && vector == vector.rows || "
       "format == format.csr && (vector == vector.entries || vector == vector.none)",
       "vectors of a product with a vector lie along the entries of a row, or the rows "
       "of a slice"});
  // One rule for each parameter: a rule prunes when all that it names are known.
  out.push_back({"format == format.sell || height == 1", "only SELL has slices"});
  out.push_back({"format == format.sell || window == 1", "only SELL has windows"});
  out.push_back(
      {concat("format == format.csr || height > 1 && height % (unroll * ", kLanes, ") == 0"),
       "a slice has as many rows as a whole number of its vectors"});
  out.push_back({"format == format.csr || window >= height", "a window holds at least one slice"});
}

void add_block_rules(std::vector<Constraint>& out) {
  for (const std::string_view parameter : {"vectors", "group", "row_tile"}) {
    out.push_back({concat(kIsSpmm, " || ", parameter, " == 1"),
                   "only products with a dense matrix have blocks of columns and of rows"});
  }
  out.push_back({"op == op.sddmm || unroll <= 4", "at most four sums of a row are kept apart"});
  out.push_back({concat("!(", kIsSpmm, ") || unroll == 1 || group == 1"),
                 "rows side by side already keep their sums apart"});
  out.push_back({concat("!(", kIsSpmm, ") || vectors * max(unroll, group) <= ", kSums),
                 "the block needs more vector registers than there are"});
}

void add_thread_rules(std::vector<Constraint>& out) {
  out.push_back({"threads == 1 || threads <= hw.cores", "there are fewer cores than threads"});
  out.push_back(
      {"threads == 1 || nnz * n >= 8192", "waking a thread takes longer than this little work"});
  out.push_back({"threads == 1 || rows >= threads || partition == partition.columns",
                 "there are fewer rows than threads"});
  out.push_back(
      {concat("partition != partition.columns || ", kIsSpmm, " && ", kColumnBlocks, " >= threads"),
       "there are fewer blocks of columns than threads"});
  out.push_back({"partition != partition.dynamic || chunk > 1 && format == format.csr",
                 "chunks as they come have several rows, unpacked"});
  out.push_back({"partition == partition.dynamic || chunk == 1", "only chunks have a size"});
  out.push_back({"partition != partition.dynamic || chunk * threads <= rows",
                 "there are fewer chunks than threads"});
}

std::vector<std::pair<std::string, std::string>> canonical_rules() {
  return {
      {"partition", "select(threads == 1, partition.rows, partition)"},
      {"chunk", "select(threads == 1, 1, chunk)"},
      // As many blocks of nearly equal width result from several bounds.
      {"vectors",
       concat("select(", kIsSpmm, ", ceil_div(", kColumnVectors, ", ", kColumnBlocks, "), 1)")},
      // One block of columns passes in the same order whatever the tile.
      {"row_tile",
       concat("select(", kIsSpmm, " && ", kColumnBlocks, " > 1, min(row_tile, rows), 1)")},
      {"window", "select(format == format.sell, min(window, round_up(rows, height)), 1)"},
  };
}

}  // namespace

SpaceDefinition sparse_cpu_space_definition() {
  SpaceDefinition definition{.schema = sparse_cpu_schema(),
                             .problem_type = kSparseProblem,
                             .domains = domains(),
                             .constraints = {},
                             .canonical = canonical_rules()};
  add_format_rules(definition.constraints);
  add_block_rules(definition.constraints);
  add_thread_rules(definition.constraints);
  return definition;
}

Result<std::shared_ptr<const CompiledSpace>> sparse_cpu_space() {
  static const Result<std::shared_ptr<const CompiledSpace>> space =
      CompiledSpace::create(sparse_cpu_space_definition());
  return space;
}

}  // namespace foretune::sparse_cpu
