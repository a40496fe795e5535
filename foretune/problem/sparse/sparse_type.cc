// The row of sparse operations in the table of problem types.
#include <array>

#include "foretune/problem/problem_type.h"
#include "foretune/problem/sparse/sparse_payload.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/sparse/coordinates.h"

namespace foretune {

const ProblemTypeInfo& sparse_problem_type();

namespace {

constexpr std::size_t position(SparseField field) { return static_cast<std::size_t>(field); }
std::int64_t value_of(const Problem& problem, SparseField field) {
  return problem.field(position(field));
}

constexpr std::int64_t kMaxNonZeros = std::int64_t{1} << 40U;
constexpr std::int64_t kMaxOrigin = (std::int64_t{1} << 52U) - 1;

ProblemField sparse_size(std::string_view name, std::optional<std::int64_t> default_value,
                         std::string_view help, std::int64_t maximum) {
  ProblemField field = size_field(name, default_value);
  field.groups = {};
  field.help = help;
  field.maximum = maximum;
  return field;
}

ProblemField sparse_label(std::string_view name, std::span<const std::string_view> labels,
                          std::int64_t default_value, std::size_t labels_in_id,
                          std::string_view help) {
  ProblemField field = label_field(name, labels, default_value, labels_in_id);
  field.help = help;
  return field;
}

// Only the origin decides about groups, so that what is resampled from one matrix stays together at
// any size and for any operation.
std::span<const ProblemField> sparse_fields() {
  static const std::array fields = [] {
    std::array list{
        sparse_label("op", sparse_operation_labels(), 1, 9, "the operation"),
        sparse_size("rows", {}, "rows of A", sparse::kMaxExtent),
        sparse_size("columns", {}, "columns of A", sparse::kMaxExtent),
        sparse_size("depth", 1, "third extent of a tensor A", sparse::kMaxExtent),
        sparse_size("nnz", {}, "non-zeros of A", kMaxNonZeros),
        sparse_size("n", 1, "columns of the dense operands", sparse::kMaxExtent),
        sparse_label("dtype", data_type_labels(), 0, 8, "data type"),
        sparse_size("origin", 0, "number of the matrix that A was resampled from", kMaxOrigin)};
    for (const SparseField field : {SparseField::kNonZeros, SparseField::kOrigin}) {
      list[position(field)].minimum = 0;
    }
    ProblemField& origin = list[position(SparseField::kOrigin)];
    origin.groups = {.problem = true, .sizes = true, .weights = true};
    origin.is_origin = true;
    return list;
  }();
  return fields;
}

std::optional<ProblemWork> sparse_work(const Problem& problem) {
  const SparseProblem typed = *SparseProblem::from(problem);
  return ProblemWork{typed.flops(), typed.bytes()};
}

constexpr std::array<std::int64_t, 4> kRowLimits{256, 4096, 32768, 262144};
constexpr std::array<std::int64_t, 4> kNonZeroLimits{10000, 100000, 1000000, 10000000};
constexpr std::array<std::int64_t, 4> kLengthLimits{2, 8, 32, 128};
constexpr std::array<std::int64_t, 4> kWidthLimits{1, 16, 64, 256};

constexpr std::array<ProblemSlice, 6> kSlices{
    {{"operation",
      [](const Problem& problem) {
        return slice_by_field(problem, position(SparseField::kOperation));
      }},
     {"rows",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, SparseField::kRows), kRowLimits);
      }},
     {"non-zeros",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, SparseField::kNonZeros), kNonZeroLimits);
      }},
     {"non-zeros a row",
      [](const Problem& problem) {
        const std::int64_t rows = value_of(problem, SparseField::kRows);
        return slice_by_size((value_of(problem, SparseField::kNonZeros) + rows - 1) / rows,
                             kLengthLimits);
      }},
     {"dense columns",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, SparseField::kWidth), kWidthLimits);
      }},
     {"dtype", [](const Problem& problem) {
        return slice_by_field(problem, position(SparseField::kDtype));
      }}}};

}  // namespace

const ProblemTypeInfo& sparse_problem_type() {
  static const ProblemTypeInfo info{
      .schema = {.type = kSparseProblem,
                 .name = "sparse",
                 .version = 1,
                 .fields = sparse_fields(),
                 .payload = PayloadUse::kOptional,
                 .check = check_sparse},
      .summary = "products and sums of a sparse matrix, and MTTKRP of a sparse tensor",
      .work = &sparse_work,
      .slices = kSlices,
      .map_fields = {position(SparseField::kRows), position(SparseField::kNonZeros)},
      .payload = &sparse_payload_info()};
  return info;
}

}  // namespace foretune
