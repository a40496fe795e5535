// Compares convolutions of bf16 and i8 with the definition, element by element, on random problems
// and configs, with tensors that end or begin at a guard page.
#include "foretune/families/cpu_conv/word_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_data.h"
#include "foretune/families/cpu_conv/conv_values.h"
#include "foretune/families/cpu_conv/group_conv.h"
#include "foretune/families/cpu_conv/testing/draw_conv.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune::cpu_conv {
namespace {

// A copy of a tensor between guard pages, at a multiple of four bytes.
class Guarded {
 public:
  Guarded(const float* from, std::int64_t elements, OutputType type, GuardSide side)
      : bytes_(static_cast<std::size_t>(elements * bytes_of(type))),
        array_((bytes_ + 3) / 4 * 4, side) {
    if (from != nullptr) {
      std::memcpy(array_.data(), from, bytes_);
    }
  }
  float* data() { return reinterpret_cast<float*>(array_.data()); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  GuardedArray<std::byte> array_;
};

template <class Algorithm>
std::string wrong_element(const ConvProblem& problem, const CpuConvConfig& config, ThreadPool& pool,
                          std::uint64_t seed) {
  const auto data = ConvData::create(problem, seed, {});
  const auto conv = Algorithm::create(problem, config, &pool);
  if (!data || !conv) {
    return data ? conv.error().message : data.error().message;
  }
  const GuardSide side = seed % 2 == 0 ? GuardSide::kEnd : GuardSide::kStart;
  const OutputType operand = operand_type(problem);
  const OutputType computed = result_type(problem);
  const OutputType sum = problem.dtype() == DataType::kI8 ? OutputType::kI32 : OutputType::kF32;
  const bool is_forward = problem.operation() == ConvOperation::kForward;
  const std::int64_t inputs = is_forward ? problem.input_elements() : problem.output_elements();
  const std::int64_t outputs = is_forward ? problem.output_elements() : problem.input_elements();
  ConvOperands operands = (*data)->operands();
  Guarded input(operands.input, inputs, operand, side);
  Guarded weights((*data)->weights(), problem.weight_elements(), operand, side);
  Guarded bias(operands.bias, problem.sizes().k, sum, side);
  Guarded residual(operands.residual, outputs, computed, side);
  Guarded output((*data)->result().data(), outputs, computed, side);
  operands.input = input.data();
  operands.bias = operands.bias == nullptr ? nullptr : bias.data();
  operands.residual = operands.residual == nullptr ? nullptr : residual.data();
  operands.output = output.data();
  GuardedBuffer workspace(conv->workspace_size(), side);
  GuardedBuffer packed(conv->packed_size(), side);
  std::ranges::fill(workspace.view(), std::numeric_limits<float>::quiet_NaN());
  std::ranges::fill(packed.view(), std::numeric_limits<float>::quiet_NaN());
  conv->pack_weights(weights.data(), packed.view());
  conv->run(operands, packed.view(), workspace.view());
  std::memcpy((*data)->result().data(), output.data(), output.bytes());
  const Support right = (*data)->verify();
  return right ? "" : right.reason();
}

CpuConvConfig draw_word_config(Rng& rng, CpuIsa isa) {
  while (true) {
    const auto vectors = static_cast<int>(rng.between(1, kMaxTapVectors));
    const auto rows = static_cast<int>(rng.between(1, kMaxKernelRows));
    if (rows > max_kernel_rows(isa, vectors)) {
      continue;
    }
    return {.isa = isa,
            .mr = rows,
            .nr = vectors * kernel_limits(isa).lanes,
            .rows = static_cast<int>(rng.between(1, 12) * (rng.below(4) == 0 ? 20 : 1)),
            .kc = static_cast<int>(rng.between(1, 40)),
            .order = static_cast<ConvOrder>(rng.below(3)),
            .taps = static_cast<ConvTaps>(rng.below(2)),
            .copy = static_cast<ConvCopy>(rng.below(2)),
            .threads = static_cast<int>(rng.between(1, 3)),
            .split = static_cast<ConvSplit>(rng.below(2))};
  }
}

TEST(WordConvTest, RandomConvolutionsAreRight) {
  ThreadPool pool(3);
  const char* const many = std::getenv("FORETUNE_CONV_CASES");  // NOLINT(concurrency-mt-unsafe)
  const auto cases = static_cast<int>(parse_int(many == nullptr ? "" : many).value_or(1500));
  std::map<std::string, int> run;
  int in_groups = 0;
  int in_tiles = 0;
  for (int i = 0; i < cases; ++i) {
    Rng rng(static_cast<std::uint64_t>(i));
    const auto isa = static_cast<CpuIsa>(i % 3);
    if (tap_kernel_set(isa) == nullptr) {
      continue;
    }
    ConvSizes sizes = draw_problem(rng).sizes();
    sizes.layout = ConvLayout::kChannelsLast;
    sizes.dtype = rng.below(2) == 0 ? DataType::kI8 : DataType::kBf16;
    if (sizes.operation == ConvOperation::kBackwardWeight || sizes.dtype == DataType::kI8) {
      sizes.operation = ConvOperation::kForward;
    }
    if (sizes.operation == ConvOperation::kForward) {
      sizes.epilogue = static_cast<ConvEpilogue>(rng.below(4));
    }
    sizes.out = static_cast<ConvOutput>(rng.below(2));
    const ConvProblem problem = *ConvProblem::create(sizes);
    CpuConvConfig config = draw_word_config(rng, isa);
    if (isa == CpuIsa::kAvx512 && tap_kernel_set(isa, KernelMath::kI8Tiles) != nullptr &&
        rng.below(2) == 0) {
      config.algorithm = ConvAlgorithm::kTiles;
      config.mr = static_cast<int>(rng.between(1, kMaxKernelRows));
      ++in_tiles;
    }
    const bool of_groups = config.algorithm != ConvAlgorithm::kTiles &&
                           group_kernel_set(isa, operand_type(problem)) != nullptr &&
                           std::max(sizes.c, sizes.k) / sizes.g <= kernel_limits(isa).lanes &&
                           sizes.skip_taps == 0 && rng.below(3) > 0;
    if (of_groups) {
      config.algorithm = ConvAlgorithm::kGroups;
      config.mr = static_cast<int>(rng.between(1, kMaxGroupPoints));
      ++in_groups;
    }
    const auto seed = static_cast<std::uint64_t>(i);
    const std::string wrong = of_groups ? wrong_element<GroupConv>(problem, config, pool, seed)
                                        : wrong_element<WordConv>(problem, config, pool, seed);
    ASSERT_EQ(wrong, "") << "case " << i << "\n"
                         << problem.to_problem().text() << "\n"
                         << to_text(cpu_conv_schema(), config.to_config());
    ++run[concat(to_string(sizes.dtype), " ", to_string(sizes.operation), " ",
                 sizes.out == ConvOutput::kSums ? "sums" : "same")];
  }
  EXPECT_EQ(run.size(), 6U);
  for (const auto& [name, count] : run) {
    EXPECT_GT(count, cases / 30) << name;
  }
  if (group_kernel_set(CpuIsa::kAvx512, OutputType::kI8) != nullptr) {
    EXPECT_GT(in_groups, cases / 20);
  }
  if (tap_kernel_set(CpuIsa::kAvx512, KernelMath::kI8Tiles) != nullptr) {
    EXPECT_GT(in_tiles, cases / 10);
  }
}

// A wrong element is found in every type of result.
TEST(WordConvTest, ASingleWrongElementIsFound) {
  ThreadPool pool(1);
  for (const DataType dtype : {DataType::kBf16, DataType::kI8}) {
    for (const ConvOutput out : {ConvOutput::kSame, ConvOutput::kSums}) {
      const ConvProblem problem = *ConvProblem::create({.n = 2,
                                                        .c = 24,
                                                        .k = 36,
                                                        .g = 2,
                                                        .hi = 9,
                                                        .wi = 8,
                                                        .y = 3,
                                                        .x = 2,
                                                        .stride_h = 2,
                                                        .pad_h = 1,
                                                        .pad_w = 1,
                                                        .dtype = dtype,
                                                        .epilogue = ConvEpilogue::kBias,
                                                        .out = out});
      const auto data = ConvData::create(problem, 5, {});
      ASSERT_TRUE(data);
      EXPECT_FALSE((*data)->verify()) << "nothing was written";
      const auto conv = WordConv::create(problem, {.mr = 4, .nr = 8, .kc = 8}, &pool);
      ASSERT_TRUE(conv) << conv.error().message;
      auto workspace = AlignedBuffer::create(conv->workspace_size());
      auto packed = AlignedBuffer::create(conv->packed_size());
      conv->pack_weights((*data)->weights(), packed->view());
      conv->run((*data)->operands(), packed->view(), workspace->view());
      const Support right = (*data)->verify();
      ASSERT_TRUE(right) << right.reason();
      const std::int64_t bytes = bytes_of(result_type(problem));
      auto* const bits = reinterpret_cast<std::byte*>((*data)->result().data());
      Rng rng(3);
      for (int i = 0; i < 200; ++i) {
        const auto place =
            static_cast<std::size_t>(rng.between(0, problem.output_elements() - 1) * bytes);
        // Changes the lowest bit of an integer, the sign of a float.
        const bool is_integer = dtype == DataType::kI8;
        std::byte& changed = bits[is_integer ? place : place + static_cast<std::size_t>(bytes) - 1];
        changed ^= is_integer ? std::byte{1} : std::byte{0x80};
        EXPECT_FALSE((*data)->verify());
        changed ^= is_integer ? std::byte{1} : std::byte{0x80};
      }
    }
  }
}

TEST(WordConvTest, SaysWhatItDoesNotCompute) {
  const ConvSizes sizes{.c = 8, .k = 8, .hi = 4, .wi = 4, .dtype = DataType::kI8};
  const auto reason = [&](auto change) {
    ConvSizes changed = sizes;
    change(changed);
    return WordConv::supports(*ConvProblem::create(changed)).reason();
  };
  EXPECT_TRUE(WordConv::supports(*ConvProblem::create(sizes)));
  EXPECT_EQ(reason([](ConvSizes& s) { s.operation = ConvOperation::kBackwardData; }),
            "gradients are computed in f32 and bf16, not i8");
  EXPECT_EQ(reason([](ConvSizes& s) { s.layout = ConvLayout::kChannelsFirst; }),
            "bf16 and i8 are computed with channels last, not channels_first");
  EXPECT_EQ(reason([](ConvSizes& s) { s.dtype = DataType::kF16; }), "there are no words of f16");
  const auto inner =
      WordConv::create(*ConvProblem::create(sizes), {.taps = ConvTaps::kInner}, nullptr);
  ASSERT_FALSE(inner);
  EXPECT_EQ(inner.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretune::cpu_conv
