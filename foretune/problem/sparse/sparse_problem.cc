#include "foretune/problem/sparse/sparse_problem.h"

#include <algorithm>
#include <array>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

// The order is that of SparseOperation.
constexpr std::array<std::string_view, 9> kSparseOperations{
    "spmv", "spmm", "sddmm", "gespmv", "gespmm", "mmadd", "plus2", "plus3", "mttkrp"};

constexpr double kMaxSparseElements = 9007199254740992.0;  // 2^53, which doubles count exactly

SparseSizes sizes_of(std::span<const std::int64_t> fields) {
  const auto field = [&](SparseField index) { return fields[static_cast<std::size_t>(index)]; };
  return {.operation = static_cast<SparseOperation>(field(SparseField::kOperation)),
          .rows = field(SparseField::kRows),
          .columns = field(SparseField::kColumns),
          .depth = field(SparseField::kDepth),
          .non_zeros = field(SparseField::kNonZeros),
          .width = field(SparseField::kWidth),
          .dtype = static_cast<DataType>(field(SparseField::kDtype)),
          .origin = field(SparseField::kOrigin)};
}

Problem::Fields fields_of(const SparseSizes& sizes) {
  return {static_cast<std::int64_t>(sizes.operation),
          sizes.rows,
          sizes.columns,
          sizes.depth,
          sizes.non_zeros,
          sizes.width,
          static_cast<std::int64_t>(sizes.dtype),
          sizes.origin};
}

bool has_width(SparseOperation operation) {
  return operation == SparseOperation::kSpmm || operation == SparseOperation::kSddmm ||
         operation == SparseOperation::kGespmm || operation == SparseOperation::kMttkrp;
}

// Sizes as doubles, in which products do not overflow.
struct Extents {
  explicit Extents(const SparseSizes& sizes)
      : rows(static_cast<double>(sizes.rows)),
        columns(static_cast<double>(sizes.columns)),
        depth(static_cast<double>(sizes.depth)),
        non_zeros(static_cast<double>(sizes.non_zeros)),
        width(static_cast<double>(sizes.width)) {}
  double rows, columns, depth, non_zeros, width;
};

// Returns the elements of all dense operands, and the values of sparse ones beside A.
double other_elements(const SparseSizes& sizes) {
  const Extents e(sizes);
  switch (sizes.operation) {
    case SparseOperation::kSpmv:
      return e.columns + e.rows;
    case SparseOperation::kGespmv:
      return e.columns + 2 * e.rows;
    case SparseOperation::kSpmm:
      return (e.columns + e.rows) * e.width;
    case SparseOperation::kGespmm:
      return (e.columns + 2 * e.rows) * e.width;
    case SparseOperation::kSddmm:
      return (e.columns + e.rows) * e.width + e.non_zeros;
    case SparseOperation::kMmadd:
      return 2 * e.rows * e.columns;
    case SparseOperation::kPlus2:
      return 2 * e.non_zeros;
    case SparseOperation::kPlus3:
      return 3 * e.non_zeros;
    case SparseOperation::kMttkrp:
      return (e.rows + e.columns + e.depth) * e.width;
  }
  return 0;
}

std::string_view without_ending(std::string_view name, std::string_view ending) {
  if (name.size() > ending.size() && name.ends_with(ending)) {
    name.remove_suffix(ending.size());
  }
  return name;
}

// Removes digits from the end, and the letter before them. Returns false where these are not there.
bool remove_number(std::string_view& name, char letter) {
  std::string_view left = name;
  while (!left.empty() && left.back() >= '0' && left.back() <= '9') {
    left.remove_suffix(1);
  }
  if (left.size() == name.size() || left.empty() || left.back() != letter) {
    return false;
  }
  left.remove_suffix(1);
  name = left;
  return true;
}

}  // namespace

std::span<const std::string_view> sparse_operation_labels() { return kSparseOperations; }
std::string_view to_string(SparseOperation operation) {
  return kSparseOperations[static_cast<std::size_t>(operation)];
}

Status check_sparse(std::span<const std::int64_t> fields) {
  const SparseSizes sizes = sizes_of(fields);
  const Extents e(sizes);
  if (sizes.dtype != DataType::kF32 && sizes.dtype != DataType::kF64) {
    return fail(ErrorCode::kInvalidArgument, "sparse: values are f32 or f64, not ",
                to_string(sizes.dtype));
  }
  if (sizes.depth > 1 && sizes.operation != SparseOperation::kMttkrp) {
    return fail(ErrorCode::kInvalidArgument, "sparse: depth is for tensors, and ",
                to_string(sizes.operation), " takes a matrix");
  }
  if (sizes.width > 1 && !has_width(sizes.operation)) {
    return fail(ErrorCode::kInvalidArgument, "sparse: ", to_string(sizes.operation),
                " has no dense operand with n columns");
  }
  if (e.non_zeros > e.rows * e.columns * e.depth) {
    return fail(ErrorCode::kInvalidArgument, "sparse: nnz=", sizes.non_zeros,
                " is more than A has elements");
  }
  if (std::max(e.rows, std::max(e.columns, e.depth)) * e.width > kMaxSparseElements ||
      other_elements(sizes) > kMaxSparseElements) {
    return fail(ErrorCode::kInvalidArgument, "sparse: an operand has more than 2^53 elements");
  }
  return {};
}

std::int64_t sparse_origin(std::string_view file_name) {
  std::string_view name = without_ending(file_name, ".gz");
  for (const std::string_view ending : {".mtx", ".csr", ".tns"}) {
    name = without_ending(name, ending);
  }
  std::string_view original = name;
  if (remove_number(original, '_') && remove_number(original, 'x') &&
      remove_number(original, '_') && !original.empty()) {
    name = original;
  }
  // Positive, and exact as a double.
  return static_cast<std::int64_t>(hash64(name) >> 12U) | 1;
}

Result<SparseProblem> SparseProblem::create(const SparseSizes& sizes) {
  FORETUNE_TRY(const Problem checked,
               Problem::create(kSparseProblem, fields_of(sizes), sizes.payload));
  static_cast<void>(checked);
  return SparseProblem(sizes);
}

Result<SparseProblem> SparseProblem::from(const Problem& problem) {
  if (problem.type() != kSparseProblem) {
    return fail(ErrorCode::kInvalidArgument, "'", problem.text(), "' is not a sparse problem");
  }
  SparseSizes sizes = sizes_of(problem.fields());
  sizes.payload = problem.payload();
  return SparseProblem(sizes);
}

Problem SparseProblem::to_problem() const {
  auto problem = Problem::create(kSparseProblem, fields_of(sizes_), sizes_.payload);
  FORETUNE_CHECK(problem.has_value());
  return *std::move(problem);
}

double SparseProblem::flops() const {
  const Extents e(sizes_);
  switch (sizes_.operation) {
    case SparseOperation::kSpmv:
      return 2 * e.non_zeros;
    case SparseOperation::kGespmv:
      return 2 * e.non_zeros + e.rows;
    case SparseOperation::kSpmm:
      return 2 * e.non_zeros * e.width;
    case SparseOperation::kGespmm:
      return (2 * e.non_zeros + e.rows) * e.width;
    case SparseOperation::kSddmm:
      return 2 * e.non_zeros * e.width + e.non_zeros;
    case SparseOperation::kMmadd:
    case SparseOperation::kPlus2:
      return e.non_zeros;
    case SparseOperation::kPlus3:
      return 2 * e.non_zeros;
    case SparseOperation::kMttkrp:
      return 3 * e.non_zeros * e.width;
  }
  return 0;
}

double SparseProblem::bytes() const {
  const Extents e(sizes_);
  const double value_bytes = bytes_per_element(sizes_.dtype);
  const double indices = sizes_.operation == SparseOperation::kMttkrp ? 2 : 1;
  return e.non_zeros * (4 * indices + value_bytes) + 8 * (e.rows + 1) +
         other_elements(sizes_) * value_bytes;
}

}  // namespace foretune
