#include "foretune/families/cpu_gemm/cpu_gemm_space.h"

#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/cpu_gemm.h"

namespace foretune {
namespace {

// Each value is at least twice the one before. Then two bounds cut a dimension into the same number
// of blocks only if both cover it, a case that the canonical rules handle.
const std::vector<std::int32_t> kMcValues{64, 192, 4096};
const std::vector<std::int32_t> kNcValues{128, 256, 1024, 4096};
const std::vector<std::int32_t> kKcValues{16, 64, 256, 512, 1024, 2048, 4096};

const std::vector<std::int32_t> kUnrollValues{1, 4};
const std::vector<std::int32_t> kPrefetchValues{0, 8};

constexpr std::string_view kLanes = "select(isa == isa.avx512, 16, select(isa == isa.avx2, 8, 4))";
constexpr std::string_view kBestIsa =
    "select(hw.vector_bytes >= 64, isa.avx512, select(hw.vector_bytes >= 32, isa.avx2, "
    "isa.generic))";
constexpr std::string_view kRegisters = "select(isa == isa.avx512, 32, 16)";
// The numbers of threads that share the rows and the columns; a grid is that of gemm_grid_rows().
constexpr std::string_view kRowShares =
    "select(threads > 1 && split == split.m, threads, select(threads > 1 && split == split.grid, "
    "select(threads == 4, 2, select(threads == 8, select(m > n, 4, 2), select(threads == 16, 4, "
    "select(threads == 32, select(m > n, 8, 4), 8)))), 1))";
constexpr std::string_view kColumnShares =
    "select(threads > 1 && split == split.n, threads, select(threads > 1 && split == split.grid, "
    "select(threads == 4, 2, select(threads == 8, select(m > n, 2, 4), select(threads == 16, 4, "
    "select(threads == 32, select(m > n, 4, 8), 8)))), 1))";
// The rows and columns of one thread, in whole register blocks.
const std::string kRowsEach = concat("min(m, round_up(ceil_div(m, ", kRowShares, "), mr))");
const std::string kColumnsEach = concat("min(n, round_up(ceil_div(n, ", kColumnShares, "), nr))");
constexpr std::string_view kDepthEach =
    "select(threads > 1 && split == split.k, min(k, round_up(ceil_div(k, threads), 8)), k)";
constexpr std::string_view kBByColumns = "(layout == layout.rcr || layout == layout.ccr)";
constexpr std::string_view kIsDot = "kernel == kernel.dot";
// Packing converts elements of other types, for kernels that have only the plain loop.
constexpr std::string_view kIsF32 = "dtype == dtype.f32";

// Blocks worth trying where the matrix is larger than the block. Nearly all registers hold sums;
// the shapes differ in the size of the remainders at the edges and in how often they load A and B.
constexpr std::string_view kFullBlock =
    "(isa == isa.avx512 && (nr == 32 && mr >= 8 && mr <= 14 && mr % 2 == 0 || "
    "nr == 48 && (mr == 8 || mr == 9) || nr == 64 && mr == 6) || "
    "isa == isa.avx2 && (nr == 16 && (mr == 4 || mr == 6) || nr == 24 && mr == 4 || "
    "nr == 32 && mr == 3) || "
    "isa == isa.generic && (nr == 8 && (mr == 4 || mr == 6) || nr == 16 && mr == 3))";
// Blocks of dot kernels, which are used for thin matrices only.
constexpr std::string_view kDotBlock =
    "(nr == 4 && mr <= select(isa == isa.avx512, 6, 2) && (mr <= 2 || mr % 2 == 0 || mr == m) || "
    "nr == 8 && mr <= select(isa == isa.avx512, 2, 1))";
// The heights above: a full block keeps its height on a matrix narrower than it. On a matrix of one
// vector, a block higher than any full one is possible.
constexpr std::string_view kFullHeight =
    "(mr == 3 || mr == 4 || mr == 6 || mr == 8 || mr == 9 || mr == 10 || mr == 12 || mr == 14 || "
    "mr == 16)";

std::vector<std::vector<std::int32_t>> domains() {
  std::vector<std::int32_t> mr;
  for (std::int32_t rows = 1; rows <= 16; ++rows) {
    mr.push_back(rows);
  }
  return {{0, 1, 2},
          {0, 1},
          mr,
          {4, 8, 16, 24, 32, 48, 64, 128},
          {0, 1},
          {0, 1},
          kMcValues,
          kNcValues,
          kKcValues,
          {0, 1},
          kUnrollValues,
          kPrefetchValues,
          {1, 2, 4, 8, 16, 32, 64},
          {0, 1, 2, 3, 4}};
}

// Adds the rules about the instruction set, the kernel and its register block.
void add_block_rules(std::vector<Constraint>& out) {
  out.push_back({concat("isa <= ", kBestIsa), "the CPU does not have these instructions"});
  out.push_back({concat(kIsDot, " || nr % ", kLanes, " == 0"), "columns must be whole vectors"});
  out.push_back({concat(kIsDot, " || mr * (nr / ", kLanes, ") + min(mr, nr / ", kLanes,
                        ") + 1 <= ", kRegisters),
                 "the register block needs more vector registers than there are"});
  out.push_back(
      {concat(kIsDot, " || nr / ", kLanes, " <= 8"), "no kernel is wider than eight vectors"});
  // With 512-bit vectors, 256-bit kernels reach 54 to 94 % of the best; a few stay, since CPUs
  // exist that lower their clock for the wide ones. The portable kernels are for CPUs with nothing
  // better.
  out.push_back(
      {concat("isa == ", kBestIsa,
              " || kernel == kernel.outer && isa == isa.avx2 && nr <= 16 && mr <= 6 && "
              "pack_a == pack_a.no && nc == ",
              kNcValues.front(), " && order == order.nkm && unroll == 1 && prefetch == 0"),
       "of a narrower instruction set only its best blocks are kept"});
  out.push_back({concat(kIsDot, " || nr > ", kLanes, " || n <= 2 * ", kLanes),
                 "a block one vector wide loads an element of A for each multiply-add"});
  out.push_back({concat(kIsDot, " || ", kFullBlock, " || mr == m || n <= nr && ", kFullHeight),
                 "a block of this shape is only useful on a matrix of its height or width"});
  // States the result of the canonical rules for such matrices without reference to the problem,
  // which keeps the list of candidates short.
  out.push_back(
      {concat(kIsDot, " || ", kFullBlock, " || !(", kIsF32,
              ") || pack_a == pack_a.no && (nc == ", kNcValues.front(),
              " || (pack_b == pack_b.no || ", kBByColumns, ") && mc == ", kMcValues.front(),
              " && order == order.nkm && (threads == 1 || split != split.m && split != "
              "split.grid))"),
       "a block of this shape is only useful on a matrix of its height or width, where this "
       "blocking means nothing"});
}

void add_dot_rules(std::vector<Constraint>& out) {
  out.push_back({concat("kernel == kernel.outer || ", kIsF32), "dot kernels compute in f32 only"});
  out.push_back({"kernel == kernel.outer || layout == layout.rcr || layout == layout.rrr && n <= 8",
                 "dot kernels take A stored by rows and B by columns, or B with few columns"});
  out.push_back(
      {concat("kernel == kernel.outer || ", kDotBlock), "there is no dot kernel for such a block"});
  out.push_back({"kernel == kernel.outer || pack_a == pack_a.no && pack_b == pack_b.no",
                 "dot kernels read A and B where they are"});
  out.push_back({"kernel == kernel.outer || m <= 64 || n <= 8",
                 "with so many rows, packing B costs less than summing across lanes"});
  out.push_back({"kernel == kernel.outer || kc >= 512 || k <= kc",
                 "a dot product cut into short pieces is summed up across lanes too often"});
  out.push_back({concat(kIsDot, " || pack_b == pack_b.yes || !", kBByColumns),
                 "B is stored by columns, and only dot kernels read it like that"});
}

void add_blocking_rules(std::vector<Constraint>& out) {
  out.push_back({concat(kIsF32, " || pack_a == pack_a.yes && pack_b == pack_b.yes"),
                 "operands that are not f32 are converted when they are packed"});
  out.push_back({"pack_a == pack_a.no || pack_b == pack_b.yes",
                 "packing A without packing B copies the operand that is read in order anyway"});
  out.push_back({concat(kIsDot, " || hw.l1_bytes == 0 || (mr + nr) * kc * 4 <= 8 * hw.l1_bytes"),
                 "a panel of A and one of B are far larger than the L1 cache"});
  out.push_back({"order == order.mkn || hw.l2_bytes == 0 || mc * kc * 4 <= hw.l2_bytes",
                 "the block of A that is read again for each panel of B exceeds the L2 cache"});
  out.push_back(
      {"order == order.nkm || hw.l2_bytes == 0 || nc * kc * 4 <= 2 * hw.l2_bytes",
       "the block of B that is read again for each panel of A exceeds the L2 cache twice"});
  out.push_back({"kc * 8 >= k || m <= 48 || kc >= 1024",
                 "so many passes over C cost more than the depth blocks gain"});
  out.push_back({concat("kc > ", kKcValues.front(), " || m <= 48 || k <= ", kKcValues.front()),
                 "blocks this thin only pay where B is streamed past a few rows"});
  out.push_back(
      {concat("kc > ", kKcValues.front(), " || pack_b == pack_b.no || k <= ", kKcValues.front()),
       "packing B in blocks this thin defeats its purpose"});
}

// Excludes blocks with the same effect as others: each order has one dimension whose blocks matter.
void add_order_rules(std::vector<Constraint>& out) {
  out.push_back(
      {concat("order == order.mkn || pack_b == pack_b.no || nc >= min(1024, ", kColumnsEach,
              ") || ", kRowsEach, " <= mr"),
       "with the rows running fastest, a narrow block of columns only repeats packing A"});
  out.push_back({concat("order == order.nkm || mc >= min(4096, ", kRowsEach, ") || ", kDepthEach,
                        " <= kc && ", kColumnsEach, " <= nc"),
                 "with the columns running fastest, a low block of rows only repeats packing B"});
}

void add_loop_rules(std::vector<Constraint>& out) {
  // The CPU predicts the end of a loop of few rounds. Blocks four vectors wide leave enough
  // registers free to load for the next step.
  out.push_back({concat("unroll == 1 || !(", kIsDot, ") && (mr * nr <= 8 * ", kLanes,
                        " || nr == 4 * ", kLanes, " || k <= 256)"),
                 "steps of so many multiply-adds hide the counting without being unrolled"});
  out.push_back({concat("prefetch == 0 || !(", kIsDot, ")"),
                 "dot kernels read along the rows, which the CPU fetches ahead itself"});
  out.push_back({"prefetch == 0 || unroll == 1", "an unrolled loop does not prefetch"});
  out.push_back(
      {"prefetch == 0 || kc >= 64", "so few rows of B are over before fetching ahead pays"});
}

void add_thread_rules(std::vector<Constraint>& out) {
  out.push_back({"threads == 1 || threads <= hw.cores", "there are fewer cores than threads"});
  out.push_back({"threads == 1 || m * n * k * batch >= 131072",
                 "waking a thread takes longer than this little work"});
  out.push_back(
      {"threads > 1 || hw.cores <= 1 || m * n * k * batch <= 33554432 || "
       "m <= mr && n <= nr && k < 512 && batch == 1",
       "so much work is not left to one core when there are more"});
  out.push_back({"threads == 1 || split != split.m || m > mr",
                 "there is only one row of register blocks, which threads cannot share"});
  out.push_back({"threads == 1 || split != split.n || n > nr",
                 "there is only one column of register blocks, which threads cannot share"});
  out.push_back({"threads == 1 || split != split.batch || batch >= threads",
                 "there are fewer products in the batch than threads"});
  out.push_back({"threads == 1 || split != split.grid || threads >= 4 && m > mr && n > nr",
                 "a grid takes four threads, and more than one block in both directions"});
  out.push_back({"threads == 1 || split != split.k || batch == 1",
                 "threads cannot share the depth of a batch"});
  out.push_back({"threads == 1 || split != split.k || k >= 256 * threads && m * n <= 1048576",
                 "adding the threads' sums up would take longer than sharing the depth gains"});
  out.push_back({"threads == 1 || split != split.k || dtype != dtype.i8",
                 "threads cannot share the depth of a product of integers"});
  out.push_back({"threads == 1 || split == split.batch || batch < 16",
                 "with so many products in the batch, threads share the batch"});
}

// Returns the rules, which are applied in order until nothing changes. A value becomes the next
// higher one of the domain, so a bound becomes the smallest one that covers the matrix.
std::vector<std::pair<std::string, std::string>> canonical_rules() {
  const std::string& rows = kRowsEach;
  const std::string& columns = kColumnsEach;
  const std::string depth(kDepthEach);
  return {
      {"split", "select(threads == 1, split.m, split)"},
      {"mr", "min(mr, m)"},
      {"nr",
       concat("select(", kIsDot, ", min(nr, max(n, 4)), min(nr, round_up(n, ", kLanes, ")))")},
      {"kc", concat("min(kc, ", depth, ")")},
      {"mc", concat("min(mc, ", rows, ")")},
      {"nc", concat("min(nc, ", columns, ")")},
      // Without these rules each packed panel would be used once, unless B is packed for many
      // calls; a single panel of A is small enough unpacked.
      {"pack_b", concat("select(weights == weights.varying && ", kIsF32, " && ", rows,
                        " <= mr && !", kBByColumns, ", pack_b.no, pack_b)")},
      {"pack_a", concat("select(", kIsF32, " && (pack_b == pack_b.no || ", rows, " <= mr || ",
                        columns, " <= nr), pack_a.no, pack_a)")},
      // Few steps end before unrolling or prefetching pays.
      {"unroll", concat("select(!(", kIsF32, ") || k < 16 || mr * nr > 8 * ", kLanes,
                        " && nr != 4 * ", kLanes, " && k > 256, 1, unroll)")},
      {"prefetch", concat("select(!(", kIsF32, ") || kc < 64, 0, prefetch)")},
      // Both orders visit one row of register blocks alike. They also visit one column alike,
      // unless blocks of rows and of depth are nested.
      {"order", concat("select(", rows, " <= mr || ", columns, " <= nr && (", depth, " <= kc || ",
                       rows, " <= mc) && (hw.l2_bytes == 0 || mc * kc * 4 <= hw.l2_bytes), ",
                       "order.nkm, order)")},
      // Without blocks of depth and without packing, cutting the innermost loop changes nothing.
      {"mc", concat("select(pack_a == pack_a.no && ", depth, " <= kc && (", columns,
                    " <= nr || order == order.mkn && ", columns, " <= nc), ", kMcValues.front(),
                    ", mc)")},
      {"nc",
       concat("select(pack_b == pack_b.no && ", depth, " <= kc && (", rows,
              " <= mr || order == order.nkm && ", rows, " <= mc), ", kNcValues.front(), ", nc)")},
  };
}

}  // namespace

SpaceDefinition cpu_gemm_space_definition() {
  SpaceDefinition definition{.schema = cpu_gemm_schema(),
                             .problem_type = kGemmProblem,
                             .domains = domains(),
                             .constraints = {},
                             .canonical = canonical_rules()};
  add_block_rules(definition.constraints);
  add_dot_rules(definition.constraints);
  add_blocking_rules(definition.constraints);
  add_order_rules(definition.constraints);
  add_loop_rules(definition.constraints);
  add_thread_rules(definition.constraints);
  return definition;
}

Result<std::shared_ptr<const CompiledSpace>> cpu_gemm_space() {
  static const Result<std::shared_ptr<const CompiledSpace>> kSpace =
      CompiledSpace::create(cpu_gemm_space_definition());
  return kSpace;
}

}  // namespace foretune
