// Every kernel against plain loops in double precision, between guard pages.
#include "foretune/families/sparse_cpu/sparse_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/kernels/testing/guarded_buffer.h"
#include "foretune/sparse/storage.h"
#include "foretune/sparse/testing/random_matrix.h"

namespace foretune::sparse_cpu {
namespace {

// Sums of a row that are kept apart, and rows side by side.
constexpr std::array<std::pair<int, int>, 5> kDepths{{{1, 1}, {2, 1}, {4, 1}, {1, 2}, {1, 4}}};
constexpr std::array kAllIsas{CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512};

// Values between guard pages; an output begins as NaN.
template <class T>
class Guarded : public GuardedArray<T> {
 public:
  Guarded(std::span<const T> values, GuardSide side) : GuardedArray<T>(values.size(), side) {
    std::copy(values.begin(), values.end(), this->data());
  }
};
template <class T>
class Poisoned : public GuardedArray<T> {
 public:
  Poisoned(std::size_t count, GuardSide side) : GuardedArray<T>(count, side) {
    std::fill_n(this->data(), count, std::numeric_limits<T>::quiet_NaN());
  }
};

// A matrix and dense operands, each between guard pages.
template <class T>
class Operands {
 public:
  Operands(const sparse::Csr<T>& matrix, std::size_t width, GuardSide side, Rng& rng)
      : matrix_(matrix),
        width_(width),
        columns_(matrix.column_of.size(), side),
        values_(matrix.values.size(), side),
        by_columns_(static_cast<std::size_t>(matrix.columns) * width, side),
        by_rows_(static_cast<std::size_t>(matrix.rows) * width, side) {
    std::copy_n(matrix.column_of.data(), matrix.column_of.size(), columns_.data());
    std::copy_n(matrix.values.data(), matrix.values.size(), values_.data());
    for (GuardedArray<T>* dense : {&by_columns_, &by_rows_}) {
      for (T& value : dense->view()) {
        value = static_cast<T>(2 * rng.uniform() - 1);
      }
    }
  }

  [[nodiscard]] RowRange<T> rows() const {
    return {matrix_.starts.data(), columns_.data(), values_.data(), 0,
            static_cast<std::size_t>(matrix_.rows)};
  }
  [[nodiscard]] const T* by_columns() const { return by_columns_.data(); }
  [[nodiscard]] const T* by_rows() const { return by_rows_.data(); }

  // Checks C = A B, rows by rows.
  void expect_product(const T* found) const {
    for (std::size_t row = 0; row < static_cast<std::size_t>(matrix_.rows); ++row) {
      for (std::size_t j = 0; j < width_; ++j) {
        double sum = 0;
        double magnitude = 0;
        for (auto i = static_cast<std::size_t>(matrix_.starts[row]);
             i < static_cast<std::size_t>(matrix_.starts[row + 1]); ++i) {
          const double product =
              static_cast<double>(matrix_.values[i]) *
              static_cast<double>(
                  by_columns_.data()[static_cast<std::size_t>(matrix_.column_of[i]) * width_ + j]);
          sum += product;
          magnitude += std::fabs(product);
        }
        ASSERT_LE(std::fabs(static_cast<double>(found[row * width_ + j]) - sum),
                  bound(magnitude, matrix_.starts[row + 1] - matrix_.starts[row]))
            << "row " << row << " column " << j;
      }
    }
  }
  void expect_sampled(const T* found) const {
    for (std::size_t row = 0; row < static_cast<std::size_t>(matrix_.rows); ++row) {
      for (auto i = static_cast<std::size_t>(matrix_.starts[row]);
           i < static_cast<std::size_t>(matrix_.starts[row + 1]); ++i) {
        double sum = 0;
        double magnitude = 0;
        for (std::size_t j = 0; j < width_; ++j) {
          const double product =
              static_cast<double>(by_rows_.data()[row * width_ + j]) *
              static_cast<double>(
                  by_columns_.data()[static_cast<std::size_t>(matrix_.column_of[i]) * width_ + j]);
          sum += product;
          magnitude += std::fabs(product);
        }
        const auto scale = static_cast<double>(matrix_.values[i]);
        ASSERT_LE(std::fabs(static_cast<double>(found[i]) - scale * sum),
                  bound(std::fabs(scale) * magnitude, static_cast<std::int64_t>(width_)))
            << "non-zero " << i;
      }
    }
  }

 private:
  static double bound(double magnitude, std::int64_t count) {
    return static_cast<double>(count + 3) * magnitude *
           static_cast<double>(std::numeric_limits<T>::epsilon());
  }

  const sparse::Csr<T>& matrix_;
  std::size_t width_;
  GuardedArray<std::int32_t> columns_;
  GuardedArray<T> values_;
  GuardedArray<T> by_columns_;
  GuardedArray<T> by_rows_;
};

// Calls check(kernels, matrix, side, rng) for each instruction set of this machine.
template <class T, class Check>
void for_kernels(int trials, const Check& check) {
  constexpr std::uint64_t kSeed = 61;
  for (const CpuIsa isa : kAllIsas) {
    const SparseKernels<T>* const kernels = sparse_kernels<T>(isa);
    if (kernels == nullptr) {
      continue;
    }
    Rng rng(kSeed);
    for (int trial = 0; trial < trials && !::testing::Test::HasFailure(); ++trial) {
      SCOPED_TRACE(concat(to_string(isa), ", seed ", kSeed, ", trial ", trial));
      const auto matrix = sparse::csr_from<T>(sparse::random_matrix(40, rng)).value();
      check(*kernels, matrix, trial % 2 == 0 ? GuardSide::kEnd : GuardSide::kStart, rng);
    }
  }
}

template <class T>
class SparseKernelsTest : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SparseKernelsTest, ValueTypes);

TYPED_TEST(SparseKernelsTest, SpmmIsRight) {
  using T = TypeParam;
  for_kernels<T>(25, [](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                        GuardSide side, Rng& rng) {
    for (int vectors = 1; vectors <= kMaxVectors; ++vectors) {
      const auto width = static_cast<std::size_t>(
          rng.between((vectors - 1) * kernels.lanes + 1, vectors * kernels.lanes));
      const Operands<T> operands(matrix, width, side, rng);
      for (const auto& [unroll, group] : kDepths) {
        const SpmmKernel<T> kernel = kernels.spmm(vectors, unroll, group);
        if (kernel == nullptr) {
          ASSERT_GT(vectors * std::max(unroll, group), 8);
          continue;
        }
        SCOPED_TRACE(concat(vectors, " vectors, unroll ", unroll, ", group ", group));
        Poisoned<T> out(static_cast<std::size_t>(matrix.rows) * width, side);
        const auto stride = static_cast<std::ptrdiff_t>(width);
        kernel(operands.rows(), operands.by_columns(), stride, out.data(), stride, stride);
        operands.expect_product(out.data());
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, SpmvIsRight) {
  using T = TypeParam;
  for_kernels<T>(100, [](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                         GuardSide side, Rng& rng) {
    const Operands<T> operands(matrix, 1, side, rng);
    for (const int unroll : {1, 2, 4}) {
      for (const bool along_entries : {false, true}) {
        Poisoned<T> out(static_cast<std::size_t>(matrix.rows), side);
        kernels.spmv(along_entries, unroll)(operands.rows(), operands.by_columns(), out.data());
        operands.expect_product(out.data());
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, SellIsRight) {
  using T = TypeParam;
  ThreadPool pool(1);
  for_kernels<T>(100, [&](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                          GuardSide side, Rng& rng) {
    const Operands<T> operands(matrix, 1, side, rng);
    for (const int unroll : {1, 2, 4}) {
      const auto height = static_cast<std::int32_t>(unroll * kernels.lanes * rng.between(1, 2));
      const auto sell =
          sparse::pack_sell(matrix, {height, height * rng.between(1, 4)}, {pool}).value();
      Poisoned<T> out(static_cast<std::size_t>(matrix.rows), side);
      const Guarded<std::int32_t> columns(sell.column_of.view(), side);
      const Guarded<T> values(sell.values.view(), side);
      kernels.sell(unroll)({sell.starts.data(), sell.row_of.data(), columns.data(), values.data(),
                            static_cast<std::size_t>(height), 0, sell.starts.size() - 1},
                           operands.by_columns(), out.data());
      operands.expect_product(out.data());
    }
  });
}

TYPED_TEST(SparseKernelsTest, SddmmIsRight) {
  using T = TypeParam;
  for_kernels<T>(50, [](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                        GuardSide side, Rng& rng) {
    const auto width = static_cast<std::size_t>(rng.between(1, 70));
    const Operands<T> operands(matrix, width, side, rng);
    for (const int entries : {1, 2, 4, 8}) {
      Poisoned<T> out(matrix.values.size(), side);
      const auto stride = static_cast<std::ptrdiff_t>(width);
      kernels.sddmm(entries)(operands.rows(), operands.by_rows(), stride, operands.by_columns(),
                             stride, stride, out.data());
      operands.expect_sampled(out.data());
    }
  });
}

TYPED_TEST(SparseKernelsTest, OtherShapesHaveNoKernel) {
  for (const CpuIsa isa : kAllIsas) {
    if (const auto* const kernels = sparse_kernels<TypeParam>(isa)) {
      EXPECT_EQ(kernels->spmm(9, 1, 1), nullptr);
      EXPECT_EQ(kernels->spmm(1, 3, 1), nullptr);
      EXPECT_EQ(kernels->spmm(1, 2, 2), nullptr);
      EXPECT_EQ(kernels->spmv(true, 3), nullptr);
      EXPECT_EQ(kernels->sell(8), nullptr);
      EXPECT_EQ(kernels->sddmm(3), nullptr);
    }
  }
}

}  // namespace
}  // namespace foretune::sparse_cpu
