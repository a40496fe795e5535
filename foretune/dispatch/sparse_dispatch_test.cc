// Tests products of sparse matrices in memory against sums in double precision.
#include "foretune/dispatch/sparse_dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/hardware/cpu.h"
#include "foretune/sparse/testing/random_matrix.h"

namespace foretune {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing_support::TemporaryFolder;

std::unique_ptr<SparseDispatcher> dispatcher_with(int threads, int measure_top = 0) {
  CpuDispatchOptions options;
  options.threads = threads;
  options.dispatch.measure_top = measure_top;
  options.dispatch.keep_trials = measure_top > 1;
  auto made = SparseDispatcher::for_this_cpu(std::move(options));
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

template <class T>
std::vector<T> drawn(std::size_t count, Rng& rng) {
  std::vector<T> out(count);
  for (T& value : out) {
    value = static_cast<T>(2 * rng.uniform() - 1);
  }
  return out;
}

template <class T>
sparse::Csr<T> copy_of(const sparse::Csr<T>& csr) {
  return sparse::csr_from_arrays<T, std::int32_t>(
             csr.rows, csr.columns,
             std::vector<std::int32_t>(csr.starts.view().begin(), csr.starts.view().end()),
             csr.column_of.view(), csr.values.view())
      .value();
}

// Checks all three products of a matrix, for a width.
template <class T>
void check_products(SparseMatrix<T>& matrix, std::int64_t n, Rng& rng) {
  const sparse::Csr<T>& csr = matrix.csr();
  const auto rows = static_cast<std::size_t>(csr.rows);
  const auto columns = static_cast<std::size_t>(csr.columns);
  const auto width = static_cast<std::size_t>(n);
  const double unit = sizeof(T) == 8 ? 1e-14 : 1e-5;
  const std::vector<T> b = drawn<T>(columns * width, rng);
  const std::vector<T> left = drawn<T>(rows * width, rng);
  std::vector<T> y(rows, T{77});
  std::vector<T> c(rows * width, T{77});
  std::vector<T> d(static_cast<std::size_t>(csr.size()), T{77});
  ASSERT_TRUE(matrix.spmv(b.data(), y.data()));
  ASSERT_TRUE(matrix.spmm(n, b.data(), c.data()));
  ASSERT_TRUE(matrix.sddmm(n, left.data(), b.data(), d.data()));
  for (std::size_t row = 0; row < rows; ++row) {
    double vector_sum = 0;
    std::vector<double> sums(width);
    double size = 1;
    for (auto i = static_cast<std::size_t>(csr.starts[row]);
         i < static_cast<std::size_t>(csr.starts[row + 1]); ++i) {
      const auto column = static_cast<std::size_t>(csr.column_of[i]);
      const auto value = static_cast<double>(csr.values[i]);
      size += std::abs(value) * (static_cast<double>(width) + 1);
      vector_sum += value * static_cast<double>(b[column]);
      double dot = 0;
      for (std::size_t j = 0; j < width; ++j) {
        sums[j] += value * static_cast<double>(b[column * width + j]);
        dot +=
            static_cast<double>(left[row * width + j]) * static_cast<double>(b[column * width + j]);
      }
      ASSERT_NEAR(static_cast<double>(d[i]), value * dot, unit * size) << "sddmm, entry " << i;
    }
    ASSERT_NEAR(static_cast<double>(y[row]), vector_sum, unit * size) << "spmv, row " << row;
    for (std::size_t j = 0; j < width; ++j) {
      ASSERT_NEAR(static_cast<double>(c[row * width + j]), sums[j], unit * size)
          << "spmm, row " << row << ", column " << j;
    }
  }
}

template <class T>
void check_random_matrices(SparseDispatcher& dispatcher, std::uint64_t seed) {
  SCOPED_TRACE(concat("seed ", seed));
  Rng rng(seed);
  for (int trial = 0; trial < 12; ++trial) {
    auto csr = sparse::csr_from<T>(sparse::random_matrix(trial % 4 == 0 ? 500 : 50, rng));
    ASSERT_TRUE(csr) << csr.error().message;
    const auto matrix = dispatcher.matrix(*std::move(csr));
    ASSERT_TRUE(matrix) << matrix.error().message;
    for (const std::int64_t n : {std::int64_t{1}, rng.between(2, 140)}) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        ASSERT_NO_FATAL_FAILURE(check_products(**matrix, n, rng)) << "n=" << n;
      }
    }
  }
}

TEST(SparseDispatchTest, ProductsAreRight) {
  const auto dispatcher = dispatcher_with(1);
  check_random_matrices<float>(*dispatcher, 11);
  check_random_matrices<double>(*dispatcher, 12);
}

TEST(SparseDispatchTest, ProductsAreRightWhileConfigsAreOnTrial) {
  const auto dispatcher = dispatcher_with(0, 6);
  check_random_matrices<float>(*dispatcher, 13);
  check_random_matrices<double>(*dispatcher, 14);
}

sparse::Csr<float> band(std::int64_t rows) {
  sparse::Coordinates band;
  band.extents = {rows, rows, 1};
  for (std::int32_t row = 0; row < rows; ++row) {
    for (const std::int32_t column : {row - 1, row, row + 1}) {
      if (column >= 0 && column < rows) {
        band.indices[0].push_back(row);
        band.indices[1].push_back(column);
        band.values.push_back(row + 1);
      }
    }
  }
  return sparse::csr_from<float>(band).value();
}

TEST(SparseDispatchTest, TrialsEndAndStay) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "trials.ftd";
  const auto dispatcher = dispatcher_with(1, 4);
  const auto matrix = dispatcher->matrix(band(300)).value();
  Rng rng(3);
  for (int call = 0; call < 4 * 3 + 1; ++call) {
    ASSERT_NO_FATAL_FAILURE(check_products(*matrix, 16, rng));
  }
  const Decision decision = matrix->decision(SparseOperation::kSpmm, 16).value();
  EXPECT_TRUE(decision.is_settled);
  EXPECT_EQ(decision.source, ChoiceSource::kMeasured) << decision.text();
  EXPECT_GT(dispatcher->dispatcher().append_trials(path, "sparse-cpu").value(), 3U);
  // A matrix of the same pattern takes the choice, one of another pattern does not.
  const auto later = dispatcher_with(1);
  EXPECT_GT(later->dispatcher().load_choices(path).value(), 0U);
  const auto same = later->matrix(copy_of(matrix->csr())).value();
  EXPECT_EQ(same->decision(SparseOperation::kSpmm, 16)->source, ChoiceSource::kRemembered);
  EXPECT_EQ(same->decision(SparseOperation::kSpmm, 16)->config_text, decision.config_text);
  const auto other = later->matrix(band(301)).value();
  EXPECT_NE(other->decision(SparseOperation::kSpmm, 16)->source, ChoiceSource::kRemembered);
  ASSERT_NO_FATAL_FAILURE(check_products(*same, 16, rng));
}

TEST(SparseDispatchTest, ManyThreadsMayMultiply) {
  const auto dispatcher = dispatcher_with(0, 3);
  const auto matrix = dispatcher->matrix(band(2000)).value();
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Rng rng(thread);
      for (int call = 0; call < 8; ++call) {
        check_products(*matrix, call % 2 == 0 ? 32 : 33, rng);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(SparseDispatchTest, MoreWidthsThanAreKept) {
  const auto dispatcher = dispatcher_with(1);
  const auto matrix = dispatcher->matrix(band(40)).value();
  Rng rng(5);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t n = 2; n < 24; ++n) {
      ASSERT_NO_FATAL_FAILURE(check_products(*matrix, n, rng));
    }
  }
}

TEST(SparseDispatchTest, WithoutNonZerosTheResultIsZero) {
  const auto dispatcher = dispatcher_with(1);
  sparse::Coordinates empty;
  empty.extents = {3, 2, 1};
  const auto matrix = dispatcher->matrix(sparse::csr_from<float>(empty).value()).value();
  const std::vector<float> b(8, 1);
  std::vector<float> c(12, 5);
  ASSERT_TRUE(matrix->spmm(4, b.data(), c.data()));
  EXPECT_THAT(c, Each(0.0F));
  EXPECT_FALSE(matrix->decision(SparseOperation::kSpmm, 4));
}

TEST(SparseDispatchTest, BadOperandsAreRefused) {
  const auto dispatcher = dispatcher_with(1);
  const auto matrix = dispatcher->matrix(band(10)).value();
  std::vector<float> values(100);
  EXPECT_EQ(matrix->spmv(nullptr, values.data()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(matrix->spmv(values.data(), values.data() + 9).error().message, "x and y overlap");
  EXPECT_TRUE(matrix->spmv(values.data(), values.data() + 10));
  EXPECT_EQ(matrix->spmm(0, values.data(), values.data() + 50).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(matrix->spmm(std::int64_t{1} << 40U, values.data(), values.data() + 50).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(matrix->spmm(5, values.data(), values.data() + 49).error().message, "b and c overlap");
  EXPECT_EQ(matrix->sddmm(2, values.data(), values.data() + 20, values.data() + 30).error().message,
            "d overlaps b or c");
}

// Returns a matrix of blocks of 4 x 4, which packed forms suit.
sparse::Csr<float> blocks(std::int32_t lines) {
  sparse::Coordinates places;
  places.extents = {4 * lines, 4 * lines, 1};
  for (std::int32_t line = 0; line < lines; ++line) {
    for (const std::int32_t other : {line, (line * 7) % lines, (line * 37) % lines}) {
      for (std::int32_t inside = 0; inside < 16; ++inside) {
        places.indices[0].push_back(4 * line + inside / 4);
        places.indices[1].push_back(4 * other + inside % 4);
        places.values.push_back(inside + 1);
      }
    }
  }
  return sparse::csr_from<float>(places).value();
}

TEST(SparseDispatchTest, TheShippedModelPicksForItsMachine) {
  const auto model = default_cpu_model("sparse-cpu", read_cpu_facts().isa, 1);
  if (!model) {
    GTEST_SKIP() << "no model is shipped for this CPU";
  }
  const auto dispatcher = dispatcher_with(1);
  const auto matrix = dispatcher->matrix(blocks(1500)).value();
  std::size_t picked = 0;
  for (const auto& [operation, n] : {std::pair(SparseOperation::kSpmv, std::int64_t{1}),
                                     std::pair(SparseOperation::kSpmm, std::int64_t{32}),
                                     std::pair(SparseOperation::kSpmm, std::int64_t{128}),
                                     std::pair(SparseOperation::kSddmm, std::int64_t{64})}) {
    picked += matrix->decision(operation, n)->source == ChoiceSource::kModel ? 1U : 0U;
  }
  EXPECT_GE(picked, 3U);
  Rng rng(9);
  ASSERT_NO_FATAL_FAILURE(check_products(*matrix, 32, rng));
}

TEST(SparseDispatchTest, DecisionsOutliveTheirMatrix) {
  auto model = default_cpu_model("sparse-cpu", CpuIsa::kAvx512, 1);
  ASSERT_TRUE(model);
  CpuDispatchOptions options;
  options.threads = 1;
  options.model = *std::move(model);
  options.dispatch.measure_top = 2;
  options.dispatch.keep_trials = true;
  const auto dispatcher = SparseDispatcher::for_this_cpu(std::move(options)).value();
  Rng rng(11);
  std::string first;
  for (int time = 0; time < 3; ++time) {
    const auto matrix = dispatcher->matrix(blocks(60)).value();
    const auto same = dispatcher->matrix(blocks(60)).value();
    for (int call = 0; call < 8; ++call) {
      ASSERT_NO_FATAL_FAILURE(check_products(*matrix, 16, rng));
      ASSERT_NO_FATAL_FAILURE(check_products(*same, 16, rng));
    }
    const Decision decision = same->decision(SparseOperation::kSpmm, 16).value();
    EXPECT_TRUE(decision.is_settled);
    first = first.empty() ? decision.config_text : first;
    EXPECT_EQ(decision.config_text, first);
  }
  const TemporaryFolder folder;
  EXPECT_TRUE(dispatcher->dispatcher().append_trials(folder.path() / "trials.ftd", "sparse-cpu"));
}

TEST(SparseDispatchTest, AMatrixOfOneUseRunsTheTextbookConfig) {
  const auto dispatcher = dispatcher_with(1, 4);
  const auto matrix = dispatcher->matrix(blocks(100), SparseUse::kOnce).value();
  Rng rng(10);
  for (int call = 0; call < 3; ++call) {
    ASSERT_NO_FATAL_FAILURE(check_products(*matrix, 32, rng));
  }
  for (const SparseOperation operation : {SparseOperation::kSpmm, SparseOperation::kSddmm}) {
    const Decision decision = matrix->decision(operation, 32).value();
    EXPECT_THAT(decision.text(), StartsWith("default: isa="));
    EXPECT_THAT(decision.config_text, HasSubstr("format=csr"));
    EXPECT_TRUE(decision.is_settled);
  }
}

}  // namespace
}  // namespace foretune
