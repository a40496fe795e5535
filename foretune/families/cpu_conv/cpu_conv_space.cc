#include "foretune/families/cpu_conv/cpu_conv_space.h"

#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/kernels/group_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune {
namespace {

const std::vector<std::int32_t> kRowsValues{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 1024};
const std::vector<std::int32_t> kKcValues{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

constexpr std::string_view kLanes = "select(isa == isa.avx512, 16, select(isa == isa.avx2, 8, 4))";
constexpr std::string_view kBestIsa =
    "select(hw.vector_bytes >= 64, isa.avx512, select(hw.vector_bytes >= 32, isa.avx2, "
    "isa.generic))";
constexpr std::string_view kRegisters = "select(isa == isa.avx512, 32, 16)";
constexpr std::string_view kIsGradient = "op == op.backward_weight";
// Points of an output row, and rows of all outputs.
constexpr std::string_view kWidth =
    "select(op == op.backward_data, ceil_div(wi, stride_w), "
    "(wi + 2 * pad_w - dilation_w * (x - 1) - 1) / stride_w + 1)";
constexpr std::string_view kRowsOfAll =
    "(n * select(op == op.backward_data, ceil_div(di, stride_d) * ceil_div(hi, stride_h), "
    "((di + 2 * pad_d - dilation_d * (z - 1) - 1) / stride_d + 1) * "
    "((hi + 2 * pad_h - dilation_h * (y - 1) - 1) / stride_h + 1)))";
// Channels of a group that are summed over.
constexpr std::string_view kSummed = "(select(op == op.backward_data, k, c) / g)";
constexpr std::string_view kOfGroups = "algorithm == algorithm.groups";
// Gradients of weights are computed alike with channels first and last.
constexpr std::string_view kIsPlanar =
    "(algorithm == algorithm.planar && op != op.backward_weight)";
constexpr std::string_view kIsPointwise =
    "(x * y * z == 1 && stride_d * stride_h * stride_w == 1 && pad_d + pad_h + pad_w == 0)";
constexpr std::string_view kIsWinograd =
    "(algorithm == algorithm.winograd2 || algorithm == algorithm.winograd4)";
constexpr std::string_view kFitsWinograd =
    "(x == 3 && y == 3 && z == 1 && di == 1 && pad_d == 0 && g == 1 && op != op.backward_weight && "
    "stride_d * stride_h * stride_w == 1 && dilation_h * dilation_w == 1)";
// Tiles of all images.
constexpr std::string_view kTiles =
    "(n * ceil_div(select(op == op.backward_data, hi, hi + 2 * pad_h - 2), "
    "select(algorithm == algorithm.winograd4, 4, 2)) * ceil_div(select(op == op.backward_data, wi, "
    "wi + 2 * pad_w - 2), select(algorithm == algorithm.winograd4, 4, 2)))";
constexpr std::string_view kInTiles = "algorithm == algorithm.tiles";
// Points of a row, which a pointwise convolution and joined rows have without end.
const std::string kRowPoints = concat("select(", kIsPointwise, " || ", kIsPlanar,
                                      " && taps == taps.row, n * di * hi * wi, ", kWidth, ")");
// Output channels of all groups, and of one.
constexpr std::string_view kOutputs = "select(op == op.backward_data, c, k)";
const std::string kChannels = concat("(", kOutputs, " / g)");
constexpr std::string_view kIsTurned = "algorithm == algorithm.turned";
// Neighbouring values of a filter that one run of input multiplies.
constexpr std::string_view kValues = "(select(taps == taps.row, x, 1) * (c / g))";
// The rows and the columns of all register blocks. A vector holds several groups of few channels.
const std::string kHeight =
    concat("select(", kOfGroups, ", ", kWidth, ", select(", kIsTurned, ", ", kValues, ", select(",
           kIsGradient, " || ", kIsPlanar, ", ", kChannels, ", select(", kIsWinograd, ", ", kTiles,
           ", ", kRowPoints, "))))");
const std::string kColumns =
    concat("select(", kOfGroups, ", ", kOutputs, ", select(", kIsGradient, ", select(", kIsTurned,
           ", k / g, ", kValues, "), select(", kIsPlanar, ", ", kRowPoints, ", ", kChannels, ")))");
// Panels that threads may share.
const std::string kPanels =
    concat("select(!(", kOfGroups, " || ", kIsTurned, ") && (", kIsGradient, " || ", kIsPlanar,
           "), ceil_div(", kHeight, ", mr), ceil_div(", kColumns, ", nr))");
constexpr std::string_view kMultiplyAdds =
    "(n * di * hi * wi * (c / g) * k * x * y * z / (stride_d * stride_h * stride_w))";

// Blocks in which nearly all registers hold sums.
constexpr std::string_view kFullBlock =
    "(isa == isa.avx512 && (nr == 16 && mr >= 12 || nr == 32 && mr >= 7 || nr == 48 && mr >= 6 || "
    "nr == 64 && mr >= 5) || "
    "isa == isa.avx2 && (nr == 8 && mr >= 10 || nr == 16 && mr >= 5 || nr == 24 && mr >= 3) || "
    "isa == isa.generic && (nr == 4 && mr >= 10 || nr == 8 && mr >= 5 || nr == 12 && mr >= 3))";

std::vector<std::vector<std::int32_t>> domains() {
  std::vector<std::int32_t> mr;
  for (std::int32_t rows = 1; rows <= 16; ++rows) {
    mr.push_back(rows);
  }
  return {{0, 1, 2},   {0, 1, 2, 3, 4, 5, 6},
          mr,          {4, 8, 12, 16, 24, 32, 48, 64},
          kRowsValues, kKcValues,
          {0, 1, 2},   {0, 1, 2},
          {0, 1},      {1, 2, 4, 8, 16, 32, 64},
          {0, 1}};
}

void add_block_rules(std::vector<Constraint>& out) {
  out.push_back({concat("isa <= ", kBestIsa), "the CPU does not have these instructions"});
  out.push_back({"(algorithm == algorithm.planar) == (layout == layout.channels_first)",
                 "the algorithm planar is for channels first, the others are for channels last"});
  out.push_back({concat("!(", kInTiles, ") || isa == isa.avx512"),
                 "output of matrix tiles is rounded by AVX-512"});
  out.push_back({concat("!(", kInTiles, ") || dtype != dtype.f32 && !(", kIsGradient, ")"),
                 "matrix tiles hold bf16 and i8, and are not for gradients of weights"});
  out.push_back({concat("!(", kIsTurned, ") || ", kIsGradient),
                 "only a gradient of weights has values of filters as rows"});
  out.push_back({concat("!(", kIsTurned, ") || dtype == dtype.f32"),
                 "gradients of narrower types are widened for the algorithm taps"});
  out.push_back({concat("!(", kOfGroups, ") || dtype == dtype.f32 || isa == isa.avx512 && !(",
                        kIsGradient, ")"),
                 "kernels of groups in narrower types are for AVX-512 and not for gradients of "
                 "weights"});
  out.push_back({concat("!(", kOfGroups, ") || g > 1 && max(c, k) / g <= ", kLanes),
                 "a vector holds no group of so many channels, or there is a single group"});
  out.push_back(
      {concat(kOfGroups,
              " || g == 1 || max(c, k) > g || dtype != dtype.f32 && (isa != isa.avx512 || ",
              kIsGradient, ") || layout == layout.channels_first"),
       "groups of one channel and one filter have kernels of their own"});
  out.push_back({concat("!(", kOfGroups, ") || mr <= select(", kIsGradient, ", ",
                        kMaxGradientPoints, ", ", kMaxGroupPoints, ")"),
                 "no kernel of groups has so many points"});
  out.push_back({concat("!(", kOfGroups, ") || taps == taps.each && copy == copy.needed"),
                 "kernels of groups read the input where it is"});
  out.push_back({concat("!", kIsWinograd, " || ", kFitsWinograd),
                 "Winograd's algorithm takes 3 x 3 filters in two dimensions, one group, no stride "
                 "and no dilation"});
  out.push_back(
      {concat("!", kIsWinograd,
              " || taps == taps.each && copy == copy.needed && split == split.points"),
       "Winograd's algorithm transforms tiles of the input where it is, and threads share "
       "the tiles"});
  out.push_back({concat("nr % ", kLanes, " == 0"), "columns must be whole vectors"});
  out.push_back({concat("nr / ", kLanes, " <= 4"), "no kernel is wider than four vectors"});
  out.push_back({concat(kInTiles, " || mr * (nr / ", kLanes, ") + min(mr, nr / ", kLanes,
                        ") + 1 <= ", kRegisters),
                 "the register block needs more vector registers than there are"});
  out.push_back({concat("isa == ", kBestIsa,
                        " || isa == isa.avx2 && (nr == 16 && mr == 6 || nr == 24 && mr == 4 || ",
                        kOfGroups, ")"),
                 "of a narrower instruction set only its best block is kept"});
  // A tile has 16 rows; a row of points that is no multiple of them has blocks of equal parts.
  out.push_back({concat(kOfGroups, " || select(", kInTiles, ", mr == 16, ", kFullBlock, " || ",
                        kColumns, " <= nr) || mr == ", kHeight),
                 "a smaller block is only useful where it is as high or as wide as the problem"});
}

void add_blocking_rules(std::vector<Constraint>& out) {
  out.push_back({concat(kIsPlanar, " || taps != taps.row || x > 1 && dilation_w == 1"),
                 "the taps of a row are no run of input with a dilation, or when there is one"});
  out.push_back({concat("!", kIsPlanar, " || taps != taps.inner"),
                 "vectors along rows read all points of a tap"});
  out.push_back({concat("!(", kIsPlanar, " && taps == taps.row && ", kIsPointwise, ")"),
                 "the rows of a pointwise convolution are one row as it is"});
  out.push_back(
      {"taps != taps.inner || pad_d + pad_h + pad_w > 0", "all taps are within the image"});
  out.push_back(
      {"taps != taps.inner || copy == copy.needed", "what is left out need not be copied"});
  out.push_back({concat("taps != taps.inner || !(", kIsGradient, ")"),
                 "a gradient of weights leaves out whole rows only"});
  out.push_back({"taps != taps.inner || dtype == dtype.f32",
                 "words of several channels are summed over whole rows of taps"});
  out.push_back({concat("copy == copy.needed || g > 1 || ", kIsPlanar),
                 "copying brings channels together only where groups part them"});
  out.push_back({concat(kOfGroups, " || ", kIsGradient,
                        " || kc >= select(x * y * z > 1, 16, 64) || ", kSummed, " <= kc"),
                 "sums of so few products are stored too often"});
}

void add_thread_rules(std::vector<Constraint>& out) {
  out.push_back({"threads == 1 || threads <= hw.cores", "there are fewer cores than threads"});
  out.push_back({concat("threads == 1 || ", kMultiplyAdds, " >= 131072"),
                 "waking a thread takes longer than this little work"});
  out.push_back({concat("threads > 1 || hw.cores <= 1 || ", kMultiplyAdds, " <= 33554432"),
                 "so much work is not left to one core when there are more"});
  out.push_back({concat("threads == 1 || split == split.filters || ", kRowsOfAll,
                        " >= threads * min(rows, ", kRowsOfAll, ") || ", kIsPointwise),
                 "there are fewer slabs than threads"});
  out.push_back({concat("threads == 1 || split == split.points || ", kPanels, " >= threads"),
                 "there are fewer panels than threads"});
}

// Returns the rules, applied in order until nothing changes; a value becomes the next higher one of
// its domain.
std::vector<std::pair<std::string, std::string>> canonical_rules() {
  return {
      {"split", concat("select(threads == 1 || ", kIsWinograd, ", split.points, split)")},
      {"taps", concat("select(!", kIsWinograd, " && (taps != taps.row || select(", kIsPlanar, ", !",
                      kIsPointwise, ", x > 1 && dilation_w == 1)), taps, taps.each)")},
      {"copy", concat("select(g > 1 || ", kIsPlanar, ", copy, copy.needed)")},
      {"mr", concat("min(mr, ", kHeight, ")")},
      {"nr", concat("select(", kOfGroups, ", ", kLanes, ", min(nr, round_up(", kColumns, ", ",
                    kLanes, ")))")},
      {"rows", concat("min(rows, ", kRowsOfAll, ")")},
      // The taps of a row are summed with all channels. For groups kc counts output channels, and a
      // gradient of weights has no use for it.
      {"kc",
       concat("select(", kOfGroups, ", select(", kIsGradient, ", ", kKcValues.back(), ", min(kc, ",
              kOutputs, ")), select(", kIsGradient, ", min(kc, rows), select(taps == taps.row && !",
              kIsPlanar, ", ", kKcValues.back(), ", min(kc, ", kSummed, "))))")},
      // A single panel is visited alike by all orders. Only points that lie beside their channels
      // are computed row by row.
      {"order", concat("select(", kOfGroups, " || ", kPanels, " <= 1 && !(", kIsGradient,
                       "), order.filters, select(", kIsGradient, " || ", kIsPlanar, " || ",
                       kIsWinograd, ", min(order, order.points), order))")},
  };
}

// Compiles the space when it is first asked for; most programs need one of the four.
template <bool kHasWinograd, bool kHasTiles>
const Result<std::shared_ptr<const CompiledSpace>>& compiled_once() {
  static const Result<std::shared_ptr<const CompiledSpace>> kSpace = CompiledSpace::create(
      cpu_conv_space_definition({.winograd = kHasWinograd, .tiles = kHasTiles}));
  return kSpace;
}

}  // namespace

SpaceDefinition cpu_conv_space_definition(CpuConvSpaceOptions options) {
  SpaceDefinition definition{.schema = cpu_conv_schema(),
                             .problem_type = kConvProblem,
                             .domains = domains(),
                             .constraints = {},
                             .canonical = canonical_rules()};
  if (!options.winograd) {
    definition.constraints.push_back(
        {concat("!", kIsWinograd),
         "Winograd's algorithm rounds differently: give the family the option winograd=on"});
  }
  if (!options.tiles) {
    definition.constraints.push_back(
        {concat("!(", kInTiles, ")"),
         "the CPU has no matrix tiles (AMX), the system keeps them from this process, or the "
         "family has the option tiles=off"});
  }
  add_block_rules(definition.constraints);
  add_blocking_rules(definition.constraints);
  add_thread_rules(definition.constraints);
  return definition;
}

Result<std::shared_ptr<const CompiledSpace>> cpu_conv_space(CpuConvSpaceOptions options) {
  if (options.winograd) {
    return options.tiles ? compiled_once<true, true>() : compiled_once<true, false>();
  }
  return options.tiles ? compiled_once<false, true>() : compiled_once<false, false>();
}

}  // namespace foretune
