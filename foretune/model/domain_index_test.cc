#include "foretune/model/domain_index.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

// Numbers of a gemm's fields; sizes are near each other, and mostly powers of two times a little.
std::vector<std::int64_t> draw_fields(Rng& rng) {
  std::vector<std::int64_t> fields(8, 0);
  fields[0] = static_cast<std::int64_t>(rng.below(2));
  for (std::size_t i = 1; i <= 3; ++i) {
    fields[i] = (std::int64_t{1} << rng.below(12)) * rng.between(1, 3);
  }
  fields[4] = rng.below(4) == 0 ? rng.between(1, 3) : 1;
  fields[5] = static_cast<std::int64_t>(rng.below(3));
  return fields;
}

ApplicabilityDomain draw_domain(std::size_t points, Rng& rng) {
  ApplicabilityDomain domain;
  // The batch is the same for all points of half of the domains.
  const bool has_batch = rng.below(2) == 0;
  for (std::uint8_t field = 1; field <= 4; ++field) {
    domain.sizes.push_back({.field = field, .per_log2 = 0.3F + static_cast<float>(rng.uniform())});
  }
  domain.labels = {{.field = 5, .seen = 0b011}};
  domain.limit = static_cast<float>(0.02 + rng.uniform());
  for (std::size_t i = 0; i < points; ++i) {
    std::vector<std::int64_t> fields = draw_fields(rng);
    fields[4] = has_batch ? fields[4] : 1;
    for (std::size_t k = 0; k < domain.sizes.size(); ++k) {
      domain.points.push_back(domain.coordinate(k, fields));
    }
  }
  return domain;
}

TEST(DomainIndex, AgreesWithTheDomain) {
  Rng rng(7);
  std::size_t inside = 0;
  std::size_t outside = 0;
  for (const std::size_t points :
       {1U, 2U, 7U, 8U, 9U, 63U, 64U, 65U, 100U, 511U, 513U, 1000U, 1024U}) {
    for (int i = 0; i < 6; ++i) {
      const ApplicabilityDomain domain = draw_domain(points, rng);
      ASSERT_TRUE(domain.validate(8));
      const DomainIndex index(domain);
      for (int k = 0; k < 500; ++k) {
        std::vector<std::int64_t> fields = draw_fields(rng);
        if (rng.below(20) == 0) {
          fields[1 + rng.below(4)] =
              rng.below(2) == 0 ? -5 : std::numeric_limits<std::int64_t>::max();
        }
        const bool is_inside = domain.is_inside(fields);
        ASSERT_EQ(index.is_inside(fields), is_inside) << points << " points";
        ++(is_inside ? inside : outside);
      }
    }
  }
  EXPECT_GT(inside, 3000U);
  EXPECT_GT(outside, 3000U);
}

TEST(DomainIndex, TheOriginOfAPayloadIsNoSize) {
  std::vector<Problem> problems;
  for (int i = 0; i < 20; ++i) {
    problems.push_back(
        Problem::parse(concat("sparse op=spmm rows=", 1000 + 10 * i, " columns=1000 nnz=", 9000 + i,
                              " n=32 origin=", 1234567890123 + i))
            .value());
  }
  const ApplicabilityDomain domain = ApplicabilityDomain::fit(problems);
  const DomainIndex index(domain);
  for (const char* origin : {"0", "77", "4503599627370495"}) {
    const Problem asked =
        Problem::parse(
            concat("sparse op=spmm rows=1050 columns=1000 nnz=9003 n=32 origin=", origin))
            .value();
    EXPECT_TRUE(domain.is_inside(asked.fields())) << origin;
    EXPECT_TRUE(index.is_inside(asked.fields())) << origin;
  }
}

TEST(DomainIndex, PointsOnTheBorderAreInside) {
  ApplicabilityDomain domain{.sizes = {{.field = 1, .per_log2 = 1}, {.field = 2, .per_log2 = 1}},
                             .labels = {},
                             .points = {3, 5, 4, 4},
                             .limit = 1};
  const DomainIndex index(domain);
  for (const std::int64_t m : {4, 8, 16, 32, 64}) {
    for (const std::int64_t n : {8, 16, 32, 64}) {
      const std::vector<std::int64_t> fields{0, m, n};
      EXPECT_EQ(index.is_inside(fields), domain.is_inside(fields)) << m << " " << n;
    }
  }
  EXPECT_TRUE(index.is_inside(std::vector<std::int64_t>{0, 4, 32}));
}

// As a damaged or malicious file may have them.
TEST(DomainIndex, HugeCoordinatesAndLimitsAgreeToo) {
  Rng rng(8);
  constexpr float kHuge = std::numeric_limits<float>::max();
  for (const float limit : {0.0F, 1.0F, 1e20F, kHuge}) {
    for (const float per_log2 : {1e-30F, 1.0F, kHuge}) {
      ApplicabilityDomain domain{
          .sizes = {{.field = 1, .per_log2 = per_log2}, {.field = 2, .per_log2 = 1}},
          .labels = {},
          .points = {},
          .limit = limit};
      for (int i = 0; i < 22; ++i) {
        domain.points.push_back(rng.below(3) == 0 ? kHuge : static_cast<float>(rng.below(9)));
      }
      ASSERT_TRUE(domain.validate(8));
      const DomainIndex index(domain);
      for (int i = 0; i < 200; ++i) {
        const std::vector<std::int64_t> fields = draw_fields(rng);
        ASSERT_EQ(index.is_inside(fields), domain.is_inside(fields)) << limit << " " << per_log2;
      }
    }
  }
}

TEST(DomainIndex, WithoutSizesOnlyLabelsCount) {
  const ApplicabilityDomain domain{
      .sizes = {}, .labels = {{.field = 0, .seen = 0b10}}, .points = {}, .limit = 0};
  const DomainIndex index(domain);
  EXPECT_TRUE(index.is_inside(std::vector<std::int64_t>{1}));
  EXPECT_FALSE(index.is_inside(std::vector<std::int64_t>{0}));
}

}  // namespace
}  // namespace foretune
