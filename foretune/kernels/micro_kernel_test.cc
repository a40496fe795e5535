#include "foretune/kernels/micro_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSentinel = 12345.0F;
constexpr std::array kLoops{KernelLoop::kPlain, KernelLoop::kUnrolled, KernelLoop::kPrefetching};

float random_value(Rng& rng) { return static_cast<float>(2 * rng.uniform() - 1); }

struct Case {
  int rows = 1;
  int columns = 1;
  std::ptrdiff_t k = 1;
  std::ptrdiff_t gap = 0;  // elements between the end of a row and the next one
  float alpha = 1;
  float beta = 0;
  bool relu = false;
  bool prefetch = false;
  enum class Input { kOutput, kOther, kBias } input = Input::kOutput;
  GuardSide side = GuardSide::kEnd;
};

std::string describe(const KernelSet& set, const MicroKernelShape& shape, const Case& c) {
  return concat(to_string(set.isa), " ", shape.rows, "x", shape.vectors, " vectors, columns ",
                c.columns, " a_by_columns ", shape.a_by_columns, " loop ",
                static_cast<int>(shape.loop), " tail ", shape.tail, " k ", c.k, " gap ", c.gap,
                " alpha ", c.alpha, " beta ", c.beta, " relu ", c.relu, " input ",
                static_cast<int>(c.input));
}

std::size_t span_of(std::ptrdiff_t rows, std::ptrdiff_t stride, std::ptrdiff_t columns) {
  return rows == 0 ? 0 : static_cast<std::size_t>((rows - 1) * stride + columns);
}

// Fills a matrix, and the gaps between its rows with a value that must neither be used nor changed.
void fill_matrix(std::span<float> values, std::ptrdiff_t stride, std::ptrdiff_t columns, float gap,
                 Rng& rng) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_gap = static_cast<std::ptrdiff_t>(i) % stride >= columns;
    values[i] = is_gap ? gap : random_value(rng);
  }
}

// Runs one kernel between guard pages and compares every element with the definition. Dot kernels
// take B by columns.
void check_kernel(const KernelSet& set, const MicroKernelShape& shape, const Case& c, Rng& rng,
                  bool is_dot = false) {
  const MicroKernel kernel = is_dot ? set.find_dot(c.rows, c.columns) : set.find(shape);
  ASSERT_NE(kernel, nullptr);
  const std::ptrdiff_t a_length = shape.a_by_columns ? c.rows : c.k;
  const std::ptrdiff_t a_count = shape.a_by_columns ? c.k : c.rows;
  const std::ptrdiff_t a_stride = a_length + c.gap + (shape.a_by_columns ? 0 : 1);
  const std::ptrdiff_t b_length = is_dot ? c.k : c.columns;
  const std::ptrdiff_t b_count = is_dot ? c.columns : c.k;
  const std::ptrdiff_t b_stride = b_length + c.gap + (is_dot ? 1 : 0);
  const std::ptrdiff_t c_stride = c.columns + 2 * c.gap;
  GuardedBuffer a(span_of(c.k == 0 ? 0 : a_count, a_stride, a_length), c.side);
  GuardedBuffer b(span_of(c.k == 0 ? 0 : b_count, b_stride, b_length), c.side);
  GuardedBuffer out(span_of(c.rows, c_stride, c.columns), c.side);
  GuardedBuffer bias(static_cast<std::size_t>(c.columns), c.side);
  GuardedBuffer other(span_of(c.rows, c_stride, c.columns), c.side);
  fill_matrix(a.view(), a_stride, a_length, kNan, rng);
  fill_matrix(b.view(), b_stride, b_length, kNan, rng);
  fill_matrix(out.view(), c_stride, c.columns, kSentinel, rng);
  fill_matrix(bias.view(), c.columns, c.columns, kNan, rng);
  fill_matrix(other.view(), c_stride, c.columns, kNan, rng);

  const float* c_in = out.data();
  std::ptrdiff_t c_in_stride = c_stride;
  if (c.input == Case::Input::kOther) {
    c_in = other.data();
  } else if (c.input == Case::Input::kBias) {
    c_in = bias.data();
    c_in_stride = 0;
  }
  const auto alpha = static_cast<double>(c.alpha);
  const auto beta = static_cast<double>(c.beta);
  std::vector<double> expected;
  std::vector<double> allowed;
  for (std::ptrdiff_t i = 0; i < c.rows; ++i) {
    for (std::ptrdiff_t j = 0; j < c.columns; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (std::ptrdiff_t p = 0; p < c.k; ++p) {
        const float left = a.data()[shape.a_by_columns ? p * a_stride + i : i * a_stride + p];
        const double product =
            static_cast<double>(left) *
            static_cast<double>(b.data()[is_dot ? j * b_stride + p : p * b_stride + j]);
        sum += product;
        magnitude += std::fabs(product);
      }
      const double input = beta == 0 ? 0.0 : static_cast<double>(c_in[i * c_in_stride + j]);
      const double value = alpha * sum + beta * input;
      expected.push_back(c.relu ? std::max(0.0, value) : value);
      magnitude = std::fabs(alpha) * magnitude + std::fabs(beta * input);
      allowed.push_back(0x1p-24 * static_cast<double>(c.k + 3) * magnitude);
    }
  }
  if (c.beta == 0) {
    // The kernel must overwrite these values without reading them.
    for (std::ptrdiff_t i = 0; i < c.rows; ++i) {
      std::fill_n(out.data() + i * c_stride, c.columns, kNan);
    }
    c_in = nullptr;
  }
  const int last = c.columns - (shape.vectors - 1) * set.lanes;
  kernel({.a = a.data(),
          .a_stride = a_stride,
          .b = b.data(),
          .b_stride = b_stride,
          .c_in = c_in,
          .c_in_stride = c_in_stride,
          .c = out.data(),
          .c_stride = c_stride,
          .k = c.k,
          .alpha = c.alpha,
          .beta = c.beta,
          .floor = c.relu ? 0.0F : -std::numeric_limits<float>::infinity(),
          .rows_ahead = 3,
          .prefetch_c = c.prefetch,
          .last_columns = last});
  std::size_t at = 0;
  for (std::ptrdiff_t i = 0; i < c.rows; ++i) {
    for (std::ptrdiff_t j = 0; j < c.columns; ++j, ++at) {
      const double error =
          std::fabs(static_cast<double>(out.data()[i * c_stride + j]) - expected[at]);
      ASSERT_TRUE(error <= allowed[at])
          << describe(set, shape, c) << " at (" << i << ", " << j
          << "): " << out.data()[i * c_stride + j] << " for " << expected[at];
    }
  }
  for (std::size_t i = 0; i < out.view().size(); ++i) {
    if (static_cast<std::ptrdiff_t>(i) % c_stride >= c.columns) {
      ASSERT_EQ(out.view()[i], kSentinel) << describe(set, shape, c) << " wrote between rows";
    }
  }
}

class MicroKernelTest : public testing::TestWithParam<CpuIsa> {};

// Tests every kernel, every tail, both orders of A, and several depths, strides and scalars.
TEST_P(MicroKernelTest, AgreesWithTheDefinitionBetweenGuardPages) {
  const KernelSet* set = kernel_set(GetParam());
  if (set == nullptr) {
    GTEST_SKIP() << kernel_set_support(GetParam()).reason();
  }
  constexpr std::uint64_t kSeed = 20240611;
  RecordProperty("seed", static_cast<int>(kSeed));
  Rng rng(kSeed);
  const std::vector<std::ptrdiff_t> depths{0, 1, 2, 5, 16};
  const std::vector<float> scalars{0.0F, 1.0F, -0.75F};
  int cases = 0;
  for (int vectors = 1; vectors <= kMaxKernelVectors; ++vectors) {
    for (int rows = 1; rows <= max_kernel_rows(set->isa, vectors); ++rows) {
      for (const bool by_columns : {false, true}) {
        for (int last = 1; last <= set->lanes; ++last) {
          // A kernel for tails must also take a full last vector.
          for (const bool tail : {true, false}) {
            if (!tail && last < set->lanes) {
              continue;
            }
            for (std::size_t t = 0; t < depths.size() * scalars.size(); ++t) {
              Case c;
              c.rows = rows;
              c.columns = (vectors - 1) * set->lanes + last;
              c.k = depths[t / scalars.size()];
              c.gap = static_cast<std::ptrdiff_t>(rng.below(3)) * 3;
              c.alpha = scalars[1 + rng.below(2)];
              c.beta = scalars[t % scalars.size()];
              c.input = static_cast<Case::Input>(rng.below(3));
              c.side = rng.below(2) == 0 ? GuardSide::kEnd : GuardSide::kStart;
              c.relu = rng.below(2) == 0;
              c.prefetch = rng.below(2) == 0;
              for (const KernelLoop loop : kLoops) {
                check_kernel(*set,
                             {.rows = rows,
                              .vectors = vectors,
                              .a_by_columns = by_columns,
                              .tail = tail,
                              .loop = loop},
                             c, rng);
                if (HasFatalFailure()) {
                  return;
                }
                ++cases;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(cases, 500);
}

TEST_P(MicroKernelTest, DotKernelsAgreeWithTheDefinitionBetweenGuardPages) {
  const KernelSet* set = kernel_set(GetParam());
  if (set == nullptr) {
    GTEST_SKIP() << kernel_set_support(GetParam()).reason();
  }
  constexpr std::uint64_t kSeed = 7;
  RecordProperty("seed", static_cast<int>(kSeed));
  Rng rng(kSeed);
  int cases = 0;
  for (int columns = 1; columns <= kMaxDotColumns; ++columns) {
    ASSERT_GE(max_dot_rows(set->isa, columns), 1);
    for (int rows = 1; rows <= max_dot_rows(set->isa, columns); ++rows) {
      for (std::ptrdiff_t k = 0; k <= 3 * set->lanes + 1; ++k) {
        for (const float beta : {0.0F, 1.0F, -0.75F}) {
          Case c;
          c.rows = rows;
          c.columns = columns;
          c.k = k;
          c.gap = static_cast<std::ptrdiff_t>(rng.below(3)) * 3;
          c.alpha = rng.below(2) == 0 ? 1.0F : -0.5F;
          c.beta = beta;
          c.relu = rng.below(2) == 0;
          c.input = static_cast<Case::Input>(rng.below(3));
          c.side = rng.below(2) == 0 ? GuardSide::kEnd : GuardSide::kStart;
          check_kernel(*set, {}, c, rng, true);
          if (HasFatalFailure()) {
            return;
          }
          ++cases;
        }
      }
    }
    EXPECT_EQ(set->find_dot(max_dot_rows(set->isa, columns) + 1, columns), nullptr);
  }
  EXPECT_EQ(set->find_dot(0, 1), nullptr);
  EXPECT_EQ(set->find_dot(1, kMaxDotColumns + 1), nullptr);
  EXPECT_GT(cases, 500);
}

TEST_P(MicroKernelTest, TablesAreCompleteUpToTheRegisterBudget) {
  const KernelSet* set = kernel_set(GetParam());
  if (set == nullptr) {
    GTEST_SKIP() << kernel_set_support(GetParam()).reason();
  }
  EXPECT_EQ(set->isa, GetParam());
  EXPECT_EQ(set->lanes, kernel_limits(GetParam()).lanes);
  for (int vectors = 1; vectors <= kMaxKernelVectors; ++vectors) {
    const int max_rows = max_kernel_rows(set->isa, vectors);
    EXPECT_GE(max_rows, 1);
    if (vectors > 1) {
      EXPECT_LE(max_rows, max_kernel_rows(set->isa, vectors - 1))
          << "the edge of a block must have kernels wherever the block has";
    }
    for (int rows = 1; rows <= kMaxKernelRows; ++rows) {
      for (const bool by_columns : {false, true}) {
        for (const bool tail : {false, true}) {
          for (const KernelLoop loop : kLoops) {
            EXPECT_EQ(set->find({rows, vectors, by_columns, tail, loop}) != nullptr,
                      rows <= max_rows);
          }
        }
      }
    }
  }
  EXPECT_EQ(set->find({.rows = 0}), nullptr);
  EXPECT_EQ(set->find({.rows = 1, .vectors = 9}), nullptr);
  EXPECT_EQ(set->find({.rows = -1, .vectors = -1}), nullptr);
}

TEST_P(MicroKernelTest, ANanStaysOneBelowAFloor) {
  const KernelSet* set = kernel_set(GetParam());
  if (set == nullptr) {
    GTEST_SKIP() << kernel_set_support(GetParam()).reason();
  }
  const std::vector<float> b(static_cast<std::size_t>(set->lanes), 1.0F);
  std::vector<float> c(static_cast<std::size_t>(2 * set->lanes), 7.0F);
  const std::array<float, 2> a{kNan, -1.0F};
  set->find({.rows = 2})({.a = a.data(),
                          .a_stride = 1,
                          .b = b.data(),
                          .c = c.data(),
                          .c_stride = set->lanes,
                          .k = 1,
                          .floor = 0});
  for (int j = 0; j < set->lanes; ++j) {
    EXPECT_TRUE(std::isnan(c[static_cast<std::size_t>(j)]));
    EXPECT_EQ(c[static_cast<std::size_t>(set->lanes + j)], 0.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, MicroKernelTest,
                         testing::Values(CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512),
                         [](const auto& isa) { return std::string(to_string(isa.param)); });

TEST(KernelSetTest, BestInstructionSetHasKernelsAndHigherOnesSayWhyNot) {
  EXPECT_NE(kernel_set(CpuIsa::kGeneric), nullptr);
  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    const Support support = kernel_set_support(isa);
    EXPECT_EQ(kernel_set(isa) != nullptr, static_cast<bool>(support));
    if (!support) {
      EXPECT_FALSE(support.reason().empty());
    }
  }
}

}  // namespace
}  // namespace foretune
