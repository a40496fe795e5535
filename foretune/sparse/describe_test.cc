#include "foretune/sparse/describe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/sparse/testing/random_matrix.h"

namespace foretune::sparse {
namespace {

std::size_t bucket_of(std::int64_t length) {
  std::size_t bucket = 0;
  for (; length > 0; length /= 2) {
    ++bucket;
  }
  return bucket;
}

LineLengths lengths_of(const Places& places, std::int64_t lines, bool of_rows) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(lines));
  for (const auto& [place, value] : places) {
    ++counts[static_cast<std::size_t>(of_rows ? place.first : place.second)];
  }
  LineLengths out;
  for (const std::int64_t count : counts) {
    ++out.counts[bucket_of(count)];
    out.longest = std::max(out.longest, count);
    out.mean += static_cast<double>(count) / static_cast<double>(lines);
  }
  for (const std::int64_t count : counts) {
    const double off = static_cast<double>(count) - out.mean;
    out.deviation += off * off / static_cast<double>(lines);
  }
  out.deviation = std::sqrt(out.deviation);
  return out;
}

void expect_same(const LineLengths& found, const LineLengths& wanted) {
  EXPECT_EQ(found.counts, wanted.counts);
  EXPECT_EQ(found.longest, wanted.longest);
  EXPECT_NEAR(found.mean, wanted.mean, 1e-9);
  EXPECT_NEAR(found.deviation, wanted.deviation, 1e-6);
}

// Computes everything again from a map of the places.
void expect_described(const Csr<float>& matrix, const MatrixDescription& found) {
  const Places places = places_of(matrix);
  const auto size = static_cast<double>(places.size());
  expect_same(found.row_lengths, lengths_of(places, matrix.rows, true));
  expect_same(found.column_lengths, lengths_of(places, matrix.columns, false));
  for (std::size_t side = 0; side < kBlockSides; ++side) {
    const std::int64_t extent = std::int64_t{2} << side;
    std::set<std::pair<std::int64_t, std::int64_t>> blocks;
    for (const auto& [place, value] : places) {
      blocks.insert({place.first / extent, place.second / extent});
    }
    const double area = static_cast<double>(blocks.size()) * static_cast<double>(extent * extent);
    EXPECT_NEAR(found.block_fill[side].value, places.empty() ? 0 : size / area, 1e-12) << extent;
    EXPECT_EQ(found.block_fill[side].error, 0);
  }
  std::int64_t bandwidth = 0;
  double distance = 0;
  double overlap = 0;
  double runs = 0;
  double diagonals = 0;
  std::array<float, kDensityCells * kDensityCells> density{};
  for (const auto& [place, value] : places) {
    const auto [row, column] = place;
    bandwidth = std::max(bandwidth, std::abs(row - column));
    distance += static_cast<double>(std::abs(row - column));
    overlap += places.contains({row - 1, column}) ? 1 : 0;
    runs += places.contains({row, column - 1}) ? 1 : 0;
    diagonals += places.contains({row - 1, column - 1}) ? 1 : 0;
    ++density[static_cast<std::size_t>(row * 64 / matrix.rows * 64 + column * 64 / matrix.columns)];
  }
  EXPECT_EQ(found.size, static_cast<std::int64_t>(places.size()));
  EXPECT_EQ(found.bandwidth, bandwidth);
  if (!places.empty()) {
    EXPECT_NEAR(found.mean_distance.value, distance / size, 1e-9);
    EXPECT_NEAR(found.row_overlap.value, overlap / size, 1e-12);
    EXPECT_NEAR(found.run_share.value, runs / size, 1e-12);
    EXPECT_NEAR(found.diagonal_share.value, diagonals / size, 1e-12);
  }
  for (std::size_t cell = 0; cell < density.size(); ++cell) {
    EXPECT_NEAR(found.density[cell], density[cell], 1e-3F) << cell;
  }
  EXPECT_EQ(found.density_error, 0);
}

TEST(DescribeTest, IsExact) {
  constexpr std::uint64_t kSeed = 41;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int trial = 0; trial < 300 && !HasFailure(); ++trial) {
    SCOPED_TRACE(concat("trial ", trial));
    const Csr<float> matrix =
        csr_from<float>(random_matrix(trial % 10 == 0 ? 500 : 100, rng)).value();
    expect_described(matrix, describe(matrix.pattern()).value());
    // So few rows are not sampled.
    expect_described(matrix, describe_sampled(matrix.pattern(), 3).value());
  }
}

// A band of changing width, with blocks and scattered non-zeros.
Csr<float> large_matrix(std::int64_t rows, Rng& rng) {
  Coordinates out;
  out.extents = {rows, rows, 1};
  const auto put = [&](std::int64_t row, std::int64_t column) {
    out.indices[0].push_back(static_cast<std::int32_t>(row));
    out.indices[1].push_back(
        static_cast<std::int32_t>(std::clamp<std::int64_t>(column, 0, rows - 1)));
    out.values.push_back(1);
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = rng.between(0, 2 + 10 * row / rows); i > 0; --i) {
      put(row, row / 4 * 4 + rng.between(-8, 8));
    }
    if (rng.below(2) == 0) {
      put(row, rng.between(0, rows - 1));
    }
  }
  return csr_from<float>(out).value();
}

TEST(DescribeTest, SamplesStateTheirErrors) {
  Rng rng(43);
  const Csr<float> matrix = large_matrix(70000, rng);
  const MatrixDescription exact = describe(matrix.pattern()).value();
  constexpr int kSamples = 40;
  double worst = 0;
  double squares = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    const MatrixDescription found =
        describe_sampled(matrix.pattern(), static_cast<std::uint64_t>(sample)).value();
    EXPECT_NEAR(found.looked_at, 1.0 / 8, 0.01);
    EXPECT_EQ(found.row_lengths.counts, exact.row_lengths.counts);
    EXPECT_EQ(found.column_lengths.counts, exact.column_lengths.counts);
    EXPECT_EQ(found.bandwidth, exact.bandwidth);
    const auto compare = [&](const Estimate& estimate, const Estimate& wanted) {
      ASSERT_GT(estimate.error, 0);
      const double off = std::abs(estimate.value - wanted.value) / estimate.error;
      worst = std::max(worst, off);
      squares += off * off;
    };
    for (std::size_t side = 0; side < kBlockSides; ++side) {
      compare(found.block_fill[side], exact.block_fill[side]);
    }
    compare(found.row_overlap, exact.row_overlap);
    compare(found.run_share, exact.run_share);
    compare(found.diagonal_share, exact.diagonal_share);
    compare(found.mean_distance, exact.mean_distance);
    double density_off = 0;
    for (std::size_t cell = 0; cell < exact.density.size(); ++cell) {
      density_off += std::abs(static_cast<double>(found.density[cell] - exact.density[cell]));
    }
    density_off /= static_cast<double>(exact.size);
    EXPECT_GT(found.density_error, 0);
    EXPECT_LT(density_off, 1.5 * found.density_error);
  }
  // Standard errors: the deviation in units of them is about 1, and rarely above 4. Strips of a
  // matrix that changes slowly are drawn evenly, which makes the stated errors too large at times.
  EXPECT_LT(worst, 4.5);
  EXPECT_LT(std::sqrt(squares / (kSamples * 9)), 1.5);
  EXPECT_GT(std::sqrt(squares / (kSamples * 9)), 0.2);
}

TEST(DescribeTest, CoarserDensitiesAreSums) {
  Coordinates coordinates;
  coordinates.extents = {128, 64, 1};
  coordinates.indices = {{{0, 1, 127, 64}, {0, 1, 63, 0}, {}}};
  coordinates.values.assign(4, 1);
  const MatrixDescription found = describe(csr_from<float>(coordinates)->pattern()).value();
  EXPECT_EQ(density_at(found, 64, 0, 0), 1.0F / 2);
  EXPECT_EQ(density_at(found, 2, 0, 0), 2.0F / (64 * 32));
  EXPECT_EQ(density_at(found, 2, 1, 0), 1.0F / (64 * 32));
  EXPECT_EQ(density_at(found, 1, 0, 0), 4.0F / (128 * 64));
}

}  // namespace
}  // namespace foretune::sparse
