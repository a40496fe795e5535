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

// Adds up products in double precision, and their magnitudes.
struct Sum {
  double value = 0;
  double magnitude = 0;
  double count = 0;

  void add(double a, double b) {
    value += a * b;
    magnitude += std::fabs(a * b);
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
  const auto width = static_cast<std::size_t>(sizes.width);
  if (sizes.operation == SparseOperation::kSddmm) {
    return {rows * width, columns * width, static_cast<std::size_t>(sizes.non_zeros)};
  }
  return {columns * width, 0, rows * width};
}

}  // namespace

template <class T>
Result<std::unique_ptr<TypedSparseData<T>>> TypedSparseData<T>::create(
    const SparseProblem& problem, const sparse::Coordinates& coordinates, std::uint64_t seed) {
  const SparseSizes& sizes = problem.sizes();
  if (sizes.operation != SparseOperation::kSpmv && sizes.operation != SparseOperation::kSpmm &&
      sizes.operation != SparseOperation::kSddmm) {
    return fail(ErrorCode::kUnsupported, "there are no data for ", to_string(sizes.operation));
  }
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

template <class T>
void TypedSparseData<T>::compute_reference() {
  constexpr double kRoundoff = kIsDouble ? 0x1p-52 : 0x1p-24;
  reference_.resize(output_.size());
  bound_.resize(output_.size());
  const auto width = static_cast<std::size_t>(problem().sizes().width);
  const bool is_sddmm = problem().sizes().operation == SparseOperation::kSddmm;
  const auto keep = [&](std::size_t at, const Sum& sum, double scale) {
    reference_[at] = scale * sum.value;
    bound_[at] = (sum.count + 3) * kRoundoff * std::fabs(scale) * sum.magnitude;
  };
  for (std::size_t row = 0; row < static_cast<std::size_t>(matrix_.rows); ++row) {
    const auto begin = static_cast<std::size_t>(matrix_.starts[row]);
    const auto end = static_cast<std::size_t>(matrix_.starts[row + 1]);
    const auto column = [&](std::size_t i) {
      return static_cast<std::size_t>(matrix_.column_of[i]) * width;
    };
    for (std::size_t i = begin; is_sddmm && i < end; ++i) {
      Sum sum;
      for (std::size_t j = 0; j < width; ++j) {
        sum.add(static_cast<double>(first_[row * width + j]),
                static_cast<double>(second_[column(i) + j]));
      }
      keep(i, sum, static_cast<double>(matrix_.values[i]));
    }
    for (std::size_t j = 0; !is_sddmm && j < width; ++j) {
      Sum sum;
      for (std::size_t i = begin; i < end; ++i) {
        sum.add(static_cast<double>(matrix_.values[i]), static_cast<double>(first_[column(i) + j]));
      }
      keep(row * width + j, sum, 1);
    }
  }
}

template <class T>
Support TypedSparseData<T>::verify() {
  if (reference_.size() != output_.size()) {
    compute_reference();
  }
  const auto width = static_cast<std::size_t>(problem().sizes().width);
  for (std::size_t i = 0; i < output_.size(); ++i) {
    const auto value = static_cast<double>(output_[i]);
    // Written so that NaN fails.
    if (!(std::fabs(value - reference_[i]) <= bound_[i])) {
      const std::string place = problem().sizes().operation == SparseOperation::kSddmm
                                    ? concat("non-zero ", i)
                                    : concat("row ", i / width, ", column ", i % width);
      return Support::no(place, " is ", value, ", expected ", reference_[i], " within ", bound_[i]);
    }
  }
  return Support::yes();
}

template class TypedSparseData<float>;
template class TypedSparseData<double>;

}  // namespace foretune::sparse_cpu
