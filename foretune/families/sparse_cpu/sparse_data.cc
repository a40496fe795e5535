#include "foretune/families/sparse_cpu/sparse_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune::sparse_cpu {
namespace {

// Multiples of 2^-23 in [-1, 1).
template <class T>
void fill_uniform(std::span<T> values, Rng& rng) {
  for (T& value : values) {
    value = static_cast<T>(static_cast<double>(static_cast<std::int64_t>(rng.next() >> 40U) -
                                               (std::int64_t{1} << 23U)) *
                           0x1p-23);
  }
}

// Adds up terms in double precision, and their magnitudes.
struct Sum {
  double value = 0;
  double magnitude = 0;
  double count = 0;

  void add(double a, double b, double c = 1) {
    const double term = a * b * c;
    value += term;
    magnitude += std::fabs(term);
    ++count;
  }
};

struct OperandSizes {
  std::size_t first = 0;
  std::size_t second = 0;
  std::size_t output = 0;
};

OperandSizes operand_sizes(const SparseSizes& sizes) {
  const auto rows = static_cast<std::size_t>(sizes.rows);
  const auto columns = static_cast<std::size_t>(sizes.columns);
  const auto depth = static_cast<std::size_t>(sizes.depth);
  const auto width = static_cast<std::size_t>(sizes.width);
  const auto non_zeros = static_cast<std::size_t>(sizes.non_zeros);
  switch (sizes.operation) {
    case SparseOperation::kSpmv:
    case SparseOperation::kSpmm:
      return {columns * width, 0, rows * width};
    case SparseOperation::kGespmv:
    case SparseOperation::kGespmm:
      return {columns * width, rows * width, rows * width};
    case SparseOperation::kSddmm:
      return {rows * width, columns * width, non_zeros};
    case SparseOperation::kMmadd:
      return {rows * columns, 0, rows * columns};
    case SparseOperation::kPlus2:
      return {non_zeros, 0, non_zeros};
    case SparseOperation::kPlus3:
      return {non_zeros, non_zeros, non_zeros};
    case SparseOperation::kMttkrp:
      return {columns * width, depth * width, rows * width};
  }
  return {};
}

// Returns the values of a row of the output; 0 where the output holds a value for each non-zero.
std::size_t output_width(const SparseSizes& sizes) {
  switch (sizes.operation) {
    case SparseOperation::kSddmm:
    case SparseOperation::kPlus2:
    case SparseOperation::kPlus3:
      return 0;
    case SparseOperation::kMmadd:
      return static_cast<std::size_t>(sizes.columns);
    default:
      return static_cast<std::size_t>(sizes.width);
  }
}

}  // namespace

template <class T>
Result<std::unique_ptr<TypedSparseData<T>>> TypedSparseData<T>::create(
    const SparseProblem& problem, const sparse::Coordinates& coordinates, std::uint64_t seed) {
  const SparseSizes& sizes = problem.sizes();
  std::unique_ptr<TypedSparseData> data(new TypedSparseData(problem));
  FORETUNE_TRY(data->matrix_, sparse::csr_from<T>(coordinates));
  const OperandSizes operands = operand_sizes(sizes);
  FORETUNE_TRY(data->first_, sparse::Array<T>::create(operands.first));
  FORETUNE_TRY(data->second_, sparse::Array<T>::create(operands.second));
  FORETUNE_TRY(data->output_, sparse::Array<T>::create(operands.output));
  Rng rng(seed);
  fill_uniform(data->first_.view(), rng);
  fill_uniform(data->second_.view(), rng);
  data->poison();
  return data;
}

template <class T>
void TypedSparseData<T>::poison() {
  std::fill_n(output_.data(), output_.size(), std::numeric_limits<T>::quiet_NaN());
}

template <class T>
std::int64_t TypedSparseData<T>::bytes() const {
  return static_cast<std::int64_t>(matrix_.starts.bytes() + matrix_.column_of.bytes() +
                                   matrix_.values.bytes() + first_.bytes() + second_.bytes() +
                                   output_.bytes());
}

// A value for each non-zero: sddmm, and sums of matrices with one pattern.
template <class T>
void TypedSparseData<T>::compute_values(std::size_t row) {
  const auto width = static_cast<std::size_t>(problem().sizes().width);
  const SparseOperation operation = problem().sizes().operation;
  for (auto i = static_cast<std::size_t>(matrix_.starts[row]);
       i < static_cast<std::size_t>(matrix_.starts[row + 1]); ++i) {
    const auto value = static_cast<double>(matrix_.values[i]);
    Sum sum;
    double scale = 1;
    if (operation == SparseOperation::kSddmm) {
      scale = value;
      const std::size_t column = static_cast<std::size_t>(matrix_.column_of[i]) * width;
      for (std::size_t j = 0; j < width; ++j) {
        sum.add(static_cast<double>(first_[row * width + j]),
                static_cast<double>(second_[column + j]));
      }
    } else {
      sum.add(value, 1);
      sum.add(static_cast<double>(first_[i]), 1);
      if (operation == SparseOperation::kPlus3) {
        sum.add(static_cast<double>(second_[i]), 1);
      }
    }
    keep(i, sum.value, sum.magnitude, sum.count, scale);
  }
}

// A row of dense results.
template <class T>
void TypedSparseData<T>::compute_row(std::size_t row) {
  const SparseSizes& sizes = problem().sizes();
  const std::size_t width = output_width(sizes);
  const auto depth = static_cast<std::size_t>(sizes.depth);
  std::vector<Sum> sums(width);
  for (auto i = static_cast<std::size_t>(matrix_.starts[row]);
       i < static_cast<std::size_t>(matrix_.starts[row + 1]); ++i) {
    const auto value = static_cast<double>(matrix_.values[i]);
    const auto column = static_cast<std::size_t>(matrix_.column_of[i]);
    if (sizes.operation == SparseOperation::kMmadd) {
      sums[column].add(value, 1);
      continue;
    }
    const bool is_tensor = sizes.operation == SparseOperation::kMttkrp;
    const T* const factors = first_.data() + (is_tensor ? column / depth : column) * width;
    const T* const others = is_tensor ? second_.data() + column % depth * width : nullptr;
    for (std::size_t j = 0; j < width; ++j) {
      sums[j].add(value, static_cast<double>(factors[j]),
                  is_tensor ? static_cast<double>(others[j]) : 1.0);
    }
  }
  const T* added = nullptr;
  if (sizes.operation == SparseOperation::kMmadd) {
    added = first_.data() + row * width;
  } else if (sizes.operation == SparseOperation::kGespmv ||
             sizes.operation == SparseOperation::kGespmm) {
    added = second_.data() + row * width;
  }
  for (std::size_t j = 0; j < width; ++j) {
    if (added != nullptr) {
      sums[j].add(static_cast<double>(added[j]), 1);
    }
    keep(row * width + j, sums[j].value, sums[j].magnitude, sums[j].count, 1);
  }
}

template <class T>
void TypedSparseData<T>::keep(std::size_t at, double value, double magnitude, double count,
                              double scale) {
  constexpr double kRoundoff = kIsDouble ? 0x1p-52 : 0x1p-24;
  reference_[at] = scale * value;
  bound_[at] = (count + 3) * kRoundoff * std::fabs(scale) * magnitude;
}

template <class T>
void TypedSparseData<T>::compute_reference() {
  reference_.resize(output_.size());
  bound_.resize(output_.size());
  const bool is_dense = output_width(problem().sizes()) > 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(matrix_.rows); ++row) {
    is_dense ? compute_row(row) : compute_values(row);
  }
}

template <class T>
Support TypedSparseData<T>::verify() {
  if (reference_.size() != output_.size()) {
    compute_reference();
  }
  const std::size_t width = output_width(problem().sizes());
  for (std::size_t i = 0; i < output_.size(); ++i) {
    const auto value = static_cast<double>(output_[i]);
    // Written so that NaN fails.
    if (!(std::fabs(value - reference_[i]) <= bound_[i])) {
      const std::string place =
          width == 0 ? concat("non-zero ", i) : concat("row ", i / width, ", column ", i % width);
      return Support::no(place, " is ", value, ", expected ", reference_[i], " within ", bound_[i]);
    }
  }
  return Support::yes();
}

template class TypedSparseData<float>;
template class TypedSparseData<double>;

}  // namespace foretune::sparse_cpu
