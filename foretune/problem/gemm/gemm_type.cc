// The row of matrix products in the table of problem types.
#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/problem/gemm/ck_gemm_shapes.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/gemm/gemm_weights.h"
#include "foretune/problem/network_layers.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

std::span<const EmbeddedText> gemm_network_texts();
const ProblemTypeInfo& gemm_problem_type();

namespace {

constexpr std::size_t position(GemmField field) { return static_cast<std::size_t>(field); }
std::int64_t size_of(const Problem& problem, GemmField field) {
  return problem.field(position(field));
}

ProblemField gemm_size(std::string_view name, FieldGroups groups, std::string_view help) {
  ProblemField field = size_field(name);
  field.groups = groups;
  field.help = help;
  return field;
}

ProblemField gemm_label(std::string_view name, std::span<const std::string_view> labels,
                        std::int64_t default_value, std::size_t labels_in_id,
                        std::string_view help) {
  ProblemField field = label_field(name, labels, default_value, labels_in_id);
  field.help = help;
  return field;
}

// The table is local to the function, because the labels live in another translation unit.
std::span<const ProblemField> gemm_fields() {
  static const std::array fields = [] {
    std::array list{
        gemm_label("op", gemm_operation_labels(), 0, 3, "the operation"),
        gemm_size("m", {.problem = true, .sizes = true}, "rows of A and C"),
        gemm_size("n", {.problem = true, .sizes = true, .weights = true}, "columns of B and C"),
        gemm_size("k", {.problem = true, .sizes = true, .weights = true},
                  "columns of A, rows of B"),
        gemm_size("batch", {.problem = true}, "independent products"),
        gemm_label("dtype", data_type_labels(), 0, 8, "data type"),
        gemm_label("layout", gemm_layout_labels(), 1, 4, "how A, B and C are stored"),
        gemm_label("weights", gemm_weights_labels(), 0, 2,
                   "whether B stays the same from call to call, so that it may be packed once")};
    list[position(GemmField::kWeights)].since = 2;
    list[position(GemmField::kBatch)].default_value = 1;
    return list;
  }();
  return fields;
}

// A batch implies a bmm.
void imply_gemm(std::span<std::optional<std::int64_t>> values) {
  std::optional<std::int64_t>& operation = values[position(GemmField::kOperation)];
  if (!operation && values[position(GemmField::kBatch)].value_or(1) > 1) {
    operation = static_cast<std::int64_t>(GemmOperation::kBmm);
  }
}

std::optional<ProblemWork> gemm_work(const Problem& problem) {
  const GemmProblem gemm = *GemmProblem::from(problem);
  return ProblemWork{gemm.flops(), gemm.bytes()};
}

// The pooled moments of the 1,577 operation shapes that torch-diode ships (Apache-2.0).
constexpr std::array<DrawnSize, 3> kDrawnSizes{
    {{position(GemmField::kM), 6.5725472164323095, 2.556199441605505, 8},
     {position(GemmField::kN), 5.913930073563466, 1.66968141897024, 8},
     {position(GemmField::kK), 6.204916071423808, 2.1646646856090177, 8}}};

// A bmm gets a batch, drawn log-uniformly from 2 to 64. The draw is made for every operation, so
// that the sizes of a seed do not depend on it.
void complete_gemm(std::span<std::int64_t> fields, Rng& rng) {
  const double batch = std::exp(std::log(2.0) + rng.uniform() * std::log(32.0));
  const bool has_batch =
      fields[position(GemmField::kOperation)] == static_cast<std::int64_t>(GemmOperation::kBmm);
  fields[position(GemmField::kBatch)] =
      has_batch ? std::clamp<std::int64_t>(std::llround(batch), 2, 64) : 1;
}

// The families of CK Tile's evaluation: sizes below each limit.
constexpr std::array<std::int64_t, 3> kCkM{32, 256, 4096};
constexpr std::array<std::string_view, 4> kCkMNames{"tiny, below 32", "small, below 256",
                                                    "medium, below 4096", "large"};
constexpr std::array<std::int64_t, 2> kCkK{512, 4096};
constexpr std::array<std::string_view, 3> kCkKNames{"shallow, below 512", "medium, below 4096",
                                                    "deep"};

SliceValue ck_family(std::int64_t size, std::span<const std::int64_t> limits,
                     std::span<const std::string_view> names) {
  const auto index = static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), size) -
                                              limits.begin());
  return {static_cast<std::int64_t>(index), std::string(names[index])};
}

// Says which size of a product leads by a factor of four.
SliceValue shape_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kMuch = 4;
  if (m == 1 || n == 1) {
    return {0, "matrix times vector"};
  }
  if (k >= kMuch * std::max(m, n)) {
    return {1, "deep: k leads"};
  }
  if (m >= kMuch * n) {
    return {2, "tall: m leads n"};
  }
  return n >= kMuch * m ? SliceValue{3, "wide: n leads m"} : SliceValue{4, "near square"};
}

constexpr std::array<std::int64_t, 4> kMLimits{1, 16, 128, 1024};
constexpr std::array<std::int64_t, 3> kKLimits{64, 512, 4096};
constexpr std::array<ProblemSlice, 8> kSlices{
    {{"m regime",
      [](const Problem& problem) {
        return slice_by_size(size_of(problem, GemmField::kM), kMLimits);
      }},
     {"k depth",
      [](const Problem& problem) {
        return slice_by_size(size_of(problem, GemmField::kK), kKLimits);
      }},
     {"shape",
      [](const Problem& problem) {
        return shape_of(size_of(problem, GemmField::kM), size_of(problem, GemmField::kN),
                        size_of(problem, GemmField::kK));
      }},
     {"m family (CK)",
      [](const Problem& problem) {
        return ck_family(size_of(problem, GemmField::kM), kCkM, kCkMNames);
      }},
     {"k regime (CK)",
      [](const Problem& problem) {
        return ck_family(size_of(problem, GemmField::kK), kCkK, kCkKNames);
      }},
     {"operation",
      [](const Problem& problem) {
        return slice_by_field(problem, position(GemmField::kOperation));
      }},
     {"dtype",
      [](const Problem& problem) { return slice_by_field(problem, position(GemmField::kDtype)); }},
     {"layout", [](const Problem& problem) {
        return slice_by_field(problem, position(GemmField::kLayout));
      }}}};

// Numbers of tokens (or images times places) to which a layer is applied.
constexpr std::array<std::int64_t, 8> kTokens{1, 4, 16, 64, 128, 512, 2048, 4096};

std::vector<Problem> with_tokens(std::span<const Problem> layers) {
  std::vector<Problem> out;
  for (const Problem& layer : layers) {
    GemmSizes sizes = GemmProblem::from(layer)->sizes();
    sizes.layout = GemmLayout::kRcr;  // weights by rows of outputs, as frameworks keep them
    for (const std::int64_t m : kTokens) {
      sizes.m = m;
      out.push_back(GemmProblem::create(sizes)->to_problem());
    }
  }
  return out;
}

std::span<const NamedShapeSet> gemm_shape_sets() {
  static const std::vector<NamedShapeSet> sets = [] {
    std::vector<NamedShapeSet> list = ck_gemm_shape_sets();
    add_network_sets(
        gemm_network_texts(),
        {.prefix = "gemm-", .suffix = "", .description = "matrix products", .expand = &with_tokens},
        list);
    return list;
  }();
  return sets;
}

}  // namespace

const ProblemTypeInfo& gemm_problem_type() {
  static const ProblemTypeInfo info{
      .schema = {.type = kGemmProblem,
                 .name = "gemm",
                 .version = 1,
                 .fields = gemm_fields(),
                 .payload = PayloadUse::kOptional,
                 .check = check_gemm,
                 .check_with_payload = check_gemm_with_payload,
                 .imply = imply_gemm},
      .summary = "matrix products, alone or in a batch",
      .work = &gemm_work,
      .drawn_sizes = kDrawnSizes,
      .complete = &complete_gemm,
      .slices = kSlices,
      .map_fields = {position(GemmField::kM), position(GemmField::kN)},
      .result_grid = ResultGrid{.rows = position(GemmField::kM),
                                .columns = position(GemmField::kN),
                                .repeat = position(GemmField::kBatch)},
      .shape_sets = &gemm_shape_sets,
      .payload = &gemm_weights_info()};
  return info;
}

}  // namespace foretune
