// Every kernel against plain loops in double precision, between guard pages.
#include "foretune/families/sparse_cpu/sparse_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/kernels/testing/guarded_buffer.h"
#include "foretune/sparse/fibres.h"
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
        by_rows_(static_cast<std::size_t>(matrix.rows) * width, side),
        adds_(rng.below(2) == 0) {
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
  [[nodiscard]] DenseRange<T> dense(T* out, bool streams) const {
    const auto stride = static_cast<std::ptrdiff_t>(width_);
    return {by_columns_.data(), stride, out, stride, stride, streams, 0, added()};
  }
  [[nodiscard]] VectorRange<T> vectors(T* out) const { return {by_columns_.data(), out, added()}; }
  [[nodiscard]] const T* by_columns() const { return by_columns_.data(); }
  [[nodiscard]] const T* by_rows() const { return by_rows_.data(); }

  // Checks C = A B, or, in half of the trials, the sum of it and the operand by rows.
  void expect_product(const T* found) const {
    for (std::size_t row = 0; row < static_cast<std::size_t>(matrix_.rows); ++row) {
      for (std::size_t j = 0; j < width_; ++j) {
        double sum = adds_ ? static_cast<double>(by_rows_.data()[row * width_ + j]) : 0;
        double magnitude = std::fabs(sum);
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
  [[nodiscard]] const T* added() const { return adds_ ? by_rows_.data() : nullptr; }
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
  bool adds_;
};

// Returns a width that takes this many vectors, often whole ones.
std::int64_t trial_width(int vectors, int lanes, Rng& rng) {
  return rng.below(2) == 0 ? vectors * lanes
                           : rng.between((vectors - 1) * lanes + 1, vectors * lanes);
}

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
      const auto width = static_cast<std::size_t>(trial_width(vectors, kernels.lanes, rng));
      const Operands<T> operands(matrix, width, side, rng);
      for (const auto& [unroll, group] : kDepths) {
        const SpmmKernel<T> kernel = kernels.spmm(vectors, unroll, group);
        if (kernel == nullptr) {
          ASSERT_GT(vectors * std::max(unroll, group), 8);
          continue;
        }
        SCOPED_TRACE(concat(vectors, " vectors, unroll ", unroll, ", group ", group));
        for (const bool streams : {false, true}) {
          Poisoned<T> out(static_cast<std::size_t>(matrix.rows) * width, side);
          kernel(operands.rows(), operands.dense(out.data(), streams));
          kernels.finish_streams();
          operands.expect_product(out.data());
        }
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, BufferedSumsAreRight) {
  using T = TypeParam;
  for_kernels<T>(40, [](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                        GuardSide side, Rng& rng) {
    const auto vectors = static_cast<int>(rng.below(8) == 0 ? kMaxBuffered : rng.between(1, 17));
    const auto width = static_cast<std::size_t>(trial_width(vectors, kernels.lanes, rng));
    const Operands<T> operands(matrix, width, side, rng);
    for (const int entries : {1, 2, 4}) {
      for (const std::int32_t prefetch : {0, 8}) {
        for (const bool streams : {false, true}) {
          Poisoned<T> out(static_cast<std::size_t>(matrix.rows) * width, side);
          DenseRange<T> dense = operands.dense(out.data(), streams);
          dense.prefetch = prefetch;
          kernels.buffered_spmm(entries)(operands.rows(), dense);
          kernels.finish_streams();
          operands.expect_product(out.data());
        }
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, SlicesTimesAMatrixAreRight) {
  using T = TypeParam;
  ThreadPool pool(1);
  for_kernels<T>(20, [&](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                         GuardSide side, Rng& rng) {
    for (const int height : {1, 2, 4}) {
      const auto sell =
          sparse::pack_sell(matrix, {height, height * rng.between(1, 10)}, {pool}).value();
      const Guarded<std::int32_t> columns(sell.column_of.view(), side);
      const Guarded<T> values(sell.values.view(), side);
      for (int vectors = 1; vectors <= kMaxVectors; ++vectors) {
        const SliceSpmmKernel<T> kernel = kernels.slice_spmm(height, vectors);
        if (kernel == nullptr) {
          ASSERT_GT(height * vectors, 8);
          continue;
        }
        const auto width = static_cast<std::size_t>(trial_width(vectors, kernels.lanes, rng));
        const Operands<T> operands(matrix, width, side, rng);
        SCOPED_TRACE(concat("slices of ", height, ", ", vectors, " vectors"));
        for (const bool streams : {false, true}) {
          Poisoned<T> out(static_cast<std::size_t>(matrix.rows) * width, side);
          kernel({sell.starts.data(), sell.row_of.data(), columns.data(), values.data(),
                  static_cast<std::size_t>(height), 0, sell.starts.size() - 1},
                 operands.dense(out.data(), streams));
          kernels.finish_streams();
          operands.expect_product(out.data());
        }
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, BlocksTimesAMatrixAreRight) {
  using T = TypeParam;
  ThreadPool pool(1);
  for_kernels<T>(20, [&](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                         GuardSide side, Rng& rng) {
    for (const int height : {2, 3, 4, 6, 8}) {
      const auto block_width = static_cast<std::int32_t>(rng.between(1, 8));
      const auto bcsr = sparse::pack_bcsr(matrix, {height, block_width}, {pool}).value();
      const Guarded<std::int32_t> columns(bcsr.column_of.view(), side);
      const Guarded<T> values(bcsr.values.view(), side);
      for (int vectors = 1; vectors <= kMaxVectors; ++vectors) {
        const BlockSpmmKernel<T> kernel = kernels.block_spmm(height, vectors);
        ASSERT_EQ(kernel != nullptr, height * vectors + vectors + 1 <= kernels.block_registers);
        if (kernel == nullptr) {
          continue;
        }
        const auto width = static_cast<std::size_t>(trial_width(vectors, kernels.lanes, rng));
        const Operands<T> operands(matrix, width, side, rng);
        SCOPED_TRACE(concat("blocks of ", height, " x ", block_width, ", ", vectors, " vectors"));
        for (const bool streams : {false, true}) {
          Poisoned<T> out(static_cast<std::size_t>(matrix.rows) * width, side);
          kernel({bcsr.starts.data(), columns.data(), values.data(), 0, bcsr.starts.size() - 1,
                  matrix.rows, matrix.columns, block_width},
                 operands.dense(out.data(), streams));
          kernels.finish_streams();
          operands.expect_product(out.data());
        }
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, BlocksTimesAVectorAreRight) {
  using T = TypeParam;
  ThreadPool pool(1);
  for_kernels<T>(100, [&](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                          GuardSide side, Rng& rng) {
    const Operands<T> operands(matrix, 1, side, rng);
    for (const int vectors : {1, 2, 4}) {
      const int height = vectors * kernels.lanes;
      const auto bcsr = sparse::pack_bcsr(matrix, {height, 1}, {pool}).value();
      const Guarded<std::int32_t> columns(bcsr.column_of.view(), side);
      const Guarded<T> values(bcsr.values.view(), side);
      for (const int unroll : {1, 2, 4}) {
        const BlockSpmvKernel<T> kernel = kernels.block_spmv(height, unroll);
        ASSERT_EQ(kernel != nullptr, vectors * unroll <= 8);
        if (kernel == nullptr) {
          continue;
        }
        Poisoned<T> out(static_cast<std::size_t>(matrix.rows), side);
        kernel({bcsr.starts.data(), columns.data(), values.data(), 0, bcsr.starts.size() - 1,
                matrix.rows, matrix.columns, 1},
               operands.vectors(out.data()));
        operands.expect_product(out.data());
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, DiagonalsTimesAVectorAreRight) {
  using T = TypeParam;
  ThreadPool pool(1);
  for_kernels<T>(100, [&](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                          GuardSide side, Rng& rng) {
    const Operands<T> operands(matrix, 1, side, rng);
    for (const int vectors : {1, 2, 4}) {
      const int height = vectors * kernels.lanes;
      const auto diagonals = sparse::pack_block_diagonals(matrix, height, {pool}).value();
      const Guarded<std::int32_t> columns(diagonals.column_of.view(), side);
      const Guarded<T> values(diagonals.values.view(), side);
      for (const int unroll : {1, 2, 4}) {
        const BlockSpmvKernel<T> kernel = kernels.diagonal_spmv(height, unroll);
        ASSERT_EQ(kernel != nullptr, vectors * unroll <= 8);
        if (kernel == nullptr) {
          continue;
        }
        Poisoned<T> out(static_cast<std::size_t>(matrix.rows), side);
        kernel({diagonals.starts.data(), columns.data(), values.data(), 0,
                diagonals.starts.size() - 1, matrix.rows, matrix.columns, 1},
               operands.vectors(out.data()));
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
      for (const auto& [along_entries, by_loads] :
           {std::pair{false, false}, {true, false}, {true, true}}) {
        Poisoned<T> out(static_cast<std::size_t>(matrix.rows), side);
        kernels.spmv(along_entries, unroll, by_loads)(operands.rows(),
                                                      operands.vectors(out.data()));
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
      const Guarded<std::int32_t> columns(sell.column_of.view(), side);
      const Guarded<T> values(sell.values.view(), side);
      for (const bool by_loads : {false, true}) {
        Poisoned<T> out(static_cast<std::size_t>(matrix.rows), side);
        kernels.sell(unroll, by_loads)(
            {sell.starts.data(), sell.row_of.data(), columns.data(), values.data(),
             static_cast<std::size_t>(height), 0, sell.starts.size() - 1},
            operands.vectors(out.data()));
        operands.expect_product(out.data());
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, SddmmIsRight) {
  using T = TypeParam;
  for_kernels<T>(50, [](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                        GuardSide side, Rng& rng) {
    const auto width = static_cast<std::size_t>(rng.between(1, 70));
    const Operands<T> operands(matrix, width, side, rng);
    const auto stride = static_cast<std::ptrdiff_t>(width);
    for (const int entries : {1, 2, 4, 8}) {
      for (const int prefetch : {0, 8}) {
        Poisoned<T> out(matrix.values.size(), side);
        kernels.sddmm(entries)(operands.rows(), {operands.by_rows(), operands.by_columns(), stride,
                                                 stride, out.data(), prefetch});
        operands.expect_sampled(out.data());
      }
    }
  });
}

TYPED_TEST(SparseKernelsTest, SumsWithADenseMatrixAreRight) {
  using T = TypeParam;
  for_kernels<T>(100, [](const SparseKernels<T>& kernels, const sparse::Csr<T>& matrix,
                         GuardSide side, Rng& rng) {
    const auto rows = static_cast<std::size_t>(matrix.rows);
    const auto columns = static_cast<std::size_t>(matrix.columns);
    const Operands<T> operands(matrix, columns, side, rng);
    const auto stride = static_cast<std::ptrdiff_t>(columns);
    Poisoned<T> out(rows * columns, side);
    kernels.dense_sum(operands.rows(), {operands.by_rows(), stride, out.data(), stride, stride});
    std::vector<T> expected(operands.by_rows(), operands.by_rows() + rows * columns);
    for (std::size_t row = 0; row < rows; ++row) {
      for (auto i = static_cast<std::size_t>(matrix.starts[row]);
           i < static_cast<std::size_t>(matrix.starts[row + 1]); ++i) {
        expected[row * columns + static_cast<std::size_t>(matrix.column_of[i])] += matrix.values[i];
      }
    }
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), out.data()));
  });
}

TYPED_TEST(SparseKernelsTest, SumsOfValuesAreRight) {
  using T = TypeParam;
  for_kernels<T>(
      100, [](const SparseKernels<T>& kernels, const sparse::Csr<T>&, GuardSide side, Rng& rng) {
        const auto count = static_cast<std::size_t>(rng.between(0, 90));
        std::array<std::vector<T>, 3> values;
        for (std::vector<T>& list : values) {
          for (std::size_t i = 0; i < count; ++i) {
            list.push_back(static_cast<T>(rng.uniform()));
          }
        }
        const Guarded<T> a(values[0], side);
        const Guarded<T> b(values[1], side);
        const Guarded<T> c(values[2], side);
        for (const bool streams : {false, true}) {
          for (const bool has_third : {false, true}) {
            Poisoned<T> out(count, side);
            kernels.value_sum(a.data(), b.data(), has_third ? c.data() : nullptr, out.data(),
                              static_cast<std::ptrdiff_t>(count), streams);
            kernels.finish_streams();
            for (std::size_t i = 0; i < count; ++i) {
              const T sum = values[0][i] + values[1][i];
              ASSERT_EQ(out.data()[i], has_third ? sum + values[2][i] : sum) << i;
            }
          }
        }
      });
}

TYPED_TEST(SparseKernelsTest, MttkrpIsRight) {
  using T = TypeParam;
  for_kernels<T>(
      40, [](const SparseKernels<T>& kernels, const sparse::Csr<T>&, GuardSide side, Rng& rng) {
        const sparse::Coordinates tensor = sparse::random_tensor(20, rng);
        const auto matrix = sparse::csr_from<T>(tensor).value();
        const auto depth = static_cast<std::size_t>(tensor.extents[2]);
        const auto fibres = sparse::fibres_of(matrix.pattern(), tensor.extents[2]).value();
        const Guarded<std::int32_t> depth_of(fibres.depth_of.view(), side);
        for (int vectors = 1; vectors <= kMaxVectors; ++vectors) {
          const FibreKernel<T> kernel = kernels.mttkrp(vectors);
          if (kernel == nullptr) {
            ASSERT_GT(2 * vectors, 8);
            continue;
          }
          const auto width = static_cast<std::size_t>(trial_width(vectors, kernels.lanes, rng));
          std::array<std::vector<T>, 2> factors;
          factors[0].resize(static_cast<std::size_t>(tensor.extents[1]) * width);
          factors[1].resize(depth * width);
          for (std::vector<T>& list : factors) {
            for (T& value : list) {
              value = static_cast<T>(rng.between(-8, 8));  // so that sums are exact
            }
          }
          const Guarded<T> by_columns(factors[0], side);
          const Guarded<T> by_depth(factors[1], side);
          Poisoned<T> out(static_cast<std::size_t>(matrix.rows) * width, side);
          const auto stride = static_cast<std::ptrdiff_t>(width);
          kernel({fibres.row_starts.data(), fibres.starts.data(), fibres.column_of.data(),
                  depth_of.data(), matrix.values.data(), 0, static_cast<std::size_t>(matrix.rows)},
                 {by_columns.data(), by_depth.data(), out.data(), stride, stride});
          std::vector<double> expected(static_cast<std::size_t>(matrix.rows) * width);
          for (std::size_t i = 0; i < tensor.size(); ++i) {
            const auto at = [&](int which) {
              return static_cast<std::size_t>(tensor.indices[static_cast<std::size_t>(which)][i]);
            };
            for (std::size_t j = 0; j < width; ++j) {
              expected[at(0) * width + j] += tensor.values[i] *
                                             static_cast<double>(factors[0][at(1) * width + j]) *
                                             static_cast<double>(factors[1][at(2) * width + j]);
            }
          }
          for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_EQ(static_cast<double>(out.data()[i]), expected[i]) << i;
          }
        }
      });
}

TYPED_TEST(SparseKernelsTest, OtherShapesHaveNoKernel) {
  for (const CpuIsa isa : kAllIsas) {
    if (const auto* const kernels = sparse_kernels<TypeParam>(isa)) {
      EXPECT_EQ(kernels->spmm(9, 1, 1), nullptr);
      EXPECT_EQ(kernels->spmm(1, 3, 1), nullptr);
      EXPECT_EQ(kernels->spmm(1, 2, 2), nullptr);
      EXPECT_EQ(kernels->buffered_spmm(3), nullptr);
      EXPECT_EQ(kernels->slice_spmm(3, 1), nullptr);
      EXPECT_EQ(kernels->block_spmm(5, 1), nullptr);
      EXPECT_EQ(kernels->spmv(true, 3, false), nullptr);
      EXPECT_EQ(kernels->sell(8, false), nullptr);
      EXPECT_EQ(kernels->block_spmv(3 * kernels->lanes, 1), nullptr);
      EXPECT_EQ(kernels->sddmm(3), nullptr);
      EXPECT_EQ(kernels->mttkrp(9), nullptr);
    }
  }
}

}  // namespace
}  // namespace foretune::sparse_cpu
