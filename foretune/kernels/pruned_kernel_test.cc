#include "foretune/kernels/pruned_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune {
namespace {

constexpr std::uint64_t kPrunedSeed = 5;
constexpr std::ptrdiff_t kPrunedPlanes = 37;

struct PrunedFilters {
  std::vector<PrunedWeight> weights;
  std::vector<std::ptrdiff_t> ends{0};
};

// Every filter has a weight for some planes; the last plane ends with the buffer.
PrunedFilters random_filters(Rng& rng, std::ptrdiff_t filters, std::ptrdiff_t points) {
  PrunedFilters made;
  for (std::ptrdiff_t filter = 0; filter < filters; ++filter) {
    const std::uint64_t share = rng.below(5);
    for (std::ptrdiff_t plane = 0; plane < kPrunedPlanes; ++plane) {
      if (rng.below(4) < share) {
        made.weights.push_back(
            {static_cast<std::int32_t>(plane * points + (plane + 1 == kPrunedPlanes ? 0 : 3)),
             static_cast<float>(rng.normal())});
      }
    }
    made.ends.push_back(static_cast<std::ptrdiff_t>(made.weights.size()));
  }
  return made;
}

void check_strips(const PrunedKernels& kernels, int vectors, Rng& rng) {
  const std::ptrdiff_t points = vectors * kernels.lanes;
  const std::ptrdiff_t filters = rng.between(1, 9);
  const std::ptrdiff_t step = points + rng.between(0, 9);
  const GuardSide side = rng.below(2) == 0 ? GuardSide::kEnd : GuardSide::kStart;
  GuardedBuffer planes(static_cast<std::size_t>(kPrunedPlanes * points), side);
  GuardedBuffer sums(static_cast<std::size_t>((filters - 1) * step + points), side);
  for (float& value : planes.view()) {
    value = static_cast<float>(rng.normal());
  }
  for (float& value : sums.view()) {
    value = static_cast<float>(rng.normal());
  }
  const std::vector<float> before(sums.view().begin(), sums.view().end());
  const PrunedFilters all = random_filters(rng, filters, points);
  std::vector<float> bias(static_cast<std::size_t>(filters));
  for (float& value : bias) {
    value = static_cast<float>(rng.normal());
  }
  PrunedStrip strip{.planes = planes.data(),
                    .weights = all.weights.data(),
                    .ends = all.ends.data(),
                    .filters = filters,
                    .bias = rng.below(2) == 0 ? nullptr : bias.data(),
                    .continues = rng.below(2) == 0,
                    .sums = sums.data(),
                    .filter_step = step};
  if (rng.below(2) == 0) {
    strip.floor = 0;
  }
  kernels.runs[vectors - 1](strip);
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(before.size()); ++i) {
    const auto place = static_cast<std::size_t>(i);
    const std::ptrdiff_t filter = i / step;
    const std::ptrdiff_t point = i % step;
    if (point >= points) {
      ASSERT_EQ(sums.data()[i], before[place]) << "between filters";
      continue;
    }
    double sum = strip.continues ? static_cast<double>(before[place])
                 : strip.bias != nullptr
                     ? static_cast<double>(bias[static_cast<std::size_t>(filter)])
                     : 0;
    double size = std::abs(sum);
    for (auto w = all.ends[static_cast<std::size_t>(filter)];
         w < all.ends[static_cast<std::size_t>(filter) + 1]; ++w) {
      const PrunedWeight& weight = all.weights[static_cast<std::size_t>(w)];
      const double product = static_cast<double>(weight.value) *
                             static_cast<double>(planes.data()[weight.offset + point]);
      sum += product;
      size += std::abs(product);
    }
    ASSERT_NEAR(static_cast<double>(sums.data()[i]),
                std::max(sum, static_cast<double>(strip.floor)), 1e-6 * size)
        << vectors << " vectors, filter " << filter << ", point " << point;
  }
}

TEST(PrunedKernelTest, StripsOfEverySizeAgreeWithSumsInDoublePrecision) {
  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    const PrunedKernels* const kernels = pruned_kernels(isa);
    if (kernels == nullptr) {
      continue;
    }
    Rng rng(kPrunedSeed);
    for (int vectors = 1; vectors <= kernels->vectors; ++vectors) {
      for (int trial = 0; trial < 20; ++trial) {
        SCOPED_TRACE(::testing::Message() << to_string(isa) << " trial " << trial);
        check_strips(*kernels, vectors, rng);
        if (HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

TEST(PrunedKernelTest, EveryBuildHasPortableKernels) {
  ASSERT_NE(pruned_kernels(CpuIsa::kGeneric), nullptr);
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    EXPECT_EQ(pruned_kernels(isa) != nullptr, isa <= best_cpu_isa());
  }
}

}  // namespace
}  // namespace foretune
