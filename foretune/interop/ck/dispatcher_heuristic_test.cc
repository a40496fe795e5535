// The adapter with stand-ins for the types of Composable Kernel's dispatcher: the members alone
// count.
#include "foretune/interop/ck/dispatcher_heuristic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using testing_support::TemporaryFolder;

// ck_tile::dispatcher::Problem
struct TheirProblem {
  std::int64_t M = 0;  // NOLINT(readability-identifier-naming): theirs
  std::int64_t N = 0;  // NOLINT(readability-identifier-naming)
  std::int64_t K = 0;  // NOLINT(readability-identifier-naming)
  std::int32_t k_batch = 1;
};
using HeuristicFunction = std::function<std::vector<std::string>(const TheirProblem&)>;

// ck_tile::dispatcher::GroupedConvProblem
enum class TheirOperation : std::uint8_t { kForward, kBackwardData, kBackwardWeight };
struct TheirConvolution {
  std::int64_t N = 1;  // NOLINT(readability-identifier-naming)
  std::int64_t C = 1;  // NOLINT(readability-identifier-naming)
  std::int64_t K = 1;  // NOLINT(readability-identifier-naming)
  std::int64_t G = 1;  // NOLINT(readability-identifier-naming)
  std::array<std::int64_t, 3> input_spatial{1, 28, 28};
  std::array<std::int64_t, 3> filter_spatial{1, 3, 3};
  std::array<std::int64_t, 3> stride{1, 1, 1};
  std::array<std::int64_t, 3> padding{0, 1, 1};
  std::array<std::int64_t, 3> dilation{1, 1, 1};
  TheirOperation op = TheirOperation::kForward;
};

std::string gemm_kernel(int tile) {
  return concat("gemm_universal_fp16_rcr_compv3_cshuffle_intrawave_True_True_True_False_", tile,
                "x", tile, "x64_2x2x1_16x16x32");
}
std::string conv_kernel(int tile) {
  return concat("grouped_conv_bwd_data_bf16_2d_", tile, "x64x64_compv3_intrawave");
}

void add_time(Dataset& dataset, const Problem& problem, Config config, double time_ns) {
  Measurement measurement{
      .problem = problem, .config = std::move(config), .context = {}, .metrics = {}};
  measurement.metrics.emplace_back(kTimeNs, time_ns, 0.0, 1U);
  dataset.add(measurement);
}

std::shared_ptr<const Selector> trained_on(const Dataset& dataset) {
  TrainOptions options;
  options.held_out = false;
  options.gbdt.trees = 30;
  options.gbdt.min_rows_per_leaf = 2;
  options.gbdt.threads = 1;
  auto trained = train_gbdt(dataset, options, {});
  EXPECT_TRUE(trained) << trained.error().message;
  auto selector = Selector::create(std::move(trained->model));
  EXPECT_TRUE(selector) << selector.error().message;
  return std::move(*selector);
}

// Small tiles win on small problems.
std::shared_ptr<const Selector> gemm_selector() {
  DatasetHeader header;
  header.family = "recorded";
  header.problem_type = kGemmProblem;
  header.config_schema = ck_gemm_schema();
  header.fingerprint = known_device("gfx950").value();
  Dataset dataset(header);
  for (const int m : {16, 64, 256, 1024, 4096}) {
    for (const int n : {512, 2048}) {
      for (const int tile : {32, 64, 128, 256}) {
        for (const int split : {1, 2}) {
          Config config = parse_ck_gemm_name(gemm_kernel(tile))->config;
          config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] = split;
          add_time(dataset,
                   *Problem::parse(concat("gemm m=", m, " n=", n, " k=1024 dtype=f16 layout=rcr")),
                   std::move(config),
                   1000 + 500 * std::fabs(std::log2(tile) - std::log2(m) * 0.7) + 10 * split);
        }
      }
    }
  }
  return trained_on(dataset);
}

std::shared_ptr<const Selector> conv_selector() {
  DatasetHeader header;
  header.family = "recorded";
  header.problem_type = kConvProblem;
  header.config_schema = ck_grouped_conv_schema();
  header.fingerprint = known_device("gfx950").value();
  Dataset dataset(header);
  for (const int n : {1, 4, 16, 64}) {
    for (const int c : {64, 128, 256}) {
      for (const int tile : {16, 32, 64}) {
        add_time(dataset,
                 *Problem::parse(concat("conv op=backward_data n=", n, " c=", c, " k=", c,
                                        " hi=28 wi=28 y=3 x=3 pad_h=1 pad_w=1 dtype=bf16")),
                 parse_ck_conv_name(conv_kernel(tile))->config,
                 1000 + 500 * std::fabs(std::log2(tile) - std::log2(n) * 0.5 - 3));
      }
    }
  }
  return trained_on(dataset);
}

TEST(DispatcherHeuristic, NamesGemmKernelsInTheOrderOfTheModel) {
  const auto selector = gemm_selector();
  const HeuristicFunction heuristic =
      gemm_heuristic<TheirProblem>(selector, {.with_operation = true});
  const std::vector<std::string> names = heuristic({.M = 64, .N = 512, .K = 1024});
  std::vector<std::string> expected;
  for (const RankedCandidate& ranked :
       selector->rank(*Problem::parse("gemm m=64 n=512 k=1024 dtype=f16 layout=rcr"))) {
    const Config config = selector->config(ranked.candidate);
    if (config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] == 1) {
      expected.push_back(*ck_gemm_name({DataType::kF16, GemmLayout::kRcr, config}));
    }
  }
  ASSERT_EQ(expected.size(), 4U);
  EXPECT_EQ(names, expected);
  EXPECT_EQ(heuristic({.M = 64, .N = 512, .K = 1024, .k_batch = 2}).size(), 4U);
  EXPECT_EQ(heuristic({.M = 64, .N = 512, .K = 1024, .k_batch = 16}).size(), 4U)
      << "no kernel of the model splits so often";
  EXPECT_NE(heuristic({.M = 16, .N = 512, .K = 1024}).front(),
            heuristic({.M = 4096, .N = 512, .K = 1024}).front());
}

TEST(DispatcherHeuristic, NamesAreThoseOfTheRegistryUnlessToldOtherwise) {
  const auto selector = gemm_selector();
  const auto short_names = gemm_heuristic<TheirProblem>(selector, {.top = 2});
  const auto names = gemm_heuristic<TheirProblem>(selector, {.top = 2, .with_operation = true});
  const TheirProblem problem{.M = 256, .N = 2048, .K = 1024};
  ASSERT_EQ(short_names(problem).size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ("gemm_universal_" + short_names(problem)[i], names(problem)[i]);
  }
}

TEST(DispatcherHeuristic, RegisteredKernelsAreTheOnlyOnesAndAllOfThem) {
  const std::string unknown =
      "gemm_universal_fp16_rcr_mem_cshuffle_intrawave_True_True_True_False_64x64x32_2x2x1_16x16x32";
  const auto heuristic = gemm_heuristic<TheirProblem>(
      gemm_selector(),
      {.kernels = {unknown, gemm_kernel(256), gemm_kernel(32)}, .with_operation = true});
  EXPECT_THAT(heuristic({.M = 16, .N = 512, .K = 1024}),
              ElementsAre(gemm_kernel(32), gemm_kernel(256), unknown));
  EXPECT_THAT(heuristic({.M = 4096, .N = 512, .K = 1024}),
              ElementsAre(gemm_kernel(256), gemm_kernel(32), unknown));
  EXPECT_THAT(heuristic({.M = 0, .N = 512, .K = 1024}),
              ElementsAre(unknown, gemm_kernel(256), gemm_kernel(32)))
      << "no problem, so the order is that of the registry";
}

TEST(DispatcherHeuristic, NamesConvolutionsByTheirOperation) {
  const auto selector = conv_selector();
  const auto heuristic = conv_heuristic<TheirConvolution>(selector, {.dtype = DataType::kBf16});
  TheirConvolution problem{.N = 1, .C = 64, .K = 64, .op = TheirOperation::kBackwardData};
  const std::vector<std::string> small = heuristic(problem);
  EXPECT_THAT(small, IsSupersetOf({conv_kernel(16), conv_kernel(32), conv_kernel(64)}));
  problem.N = 64;
  EXPECT_NE(heuristic(problem).front(), small.front());
  problem.G = 3;
  EXPECT_TRUE(heuristic(problem).empty()) << "3 groups of 64 channels are no convolution";
}

TEST(DispatcherHeuristic, KernelsComeFromTheProgramsInAFolder) {
  const TemporaryFolder folder;
  const auto touch = [&](const std::string& name) {
    ASSERT_TRUE(write_text_file_atomically(folder / name, ""));
  };
  touch("benchmark_" + gemm_kernel(64));
  touch("lib" + conv_kernel(16) + ".so");
  touch("benchmark_gemm_universal_fp16_rcr_broken");
  touch("README.md");
  EXPECT_THAT(kernels_in(folder.path()), ElementsAre(gemm_kernel(64), conv_kernel(16)));
  EXPECT_TRUE(kernels_in(folder / "none").empty());
}

}  // namespace
}  // namespace foretune
