#include "foretune/families/sparse_cpu/sparse_cpu_space.h"

#include <array>
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
constexpr std::string_view kValueBytes = "select(dtype == dtype.f64, 8, 4)";
constexpr std::string_view kBlockRegisters = "select(isa == isa.avx512, 32, 16)";
// A product with a vector, and one with a dense matrix.
constexpr std::string_view kIsSpmv = "(op == op.spmv || op == op.gespmv)";
constexpr std::string_view kIsSpmm = "(op == op.spmm || op == op.gespmm)";
constexpr std::string_view kHasColumns = "(op == op.spmm || op == op.gespmm || op == op.mttkrp)";
constexpr std::string_view kIsValueSum = "(op == op.plus2 || op == op.plus3)";
// Vectors that cover the dense columns, and the blocks that they are cut into.
const std::string kColumnVectors = concat("ceil_div(n, ", kLanes, ")");
const std::string kColumnBlocks = concat("ceil_div(", kColumnVectors, ", vectors)");

std::vector<std::vector<std::int32_t>> domains() {
  return {{0, 1, 2},
          {0, 1, 2, 3},
          {0, 1, 2, 3},
          {1, 2, 3, 4, 5, 6, 7, 8},
          {1, 2, 4, 8},
          {1, 2, 4},
          {1, 16, 64, 256, 1024, 4096, 16384, 65536, 1 << 28},
          {1, 2, 3, 4, 6, 8, 16, 32, 64},
          {1, 4, 8, 16, 32, 64, 256, 1024, 4096, 65536, 1 << 20, 1 << 28},
          {1, 2, 4, 8, 16, 32, 64},
          {0, 1, 2, 3},
          {1, 16, 64, 256, 1024, 4096},
          {1, 2, 3, 4, 6, 8},
          {0, 1},
          {0, 1},
          {0, 1},
          {0, 4, 8, 16, 32}};
}

void add_format_rules(std::vector<Constraint>& out) {
  out.push_back({concat("isa <= ", kBestIsa), "the CPU does not have these instructions"});
  out.push_back({concat("isa == ", kBestIsa, " || isa == isa.avx2"),
                 "the portable kernels are for CPUs with nothing better"});
  out.push_back({concat(kIsSpmv, " || vector == vector.columns"),
                 "only products with a vector have vectors along another axis"});
  out.push_back({concat(kIsSpmv, " || ", kIsSpmm, " || format == format.csr"),
                 "only products with a vector or a dense matrix have another storage"});
  out.push_back(
      {concat("!", kIsSpmv,
              " || format != format.csr && vector == vector.rows || "
              "format == format.csr && (vector == vector.entries || vector == vector.none)"),
       "vectors of a product with a vector lie along the entries of a row, or the rows "
       "of a slice or a block"});
  // One rule for each parameter: a rule prunes when all that it names are known.
  out.push_back(
      {"format != format.csr || height == 1", "plain rows have neither slices nor blocks"});
  out.push_back({"format == format.sell || window == 1", "only SELL has windows"});
  out.push_back({"format == format.bcsr || width == 1", "only BCSR has blocks"});
  out.push_back({concat("format != format.sell || ", kIsSpmm,
                        " || height > 1 && height % (unroll * ", kLanes, ") == 0"),
                 "a slice has as many rows as a whole number of its vectors"});
  out.push_back(
      {concat("format != format.sell || !", kIsSpmm,
              " || (height == 1 || height == 2 || height == 4) && height * vectors <= ", kSums),
       "the slice needs more vector registers than there are"});
  out.push_back(
      {concat("format != format.sell || !", kIsSpmm, " || unroll == 1 && group == 1 && window > 1"),
       "the rows of a slice already keep their sums apart, and are sorted"});
  out.push_back({"format != format.sell || window % height == 0", "a window holds whole slices"});
}

void add_bcsr_rules(std::vector<Constraint>& out) {
  out.push_back({concat("format != format.bcsr || ", kIsSpmm, " || width == 1"),
                 "blocks of a product with a vector are one column wide"});
  out.push_back({concat("format != format.diagonals || ", kIsSpmv),
                 "only products with a vector have diagonals"});
  out.push_back({concat("format != format.bcsr && format != format.diagonals || ", kIsSpmm,
                        " || height % ", kLanes, " == 0 && height != 3 * ", kLanes,
                        " && height * unroll <= 8 * ", kLanes, " && height <= 4 * ", kLanes),
                 "a block of a product with a vector has 1, 2 or 4 vectors of rows, and all sums "
                 "take at most 8"});
  out.push_back({concat("format != format.bcsr || !", kIsSpmm, " || height > 1 && height <= 8"),
                 "a block has 2 to 8 rows"});
  out.push_back({concat("format != format.bcsr || !", kIsSpmm, " || unroll == 1 && group == 1"),
                 "the rows of a block already keep their sums apart"});
  out.push_back({concat("format != format.bcsr || !", kIsSpmm, " || height * vectors + vectors < ",
                        kBlockRegisters),
                 "the block needs more vector registers than there are"});
}

void add_buffer_rules(std::vector<Constraint>& out) {
  out.push_back({concat("sums == sums.registers || ", kIsSpmm,
                        " && format == format.csr && vectors == 1 && group == 1 && row_tile == 1"),
                 "a buffer holds whole rows of results, one at a time"});
  out.push_back({concat("sums == sums.registers || n > ", kLanes,
                        " && partition != "
                        "partition.columns"),
                 "a buffer holds more than one vector, and no share of the columns"});
  out.push_back(
      {"prefetch == 0 || (op == op.sddmm || sums == sums.buffer) && prefetch % unroll == 0",
       "only products with a buffer and sampled products fetch ahead"});
}

void add_memory_rules(std::vector<Constraint>& out) {
  out.push_back({concat("gather == gather.instruction || ", kIsSpmv,
                        " && isa != isa.generic && "
                        "(vector == vector.entries || format == format.sell)"),
                 "only vectors along entries or the rows of a slice are gathered"});
  out.push_back({concat("store == store.plain || isa != isa.generic && (", kIsValueSum, " || ",
                        kIsSpmm, " && n % ", kLanes, " == 0)"),
                 "only whole vectors are written past the caches"});
  out.push_back({concat("store == store.plain || select(", kIsValueSum, ", nnz, rows * n) * ",
                        kValueBytes, " > hw.l2_bytes"),
                 "the result fits the L2 cache"});
}

void add_block_rules(std::vector<Constraint>& out) {
  for (const std::string_view parameter : {"vectors", "row_tile"}) {
    out.push_back({concat(kHasColumns, " || ", parameter, " == 1"),
                   "only products with a dense matrix have blocks of columns and of rows"});
  }
  out.push_back({concat(kIsSpmm, " || group == 1"),
                 "only products with a dense matrix sum rows side by side"});
  out.push_back({concat(kIsSpmv, " || ", kIsSpmm, " || op == op.sddmm || unroll == 1"),
                 "only products sum non-zeros apart"});
  out.push_back({concat("op != op.mttkrp || 2 * vectors <= ", kSums),
                 "the sums of a fibre and of a row need more vector registers than there are"});
  out.push_back({"op == op.sddmm || unroll <= 4", "at most four sums of a row are kept apart"});
  out.push_back({concat("!", kIsSpmm, " || unroll == 1 || group == 1"),
                 "rows side by side already keep their sums apart"});
  out.push_back({concat("!", kIsSpmm, " || vectors * max(unroll, group) <= ", kSums),
                 "the block needs more vector registers than there are"});
}

void add_thread_rules(std::vector<Constraint>& out) {
  out.push_back({"threads == 1 || threads <= hw.cores", "there are fewer cores than threads"});
  out.push_back({"threads == 1 || select(op == op.mmadd, rows * columns, nnz * n) >= 8192",
                 "waking a thread takes longer than this little work"});
  out.push_back({"threads == 1 || rows >= threads || partition == partition.columns",
                 "there are fewer rows than threads"});
  out.push_back({concat("partition != partition.columns || ", kHasColumns, " && ", kColumnBlocks,
                        " >= threads"),
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
      {"vectors", concat("select(", kHasColumns, " && sums == sums.registers, ceil_div(",
                         kColumnVectors, ", ", kColumnBlocks, "), 1)")},
      // One block of columns passes in the same order whatever the tile.
      {"row_tile", concat("select(", kHasColumns, " && sums == sums.registers && ", kColumnBlocks,
                          " > 1, min(row_tile, rows), 1)")},
      {"window", "select(format == format.sell, min(window, round_up(rows, height)), 1)"},
  };
}

struct SparseSubspace {
  std::string_view name;
  std::string_view rule;  // that its configs keep beyond those of the whole space
  std::string_view reason;
};
constexpr std::array<SparseSubspace, 3> kSubspaces{
    {{kFullSpace, "1", "every config is part of the whole space"},
     {"csr", "format == format.csr", "the subspace csr has rows as they are"},
     {"waco",
      "(format == format.csr || format == format.bcsr) && sums == sums.registers && group == 1 && "
      "gather == gather.instruction && store == store.plain && "
      "(partition == partition.rows || partition == partition.dynamic)",
      "the subspace waco has what WACO's templates express"}}};

Result<std::shared_ptr<const CompiledSpace>> compiled(std::string_view subspace) {
  return CompiledSpace::create(sparse_cpu_space_definition(subspace));
}

}  // namespace

SpaceDefinition sparse_cpu_space_definition(std::string_view subspace) {
  SpaceDefinition definition{.schema = sparse_cpu_schema(),
                             .problem_type = kSparseProblem,
                             .domains = domains(),
                             .constraints = {},
                             .canonical = canonical_rules()};
  add_format_rules(definition.constraints);
  add_bcsr_rules(definition.constraints);
  add_memory_rules(definition.constraints);
  add_buffer_rules(definition.constraints);
  add_block_rules(definition.constraints);
  add_thread_rules(definition.constraints);
  for (const SparseSubspace& known : kSubspaces) {
    if (known.name == subspace && known.name != kFullSpace) {
      definition.constraints.push_back({std::string(known.rule), std::string(known.reason)});
    }
  }
  return definition;
}

Result<std::shared_ptr<const CompiledSpace>> sparse_cpu_space(std::string_view subspace) {
  static const std::array kCompiled{compiled(kSubspaces[0].name), compiled(kSubspaces[1].name),
                                    compiled(kSubspaces[2].name)};
  std::string names;
  for (std::size_t i = 0; i < kSubspaces.size(); ++i) {
    if (kSubspaces[i].name == subspace) {
      return kCompiled[i];
    }
    names += concat(i == 0 ? "" : ", ", kSubspaces[i].name);
  }
  return fail(ErrorCode::kInvalidArgument, "sparse-cpu has no subspace '", subspace,
              "'; known: ", names);
}

}  // namespace foretune::sparse_cpu
