#include "foretune/dispatch/sgemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <thread>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/testing/forked_child.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
  int order = FORETUNE_ROW_MAJOR;
  int trans_a = FORETUNE_NO_TRANS;
  int trans_b = FORETUNE_NO_TRANS;
  int m = 1;
  int n = 1;
  int k = 1;
  float alpha = 1;
  float beta = 0;
  int gap = 0;     // added to every leading dimension
  int offset = 0;  // of every pointer from an aligned one, in elements
};

std::string describe(const Case& c) {
  return concat("order ", c.order, " trans ", c.trans_a, " ", c.trans_b, " m ", c.m, " n ", c.n,
                " k ", c.k, " alpha ", c.alpha, " beta ", c.beta, " gap ", c.gap, " offset ",
                c.offset);
}

// A matrix of any order, as BLAS sees it.
struct Matrix {
  Matrix(int order, int rows, int columns, int gap, int offset)
      : row_major(order == FORETUNE_ROW_MAJOR),
        ld(std::max(1, row_major ? columns : rows) + gap),
        start(static_cast<std::size_t>(offset)),
        values(static_cast<std::size_t>(ld) *
                       static_cast<std::size_t>(std::max(1, row_major ? rows : columns)) +
                   start + 1,
               kNan) {}
  float& at(int row, int column) {
    return values[start +
                  static_cast<std::size_t>(row_major ? row * ld + column : column * ld + row)];
  }
  float* data() { return values.data() + start; }
  bool row_major;
  int ld;
  std::size_t start;
  std::vector<float> values;
};

// Compares with the definition; what lies between the rows and behind the end must stay.
void check(const Case& c, Rng& rng) {
  const bool ta = c.trans_a != FORETUNE_NO_TRANS;
  const bool tb = c.trans_b != FORETUNE_NO_TRANS;
  Matrix a(c.order, ta ? c.k : c.m, ta ? c.m : c.k, c.gap, c.offset);
  Matrix b(c.order, tb ? c.n : c.k, tb ? c.k : c.n, c.gap, c.offset);
  Matrix out(c.order, c.m, c.n, c.gap, c.offset);
  const auto fill = [&](Matrix& matrix, int rows, int columns) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        matrix.at(i, j) = static_cast<float>(2 * rng.uniform() - 1);
      }
    }
  };
  fill(a, ta ? c.k : c.m, ta ? c.m : c.k);
  fill(b, tb ? c.n : c.k, tb ? c.k : c.n);
  if (c.beta != 0) {
    fill(out, c.m, c.n);
  }
  if (c.alpha == 0) {  // must not be read
    std::fill(a.values.begin(), a.values.end(), kNan);
  }
  Matrix before = out;
  ASSERT_EQ(foretune_sgemm(c.order, c.trans_a, c.trans_b, c.m, c.n, c.k, c.alpha, a.data(), a.ld,
                           b.data(), b.ld, c.beta, out.data(), out.ld),
            0)
      << describe(c);
  for (int i = 0; i < c.m; ++i) {
    for (int j = 0; j < c.n; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (int p = 0; p < c.k && c.alpha != 0; ++p) {
        const double product = static_cast<double>(ta ? a.at(p, i) : a.at(i, p)) *
                               static_cast<double>(tb ? b.at(j, p) : b.at(p, j));
        sum += product;
        magnitude += std::fabs(product);
      }
      const double input = c.beta == 0 ? 0 : static_cast<double>(before.at(i, j));
      const double expected =
          static_cast<double>(c.alpha) * sum + static_cast<double>(c.beta) * input;
      const double allowed = 0x1p-24 * (3 * c.k + 4) *
                             (std::fabs(static_cast<double>(c.alpha)) * magnitude +
                              std::fabs(static_cast<double>(c.beta) * input));
      ASSERT_LE(std::fabs(static_cast<double>(out.at(i, j)) - expected), allowed)
          << describe(c) << " at (" << i << ", " << j << ")";
      out.at(i, j) = before.at(i, j) = 0;
    }
  }
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    ASSERT_TRUE(out.values[i] == before.values[i] ||
                (std::isnan(out.values[i]) && std::isnan(before.values[i])))
        << describe(c) << ": byte outside of C changed at " << i;
  }
}

template <class T>
T pick(Rng& rng, std::initializer_list<T> values) {
  return *(values.begin() + rng.below(values.size()));
}

Case random_case(Rng& rng) {
  const auto size = [&] {
    return rng.below(3) == 0 ? pick(rng, {0, 1, 1, 2, 3, 16, 17, 64})
                             : static_cast<int>(rng.between(1, 80));
  };
  return {.order = pick(rng, {FORETUNE_ROW_MAJOR, FORETUNE_COLUMN_MAJOR}),
          .trans_a = pick(rng, {FORETUNE_NO_TRANS, FORETUNE_TRANS, FORETUNE_CONJ_TRANS}),
          .trans_b = pick(rng, {FORETUNE_NO_TRANS, FORETUNE_TRANS, FORETUNE_CONJ_TRANS}),
          .m = size(),
          .n = size(),
          .k = size(),
          .alpha = pick(rng, {1.0F, 1.0F, -0.5F, 0.0F}),
          .beta = pick(rng, {0.0F, 1.0F, 0.25F}),
          .gap = static_cast<int>(rng.below(5)),
          .offset = static_cast<int>(rng.below(4))};
}

TEST(SgemmTest, RandomProductsAgreeWithTheDefinition) {
  Rng rng(77);
  for (int trial = 0; trial < 400; ++trial) {
    check(random_case(rng), rng);
    ASSERT_FALSE(HasFatalFailure());
  }
  check({.m = 300, .n = 200, .k = 400, .beta = 0.5F}, rng);
}

TEST(SgemmTest, OneThreadAndManyCallersAreRightToo) {
  EXPECT_EQ(foretune_set_num_threads(1), 1);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([thread] {
        Rng rng(80 + thread);
        for (int trial = 0; trial < 40; ++trial) {
          check(random_case(rng), rng);
        }
      });
    }
  }
  EXPECT_GE(foretune_set_num_threads(0), 1);
}

TEST(SgemmTest, NamesTheFirstWrongArgument) {
  std::vector<float> a(100, 1);
  std::vector<float> b(100, 1);
  std::vector<float> c(100, 1);
  const auto call = [&](int order, int ta, int tb, int m, int n, int k, const float* left, int lda,
                        const float* right, int ldb, float* out, int ldc) {
    const int info = foretune_sgemm(order, ta, tb, m, n, k, 1, left, lda, right, ldb, 0, out, ldc);
    EXPECT_TRUE(std::all_of(c.begin(), c.end(), [](float value) { return value == 1; }));
    return info;
  };
  const int row = FORETUNE_ROW_MAJOR;
  const int no = FORETUNE_NO_TRANS;
  EXPECT_EQ(call(0, no, no, 2, 3, 4, a.data(), 4, b.data(), 3, c.data(), 3), 1);
  EXPECT_EQ(call(row, 0, no, 2, 3, 4, a.data(), 4, b.data(), 3, c.data(), 3), 2);
  EXPECT_EQ(call(row, no, 7, 2, 3, 4, a.data(), 4, b.data(), 3, c.data(), 3), 3);
  EXPECT_EQ(call(row, no, no, -2, 3, 4, a.data(), 4, b.data(), 3, c.data(), 3), 4);
  EXPECT_EQ(call(row, no, no, 2, -3, 4, a.data(), 4, b.data(), 3, c.data(), 3), 5);
  EXPECT_EQ(call(row, no, no, 2, 3, -4, a.data(), 4, b.data(), 3, c.data(), 3), 6);
  EXPECT_EQ(call(row, no, no, 2, 3, 4, nullptr, 4, b.data(), 3, c.data(), 3), 8);
  EXPECT_EQ(call(row, no, no, 2, 3, 4, a.data(), 3, b.data(), 3, c.data(), 3), 9);
  EXPECT_EQ(call(row, FORETUNE_TRANS, no, 2, 3, 4, a.data(), 1, b.data(), 3, c.data(), 3), 9);
  EXPECT_EQ(call(FORETUNE_COLUMN_MAJOR, no, no, 4, 3, 2, a.data(), 3, b.data(), 3, c.data(), 4), 9);
  EXPECT_EQ(call(row, no, no, 2, 3, 4, a.data(), 4, nullptr, 3, c.data(), 3), 10);
  EXPECT_EQ(call(row, no, no, 2, 3, 4, a.data(), 4, b.data(), 2, c.data(), 3), 11);
  EXPECT_EQ(call(row, no, no, 2, 3, 4, a.data(), 4, b.data(), 3, nullptr, 3), 13);
  EXPECT_EQ(call(row, no, no, 2, 3, 4, a.data(), 4, b.data(), 3, c.data(), 2), 14);
}

TEST(SgemmTest, RefusesAnOutputThatIsAnInputButNotNeighboursInOneArray) {
  std::vector<float> all(64 * 64, 1);
  const auto product = [&](float* c, const float* a, const float* b) {
    return foretune_sgemm(FORETUNE_ROW_MAJOR, FORETUNE_NO_TRANS, FORETUNE_NO_TRANS, 16, 16, 16, 1,
                          a, 64, b, 64, 0, c, 64);
  };
  float* const first = all.data();
  EXPECT_EQ(product(first, first, first + 32), FORETUNE_SGEMM_OVERLAP);
  EXPECT_EQ(product(first, first + 32, first + 15), FORETUNE_SGEMM_OVERLAP);
  EXPECT_EQ(product(first + 15 * 64, first + 32, first), FORETUNE_SGEMM_OVERLAP);
  EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](float value) { return value == 1; }));
  EXPECT_EQ(product(first, first + 16, first + 32), 0);
  EXPECT_EQ(product(first + 16 * 64, first + 48, first + 32), 0);
  EXPECT_EQ(all[0], 16);
  // One column of a wide matrix between the rows of another.
  EXPECT_EQ(foretune_sgemm(FORETUNE_ROW_MAJOR, FORETUNE_NO_TRANS, FORETUNE_NO_TRANS, 20, 1, 3, 1,
                           first, 64, first + 40, 64, 0, first + 3, 64),
            0);
  EXPECT_EQ(foretune_sgemm(FORETUNE_ROW_MAJOR, FORETUNE_NO_TRANS, FORETUNE_NO_TRANS, 20, 1, 3, 1,
                           first, 64, first + 40, 64, 0, first + 2, 64),
            FORETUNE_SGEMM_OVERLAP);
}

// Squares of small whole numbers: exact in every order.
struct Product {
  explicit Product(int product_size)
      : size(product_size), a(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {
    Rng rng(23);
    for (float& value : a) {
      value = static_cast<float>(rng.between(-4, 4));
    }
    EXPECT_EQ(multiply(expected), 0);
  }

  [[nodiscard]] int multiply(std::vector<float>& out) const {
    out.assign(a.size(), kNan);
    return foretune_sgemm(FORETUNE_ROW_MAJOR, FORETUNE_NO_TRANS, FORETUNE_NO_TRANS, size, size,
                          size, 1, a.data(), size, a.data(), size, 0, out.data(), size);
  }

  [[nodiscard]] bool is_right() const {
    std::vector<float> out;
    return multiply(out) == 0 && out == expected;
  }

  int size;
  std::vector<float> a;
  std::vector<float> expected;
};

class SgemmInAForkedChild : public testing::Test {
 protected:
  void SetUp() override {
    if (!testing_support::kChildMayMakeThreads) {
      GTEST_SKIP() << "this sanitizer forbids threads in a child";
    }
    ASSERT_GE(foretune_set_num_threads(2), 1);
  }
  void TearDown() override { foretune_set_num_threads(0); }
};

TEST_F(SgemmInAForkedChild, IsRight) {
  const Product known(256);
  EXPECT_TRUE(testing_support::is_true_in_child([&] {
    const Product first_met_here(200);
    return known.is_right() && first_met_here.is_right();
  }));
  EXPECT_TRUE(known.is_right());
}

TEST_F(SgemmInAForkedChild, IsRightWhileTheParentMultiplies) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer's allocator may be locked in a forked child";
#endif
  const Product large(256);
  const Product small(24);
  std::atomic<int> size{25};
  const testing_support::Busy one([&] { EXPECT_TRUE(large.is_right()); });
  const testing_support::Busy other([&] { EXPECT_TRUE(small.is_right()); });
  // New shapes all the time: decisions are made at the moment of the fork.
  const testing_support::Busy third(
      [&] { static_cast<void>(Product(size.fetch_add(1) % 400 + 1)); });
  for (int fork = 0; fork < 60; ++fork) {
    ASSERT_TRUE(testing_support::is_true_in_child([&] {
      const Product first_met_here(fork % 5 == 0 ? 401 + fork : small.size);
      return large.is_right() && small.is_right() && first_met_here.is_right();
    })) << fork;
  }
}

}  // namespace
}  // namespace foretune
