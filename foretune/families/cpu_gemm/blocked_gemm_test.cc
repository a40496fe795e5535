#include "foretune/families/cpu_gemm/blocked_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float random_value(Rng& rng) { return static_cast<float>(2 * rng.uniform() - 1); }

template <class T>
T pick(Rng& rng, std::initializer_list<T> values) {
  return *(values.begin() + rng.below(values.size()));
}

// Small, odd and skinny alike.
std::ptrdiff_t random_size(Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      return static_cast<std::ptrdiff_t>(rng.between(1, 4));
    case 1:
      return pick<std::ptrdiff_t>(rng, {7, 8, 13, 16, 17, 31, 32, 33, 47, 48, 64, 65, 97});
    default:
      return static_cast<std::ptrdiff_t>(rng.between(1, 70));
  }
}

// Returns sizes of one product or, one time in four, of a batch.
BlockedGemmSizes random_sizes(Rng& rng) {
  BlockedGemmSizes sizes{
      .m = random_size(rng), .n = random_size(rng), .k = random_size(rng), .batch = 1};
  if (rng.below(4) == 0) {
    sizes.batch = static_cast<std::ptrdiff_t>(rng.between(2, 5));
  }
  return sizes;
}

// Any config that has a kernel, legal in the space or not: the loops must be right for all.
CpuGemmConfig random_config(Rng& rng) {
  CpuGemmConfig config;
  do {
    config.isa = pick(rng, {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512});
  } while (kernel_set(config.isa) == nullptr);
  const int vectors = static_cast<int>(rng.between(1, kMaxKernelVectors));
  config.mr = static_cast<int>(rng.between(1, max_kernel_rows(config.isa, vectors)));
  config.nr = vectors * kernel_limits(config.isa).lanes;
  config.pack_a = rng.below(2) == 0;
  config.pack_b = rng.below(2) == 0;
  if (rng.below(5) == 0) {
    config.kernel = GemmKernel::kDot;
    config.nr = static_cast<int>(rng.between(1, kMaxDotColumns));
    config.mr = static_cast<int>(rng.between(1, max_dot_rows(config.isa, config.nr)));
    config.pack_a = config.pack_b = false;
  }
  config.mc = pick(rng, {1, 7, 20, 64, 512});
  config.nc = pick(rng, {1, 9, 40, 256});
  config.kc = pick(rng, {1, 8, 16, 50, 1024});
  config.order = pick(rng, {GemmLoopOrder::kNkm, GemmLoopOrder::kMkn});
  config.unroll = pick(rng, {1, 4});
  config.prefetch = pick(rng, {0, 8});
  config.threads = pick(rng, {1, 1, 2, 4});
  config.split =
      pick(rng, {GemmSplit::kM, GemmSplit::kN, GemmSplit::kBatch, GemmSplit::kGrid, GemmSplit::kK});
  return config;
}

struct Trial {
  BlockedGemmSizes sizes;
  CpuGemmConfig config;
  float alpha = 1;
  float beta = 0;
  bool bias = false;
  bool relu = false;
};

std::string describe(const Trial& trial) {
  return concat("m ", trial.sizes.m, " n ", trial.sizes.n, " k ", trial.sizes.k, " batch ",
                trial.sizes.batch, " alpha ", trial.alpha, " beta ", trial.beta, " bias ",
                trial.bias, " relu ", trial.relu, " a by columns ", trial.sizes.a_by_columns,
                " b by columns ", trial.sizes.b_by_columns, " ",
                to_text(cpu_gemm_schema(), trial.config.to_config()));
}

// Computes one product between guard pages and compares it with the textbook's triple loop.
void check_product(const Trial& trial, ThreadPool& pool, Rng& rng) {
  const auto [m, n, k, batch, a_by_columns, b_by_columns, dtype, constant_b] = trial.sizes;
  ASSERT_EQ(dtype, DataType::kF32);
  const std::ptrdiff_t a_lines = a_by_columns ? k : m;  // contiguous pieces of a product of a batch
  const std::ptrdiff_t b_lines = b_by_columns ? n : k;
  const std::ptrdiff_t a_stride =
      (a_by_columns ? m : k) + static_cast<std::ptrdiff_t>(rng.below(4));
  const std::ptrdiff_t b_stride =
      (b_by_columns ? k : n) + static_cast<std::ptrdiff_t>(rng.below(4));
  const std::ptrdiff_t c_stride = n + static_cast<std::ptrdiff_t>(rng.below(4));
  const GuardSide side = rng.below(2) == 0 ? GuardSide::kEnd : GuardSide::kStart;
  const auto size = [batches = batch](std::ptrdiff_t rows, std::ptrdiff_t stride,
                                      std::ptrdiff_t columns) {
    return static_cast<std::size_t>((batches * rows - 1) * stride + columns);
  };
  GuardedBuffer a(size(a_lines, a_stride, a_by_columns ? m : k), side);
  GuardedBuffer b(size(b_lines, b_stride, b_by_columns ? k : n), side);
  GuardedBuffer c(size(m, c_stride, n), side);
  GuardedBuffer bias(static_cast<std::size_t>(n), side);
  for (const std::span<float> values : {a.view(), b.view(), c.view(), bias.view()}) {
    std::generate(values.begin(), values.end(), [&] { return random_value(rng); });
  }
  const auto alpha = static_cast<double>(trial.alpha);
  const auto beta = static_cast<double>(trial.beta);
  std::vector<double> expected;
  std::vector<double> allowed;
  for (std::ptrdiff_t row = 0; row < batch * m; ++row) {
    for (std::ptrdiff_t j = 0; j < n; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (std::ptrdiff_t p = 0; p < k; ++p) {
        const std::ptrdiff_t i = row % m;
        const float* a_here = a.data() + row / m * a_lines * a_stride;
        const float* b_here = b.data() + row / m * b_lines * b_stride;
        const double product =
            static_cast<double>(a_here[a_by_columns ? p * a_stride + i : i * a_stride + p]) *
            static_cast<double>(b_here[b_by_columns ? j * b_stride + p : p * b_stride + j]);
        sum += product;
        magnitude += std::fabs(product);
      }
      const auto input =
          static_cast<double>(trial.bias ? bias.data()[j] : c.data()[row * c_stride + j]);
      const double value = alpha * sum + beta * input;
      expected.push_back(trial.relu ? std::max(0.0, value) : value);
      // Each block of depth adds a rounding for alpha and one for the sum.
      allowed.push_back(0x1p-24 * static_cast<double>(3 * k + 4) *
                        (std::fabs(alpha) * magnitude + std::fabs(beta * input)));
    }
  }
  if (trial.beta == 0.0F) {
    std::fill_n(c.data(), c.view().size(), kNan);
  }
  auto gemm = BlockedGemm::create(trial.sizes, trial.config, &pool);
  ASSERT_TRUE(gemm) << describe(trial) << ": " << gemm.error().message;
  auto workspace = gemm->make_workspace();
  ASSERT_TRUE(workspace);
  const GemmOperands operands{
      .a = a.data(),
      .a_stride = a_stride,
      .a_batch_stride = a_lines * a_stride,
      .b = b.data(),
      .b_stride = b_stride,
      .b_batch_stride = b_lines * b_stride,
      .c_in = trial.beta == 0.0F ? nullptr : (trial.bias ? bias.data() : c.data()),
      .c_in_stride = trial.bias ? 0 : c_stride,
      .c_in_batch_stride = trial.bias ? 0 : m * c_stride,
      .c = c.data(),
      .c_stride = c_stride,
      .c_batch_stride = m * c_stride,
      .alpha = trial.alpha,
      .beta = trial.beta,
      .floor = trial.relu ? 0.0F : -std::numeric_limits<float>::infinity()};
  ASSERT_EQ(gemm->weights_size() > 0, constant_b && trial.config.pack_b);
  auto weights = AlignedBuffer::create(gemm->weights_size());
  ASSERT_TRUE(weights);
  gemm->pack_weights(operands, weights->view());
  if (gemm->weights_size() > 0 && n % kernel_limits(trial.config.isa).lanes == 0) {
    // From now on only the packed copy is read.
    std::fill_n(b.data(), b.view().size(), kNan);
  }
  gemm->run(operands, workspace->view(), weights->view());
  std::size_t at = 0;
  for (std::ptrdiff_t row = 0; row < batch * m; ++row) {
    for (std::ptrdiff_t j = 0; j < n; ++j, ++at) {
      const auto value = static_cast<double>(c.data()[row * c_stride + j]);
      ASSERT_TRUE(std::fabs(value - expected[at]) <= allowed[at])
          << describe(trial) << " at (" << row << ", " << j << "): " << value << " for "
          << expected[at];
    }
  }
}

// Sizes whose last columns dot kernels compute: a few beyond whole vectors, deep enough.
TEST(BlockedGemmTest, TheFewColumnsBeyondWholeVectorsAgreeWithTheTripleLoop) {
  constexpr std::uint64_t kSeed = 17;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  ThreadPool pool(4);
  for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) {
    Trial trial;
    do {
      trial.config = random_config(rng);
    } while (trial.config.kernel == GemmKernel::kDot || trial.config.split == GemmSplit::kK);
    const std::ptrdiff_t lanes = kernel_limits(trial.config.isa).lanes;
    trial.sizes = {.m = random_size(rng),
                   .n = lanes * static_cast<std::ptrdiff_t>(rng.between(1, 5)) +
                        static_cast<std::ptrdiff_t>(rng.between(1, 3)),
                   .k = static_cast<std::ptrdiff_t>(rng.between(30, 150)),
                   .batch = static_cast<std::ptrdiff_t>(rng.between(1, 2))};
    trial.sizes.b_by_columns = trial.config.pack_b && rng.below(2) == 0;
    trial.relu = rng.below(4) == 0;
    trial.sizes.constant_b = rng.below(2) == 0;
    trial.alpha = pick(rng, {1.0F, -2.0F});
    trial.beta = pick(rng, {0.0F, 1.0F, 0.25F});
    trial.bias = rng.below(2) == 0;
    check_product(trial, pool, rng);
  }
}

TEST(BlockedGemmTest, RandomProblemsWithRandomConfigsAgreeWithTheTripleLoop) {
  constexpr std::uint64_t kSeed = 99;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  ThreadPool pool(4);
  for (int i = 0; i < 6000; ++i) {
    Trial trial;
    trial.sizes = random_sizes(rng);
    trial.config = random_config(rng);
    if (trial.sizes.batch > 1 && trial.config.split == GemmSplit::kK) {
      trial.config.split = GemmSplit::kGrid;
    }
    const bool is_dot = trial.config.kernel == GemmKernel::kDot;
    trial.sizes.a_by_columns = !is_dot && rng.below(2) == 0;
    if (is_dot && rng.below(3) == 0) {
      trial.sizes.n = static_cast<std::ptrdiff_t>(rng.between(1, BlockedGemm::kMaxGathered));
    }
    trial.sizes.b_by_columns = is_dot
                                   ? trial.sizes.n > BlockedGemm::kMaxGathered || rng.below(2) == 0
                                   : trial.config.pack_b && rng.below(2) == 0;
    trial.relu = rng.below(4) == 0;
    trial.sizes.constant_b = rng.below(2) == 0;
    trial.alpha = pick(rng, {1.0F, 1.0F, 0.5F, -2.0F});
    trial.beta = pick(rng, {0.0F, 0.0F, 1.0F, 0.25F});
    trial.bias = rng.below(2) == 0;
    check_product(trial, pool, rng);
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST(BlockedGemmTest, RunsAgainWithTheSameResultAndOtherOperands) {
  ThreadPool pool(2);
  const BlockedGemmSizes sizes{.m = 20, .n = 40, .k = 30, .batch = 1};
  const CpuGemmConfig config{.isa = CpuIsa::kGeneric,
                             .mr = 4,
                             .nr = 8,
                             .pack_a = true,
                             .pack_b = true,
                             .mc = 8,
                             .nc = 16,
                             .kc = 8,
                             .threads = 2};
  auto gemm = BlockedGemm::create(sizes, config, &pool);
  ASSERT_TRUE(gemm);
  std::vector<float> a(600);
  std::vector<float> b(1200);
  Rng rng(3);
  std::generate(a.begin(), a.end(), [&] { return random_value(rng); });
  std::generate(b.begin(), b.end(), [&] { return random_value(rng); });
  auto workspace = gemm->make_workspace();
  ASSERT_TRUE(workspace);
  std::vector<float> first(800, kNan);
  std::vector<float> second(800, kNan);
  for (std::vector<float>* c : {&first, &second}) {
    gemm->run({.a = a.data(),
               .a_stride = 30,
               .b = b.data(),
               .b_stride = 40,
               .c = c->data(),
               .c_stride = 40},
              workspace->view());
  }
  EXPECT_EQ(first, second);
}

TEST(BlockedGemmTest, RefusesWhatItCannotDoWithAReason) {
  ThreadPool pool(2);
  const BlockedGemmSizes sizes{.m = 8, .n = 8, .k = 8, .batch = 1};
  const CpuGemmConfig good{.isa = CpuIsa::kGeneric, .mr = 4, .nr = 8};
  ASSERT_TRUE(BlockedGemm::create(sizes, good, nullptr));
  const auto refusal = [&](auto change) {
    CpuGemmConfig config = good;
    change(config);
    const auto gemm = BlockedGemm::create(sizes, config, &pool);
    return gemm ? std::string() : gemm.error().message;
  };
  EXPECT_NE(refusal([](CpuGemmConfig& c) { c.mr = 13; }), "");
  EXPECT_NE(refusal([](CpuGemmConfig& c) { c.mr = 0; }), "");
  EXPECT_NE(refusal([](CpuGemmConfig& c) { c.nr = 6; }), "");
  EXPECT_NE(refusal([](CpuGemmConfig& c) { c.kc = 0; }), "");
  EXPECT_EQ(refusal([](CpuGemmConfig& c) { c.threads = 3; }),
            "the config wants 3 threads, the pool has 2");
  EXPECT_FALSE(BlockedGemm::create({.m = 0}, good, &pool));
  const auto unpacked =
      BlockedGemm::create({.m = 8, .n = 8, .k = 8, .b_by_columns = true}, good, &pool);
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().message, "B stored by columns must be packed");
  CpuGemmConfig dot = good;
  dot.kernel = GemmKernel::kDot;
  EXPECT_TRUE(BlockedGemm::create(
      {.m = 8, .n = 8, .k = 8, .b_by_columns = true},
      {.isa = CpuIsa::kGeneric, .kernel = GemmKernel::kDot, .mr = 1, .nr = 8}, &pool));
  EXPECT_FALSE(BlockedGemm::create(sizes, dot, &pool));
  const CpuGemmConfig one_row{
      .isa = CpuIsa::kGeneric, .kernel = GemmKernel::kDot, .mr = 1, .nr = 8};
  const auto by_rows = BlockedGemm::create({.m = 8, .n = 9, .k = 8}, one_row, &pool);
  ASSERT_FALSE(by_rows);
  EXPECT_NE(by_rows.error().message.find("B by columns"), std::string::npos);
  EXPECT_TRUE(BlockedGemm::create({.m = 8, .n = 8, .k = 8}, one_row, &pool));
  EXPECT_TRUE(BlockedGemm::create({.m = 8, .n = 1, .k = 8}, one_row, &pool));
  CpuGemmConfig deep = good;
  deep.threads = 2;
  deep.split = GemmSplit::kK;
  EXPECT_TRUE(BlockedGemm::create(sizes, deep, &pool));
  EXPECT_FALSE(BlockedGemm::create({.m = 8, .n = 8, .k = 8, .batch = 2}, deep, &pool));
  const auto bf16 =
      BlockedGemm::create({.m = 8, .n = 8, .k = 8, .dtype = DataType::kBf16}, good, &pool);
  ASSERT_FALSE(bf16);
  EXPECT_EQ(bf16.error().message, "operands that are not f32 must be packed");
  deep.pack_a = deep.pack_b = true;
  EXPECT_TRUE(BlockedGemm::create({.m = 8, .n = 8, .k = 8, .dtype = DataType::kBf16}, deep, &pool));
  EXPECT_FALSE(BlockedGemm::create({.m = 8, .n = 8, .k = 8, .dtype = DataType::kI8}, deep, &pool));
  EXPECT_FALSE(BlockedGemm::create({.m = 8, .n = 8, .k = 8, .dtype = DataType::kF64}, good, &pool));
}

float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

void fill(std::span<Bf16> values, Rng& rng) {
  for (Bf16& value : values) {
    value.bits = static_cast<std::uint16_t>(
        std::bit_cast<std::uint32_t>(static_cast<float>(rng.between(-100, 100)) / 64) >> 16U);
  }
}
void fill(std::span<std::int8_t> values, Rng& rng) {
  for (std::int8_t& value : values) {
    value = static_cast<std::int8_t>(rng.between(-128, 127));
  }
}

template <class Element, class Sum>
void check_words(const Trial& trial, ThreadPool& pool, Rng& rng) {
  const BlockedGemmSizes& sizes = trial.sizes;
  const auto [m, n, k] = std::array{sizes.m, sizes.n, sizes.k};
  const std::ptrdiff_t a_lines = sizes.a_by_columns ? k : m;
  const std::ptrdiff_t b_lines = sizes.b_by_columns ? n : k;
  const std::ptrdiff_t a_length = sizes.a_by_columns ? m : k;
  const std::ptrdiff_t b_length = sizes.b_by_columns ? k : n;
  const std::ptrdiff_t a_stride = a_length + static_cast<std::ptrdiff_t>(rng.below(4));
  const std::ptrdiff_t b_stride = b_length + static_cast<std::ptrdiff_t>(rng.below(4));
  // No packing may read whole words of what is not there.
  const auto size = [&](std::ptrdiff_t lines, std::ptrdiff_t stride, std::ptrdiff_t length) {
    return static_cast<std::size_t>((sizes.batch * lines - 1) * stride + length);
  };
  GuardedArray<Element> a(size(a_lines, a_stride, a_length), GuardSide::kEnd);
  GuardedArray<Element> b(size(b_lines, b_stride, b_length), GuardSide::kEnd);
  fill(a.view(), rng);
  fill(b.view(), rng);
  std::vector<Sum> c(static_cast<std::size_t>(sizes.batch * m * n));
  std::generate(c.begin(), c.end(), [&] { return static_cast<Sum>(rng.between(-1000, 1000)); });
  std::vector<double> expected;
  for (std::ptrdiff_t row = 0; row < sizes.batch * m; ++row) {
    for (std::ptrdiff_t j = 0; j < n; ++j) {
      const std::ptrdiff_t i = row % m;
      const Element* a_here = a.data() + row / m * a_lines * a_stride;
      const Element* b_here = b.data() + row / m * b_lines * b_stride;
      double sum = 0;
      for (std::ptrdiff_t p = 0; p < k; ++p) {
        const Element left = a_here[sizes.a_by_columns ? p * a_stride + i : i * a_stride + p];
        const Element right = b_here[sizes.b_by_columns ? j * b_stride + p : p * b_stride + j];
        if constexpr (sizeof(Element) == 1) {
          sum += left * right;
        } else {
          sum += static_cast<double>(to_float(left)) * static_cast<double>(to_float(right));
        }
      }
      const auto input = static_cast<double>(c[static_cast<std::size_t>(row * n + j)]);
      expected.push_back(static_cast<double>(trial.alpha) * sum +
                         static_cast<double>(trial.beta) * input);
    }
  }
  const auto gemm = BlockedGemm::create(sizes, trial.config, &pool);
  ASSERT_TRUE(gemm) << describe(trial) << ": " << gemm.error().message;
  auto workspace = gemm->make_workspace();
  ASSERT_TRUE(workspace);
  BasicGemmOperands<Element, Sum> operands;
  operands.a = a.data();
  operands.a_stride = a_stride;
  operands.a_batch_stride = a_lines * a_stride;
  operands.b = b.data();
  operands.b_stride = b_stride;
  operands.b_batch_stride = b_lines * b_stride;
  operands.c = c.data();
  operands.c_stride = n;
  operands.c_batch_stride = m * n;
  operands.c_in = trial.beta == 0.0F ? nullptr : c.data();
  operands.c_in_stride = n;
  operands.c_in_batch_stride = m * n;
  operands.alpha = trial.alpha;
  operands.beta = trial.beta;
  auto weights = AlignedBuffer::create(gemm->weights_size());
  ASSERT_TRUE(weights);
  gemm->pack_weights(operands, weights->view());
  gemm->run(operands, workspace->view(), weights->view());
  for (std::size_t i = 0; i < c.size(); ++i) {
    // The products and sums of the chosen values are exact in f32 but for the scaling.
    ASSERT_EQ(static_cast<double>(c[i]), expected[i]) << describe(trial) << " at " << i;
  }
}

TEST(BlockedGemmTest, Bf16AndIntegersAgreeWithTheTripleLoop) {
  constexpr std::uint64_t kSeed = 101;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  ThreadPool pool(4);
  for (int i = 0; i < 4000; ++i) {
    Trial trial;
    trial.sizes = random_sizes(rng);
    trial.sizes.dtype = pick(rng, {DataType::kBf16, DataType::kI8});
    do {
      trial.config = random_config(rng);
    } while (trial.config.kernel == GemmKernel::kDot || trial.config.split == GemmSplit::kK);
    trial.config.pack_a = trial.config.pack_b = true;
    trial.sizes.a_by_columns = rng.below(2) == 0;
    trial.sizes.b_by_columns = rng.below(2) == 0;
    trial.sizes.constant_b = rng.below(2) == 0;
    trial.beta = pick(rng, {0.0F, 1.0F});
    if (trial.sizes.dtype == DataType::kI8) {
      check_words<std::int8_t, std::int32_t>(trial, pool, rng);
    } else {
      trial.alpha = pick(rng, {1.0F, 0.5F});
      check_words<Bf16, float>(trial, pool, rng);
    }
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST(GemmGridTest, IsNearlySquareAndHasMoreAlongTheLongerSide) {
  EXPECT_EQ(gemm_grid_rows(100, 100, 4), 2);
  EXPECT_EQ(gemm_grid_rows(10, 100, 8), 2);
  EXPECT_EQ(gemm_grid_rows(100, 10, 8), 4);
  EXPECT_EQ(gemm_grid_rows(100, 10, 7), 7);
  EXPECT_EQ(gemm_grid_rows(10, 100, 1), 1);
}

TEST(BalancedBlockTest, CutsIntoAsFewNearlyEqualPartsAsTheBoundAllows) {
  EXPECT_EQ(balanced_block(1000, 512, 8), 504);
  EXPECT_EQ(balanced_block(512, 512, 14), 518);
  EXPECT_EQ(balanced_block(520, 512, 8), 264);
  for (std::ptrdiff_t length = 1; length < 300; ++length) {
    for (const std::ptrdiff_t bound : {1, 7, 16, 64}) {
      for (const std::ptrdiff_t unit : {1, 4, 14}) {
        const std::ptrdiff_t block = balanced_block(length, bound, unit);
        EXPECT_EQ(block % unit, 0);
        EXPECT_LT(block, bound + unit);
        EXPECT_LE((length + block - 1) / block, (length + bound - 1) / bound);
      }
    }
  }
}

}  // namespace
}  // namespace foretune
