// Tests the family on the device that tests/fake_gpu plays, with kernels that it can play, too.
#include "foretune/families/triton/triton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/cuda/kernel_file.h"
#include "foretune/families/families.h"
#include "foretune/families/testing/faulty_worker.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing_support::quick;

GemmSizes small(DataType dtype = DataType::kBf16, GemmLayout layout = GemmLayout::kRcr) {
  return {.m = 200, .n = 136, .k = 192, .dtype = dtype, .layout = layout};
}

Problem problem_of(const GemmSizes& sizes) { return GemmProblem::create(sizes)->to_problem(); }

// Returns a config with blocks of 2 n by n by k.
constexpr TritonConfig blocks_of(TritonTemplate kernel, std::int32_t n, std::int32_t k) {
  return {.kernel = kernel,
          .block_m = 2 * n,
          .block_n = n,
          .block_k = k,
          .group_m = 8,
          .num_stages = 3,
          .num_warps = 4};
}
constexpr TritonConfig kTile = blocks_of(TritonTemplate::kTile, 32, 32);
constexpr TritonConfig kPersistent = blocks_of(TritonTemplate::kPersistent, 64, 64);

class TritonTest : public testing::Test {
 protected:
  // Writes a file with every kernel that the problems need, except those that do not compile.
  FamilyOptions options(const std::vector<GemmSizes>& problems, const std::string& failing = "-") {
    const std::string path = (folder_ / concat("kernels", files_++, ".ftk")).string();
    const auto out = *cuda::KernelFileWriter::open(path, {"sm_90", "triton-3.6.0"});
    std::set<std::string> keys;
    for (const GemmSizes& sizes : problems) {
      const auto needed = triton_kernel_keys(*GemmProblem::create(sizes), Hardware());
      keys.insert(needed->begin(), needed->end());
    }
    for (const std::string& key : keys) {
      const bool fails = key.find(failing) != std::string::npos;
      cuda::CompiledKernel kernel{.key = key, .error = fails ? "no registers left" : ""};
      if (!fails) {
        const std::size_t warps = key.find("num_warps=");
        kernel.function = "matmul";
        kernel.threads = static_cast<std::uint32_t>(32 * *parse_int(key.substr(warps + 10)));
        kernel.shared_bytes = 64U << 10U;
        kernel.scratch_bytes = key.starts_with("template=2") ? 384 : 0;
        const std::string image = "foretune fake triton kernel\n" + key + '\0';
        const auto bytes = std::as_bytes(std::span(image));
        kernel.image.assign(bytes.begin(), bytes.end());
      }
      EXPECT_TRUE(out->append(kernel));
    }
    return {.parameters = {{"kernels", path},
                           {"driver", FORETUNE_FAKE_GPU},
                           {"nvml", FORETUNE_FAKE_GPU},
                           {"cublaslt", FORETUNE_FAKE_GPU}}};
  }

  static std::shared_ptr<const Family> family(FamilyOptions options) {
    options.fingerprint = *(*make_triton(options))->read_device();
    return *make_triton(options);
  }

  testing_support::TemporaryFolder folder_;
  int files_ = 0;
};

TEST(TritonConfig, SurvivesTheTripAndRefusesTheRest) {
  for (const TritonConfig& config : {TritonConfig(), kTile, kPersistent}) {
    EXPECT_EQ(*TritonConfig::from(config.to_config()), config);
  }
  Config other = kTile.to_config();
  other.schema = 1;
  EXPECT_EQ(TritonConfig::from(other).error().code, ErrorCode::kMismatch);
  other = kTile.to_config();
  other.words[0] = 3;
  EXPECT_EQ(TritonConfig::from(other).error().code, ErrorCode::kInvalidArgument);
  other.words[0] = 0;  // the library with a tile
  EXPECT_EQ(TritonConfig::from(other).error().code, ErrorCode::kInvalidArgument);
  other = kTile.to_config();
  other.words[2] = 0;
  EXPECT_EQ(TritonConfig::from(other).error().code, ErrorCode::kInvalidArgument);
}

TEST(TritonSpace, SaysWhatIsNotLegal) {
  const auto space = *CompiledSpace::create(triton_matmul_space());
  const auto why_not = [&](TritonConfig config, const GemmSizes& sizes = small()) {
    return space->why_not(config.to_config(), problem_of(sizes), Hardware());
  };
  EXPECT_TRUE(why_not({}));
  EXPECT_TRUE(why_not(kTile));
  EXPECT_TRUE(why_not(kPersistent));
  TritonConfig config = kTile;
  config.num_warps = 2;
  EXPECT_TRUE(why_not(config));
  config.block_m = 256;
  config.block_n = 32;
  EXPECT_NE(why_not(config).reason().find("two warps"), std::string::npos);
  config = {TritonTemplate::kTile, 256, 256, 32, 8, 2, 8};
  EXPECT_NE(why_not(config).reason().find("registers"), std::string::npos);
  config = {TritonTemplate::kTile, 128, 256, 128, 8, 4, 8};
  EXPECT_NE(why_not(config).reason().find("shared memory"), std::string::npos);
  // Each element has twice as many bytes.
  config = {TritonTemplate::kTile, 128, 128, 128, 8, 3, 8};
  EXPECT_TRUE(why_not(config));
  EXPECT_FALSE(why_not(config, small(DataType::kF32)));
  GemmSizes odd = small();
  odd.k = 193;
  EXPECT_TRUE(why_not(kTile, odd));
  EXPECT_NE(why_not(kPersistent, odd).reason().find("tensor descriptors"), std::string::npos);
}

TEST(TritonSpace, HasSixHundredTilesForALargeProduct) {
  const auto keys = *triton_kernel_keys(
      *GemmProblem::create({.m = 4096, .n = 4096, .k = 4096, .dtype = DataType::kBf16}),
      Hardware());
  const auto persistent =
      std::ranges::count_if(keys, [](const auto& key) { return key.starts_with("template=2"); });
  EXPECT_GE(static_cast<std::ptrdiff_t>(keys.size()) - persistent, 500);
  EXPECT_GE(persistent, 30);
  EXPECT_LE(keys.size(), 800U);
}

TEST(TritonKernelKey, SaysWhatTheCompilerMayRelyOn) {
  const auto key = [](GemmSizes sizes, TritonConfig config) {
    return triton_kernel_key(*GemmProblem::create(sizes), config);
  };
  EXPECT_EQ(key(small(), kTile),
            "template=1 dtype=bf16 layout=rcr epilogue=none even_k=1 aligned=1 block_m=64 "
            "block_n=32 block_k=32 group_m=8 num_stages=3 num_warps=4");
  GemmSizes sizes = small(DataType::kF16, GemmLayout::kCrr);
  sizes.k = 200;
  sizes.operation = GemmOperation::kAddmmRelu;
  const std::string other = key(sizes, kTile);
  EXPECT_NE(other.find("dtype=f16 layout=crr epilogue=bias_relu even_k=0 aligned=1"),
            std::string::npos)
      << other;
  sizes.operation = GemmOperation::kAddmmGelu;
  EXPECT_NE(key(sizes, kTile).find("epilogue=bias_gelu"), std::string::npos);
  // Descriptors need no even k; rows of 201 elements may begin at any address.
  EXPECT_NE(key(sizes, kPersistent).find("even_k=1"), std::string::npos);
  sizes.m = 201;
  EXPECT_NE(key(sizes, kTile).find("aligned=0"), std::string::npos);
}

TEST(Triton, KnowsItsProblemsAndOptionsWithoutADevice) {
  const auto family = *make_triton({});
  const auto supports = [&](const GemmSizes& sizes) { return family->supports(problem_of(sizes)); };
  for (const DataType type : {DataType::kBf16, DataType::kF16, DataType::kF32, DataType::kTf32}) {
    EXPECT_TRUE(supports(small(type)));
  }
  EXPECT_FALSE(supports(small(DataType::kF8e4m3)));
  EXPECT_NE(supports({.m = 1 << 16, .n = 1 << 16, .k = 8, .dtype = DataType::kBf16})
                .reason()
                .find("elements"),
            std::string::npos);
  EXPECT_FALSE(supports({.m = 8,
                         .n = 8,
                         .k = 8,
                         .batch = 70000,
                         .operation = GemmOperation::kBmm,
                         .dtype = DataType::kBf16}));
  const std::vector<Config> defaults = family->default_configs(problem_of(small()));
  ASSERT_EQ(defaults.size(), 1U);
  EXPECT_EQ(defaults[0], TritonConfig().to_config());
  // Without a file of kernels the space has all legal configs.
  EXPECT_GT((*family->space(problem_of(small())))->enumerable()->count(), 300U);
  FamilyOptions unknown;
  unknown.parameters = {{"tile", "3"}};
  EXPECT_NE(make_triton(unknown).error().message.find("no option 'tile'"), std::string::npos);
  unknown.parameters = {{"kernels", "/no/such/file"}};
  EXPECT_NE(make_triton(unknown).error().message.find("/no/such/file"), std::string::npos);
}

TEST_F(TritonTest, TheCompilerIsPartOfTheFingerprint) {
  EXPECT_EQ(family(options({small()}))->info().fingerprint.isa, "sm_90 cublaslt-13.0 triton-3.6.0");
}

TEST_F(TritonTest, MeasuresKernelsOfAllKinds) {
  std::vector<GemmSizes> problems;
  for (const GemmLayout layout :
       {GemmLayout::kRrr, GemmLayout::kRcr, GemmLayout::kCrr, GemmLayout::kCcr}) {
    problems.push_back(small(DataType::kBf16, layout));
  }
  for (const DataType type : {DataType::kF16, DataType::kF32, DataType::kTf32}) {
    problems.push_back(small(type));
  }
  problems.push_back(small());
  problems.back().operation = GemmOperation::kAddmm;
  problems.push_back(small(DataType::kBf16, GemmLayout::kRrr));
  problems.back().operation = GemmOperation::kAddmmRelu;
  problems.push_back(small());
  problems.back().operation = GemmOperation::kAddmmGelu;
  problems.push_back(small());
  problems.back().operation = GemmOperation::kBmm;
  problems.back().batch = 3;
  // This problem has one row, odd sizes, and a depth that no block divides.
  problems.push_back({.m = 1, .n = 77, .k = 33, .dtype = DataType::kBf16});
  const auto triton = family(options(problems));
  const auto measurer = make_local_measurer(triton, quick(), Context{});
  for (const GemmSizes& sizes : problems) {
    const Problem problem = problem_of(sizes);
    TritonConfig tile = kTile;
    tile.block_m = sizes.m == 1 ? 16 : 64;
    for (const TritonConfig& config : {TritonConfig(), tile, kPersistent}) {
      if (!(*triton->space(problem))->why_not(config.to_config())) {
        EXPECT_EQ(config, kPersistent);
        continue;
      }
      const Measurement measured =
          measurer->measure({.problem = problem, .config = config.to_config()});
      EXPECT_EQ(measured.outcome, Outcome::kOk) << problem.text() << ": " << measured.reason;
      EXPECT_GT(measured.find(kTimeNs)->value, 2000);
    }
  }
}

TEST_F(TritonTest, ConfigsWithoutAKernelAreNotInTheSpace) {
  // The file has kernels for one type only, and those with block_n=128 do not compile.
  const auto triton = family(options({small()}, "block_n=128"));
  const auto space = *triton->space(problem_of(small()));
  EXPECT_TRUE(space->why_not(kTile.to_config()));
  const auto other = *triton->space(problem_of(small(DataType::kF16)));
  ASSERT_EQ(other->enumerable()->count(), 1U);
  EXPECT_EQ(other->enumerable()->unrank(0), TritonConfig().to_config());
  EXPECT_NE(other->why_not(kTile.to_config()).reason().find("compiled kernels"), std::string::npos);
  // A kernel that does not compile is an outcome, with the compiler's reason.
  TritonConfig failing = kTile;
  failing.block_n = 128;
  const Measurement failed =
      make_local_measurer(triton, quick(), Context{})
          ->measure({.problem = problem_of(small()), .config = failing.to_config()});
  EXPECT_NE(failed.outcome, Outcome::kOk);
  EXPECT_NE(failed.reason.find("no registers left"), std::string::npos) << failed.reason;
}

TEST_F(TritonTest, WrongResultsAndLostDevicesAreOutcomes) {
  const FamilyOptions fake = options({small()});
  const Request request{.problem = problem_of(small()), .config = kTile.to_config()};
  const Request other{.problem = problem_of(small()), .config = kPersistent.to_config()};
  for (const auto& [fault, outcome] : std::vector<std::pair<std::string, Outcome>>{
           {"wrong:64032", Outcome::kWrongResult}, {"crash:64032", Outcome::kCrashed}}) {
    const auto measurer = testing_support::faulty_worker(fault, "triton", fake);
    EXPECT_EQ(measurer->measure(request).outcome, outcome) << fault;
    EXPECT_EQ(measurer->measure(other).outcome, Outcome::kOk) << fault;
  }
}

TEST_F(TritonTest, KernelsForAnotherDeviceAreRefused) {
  const std::string path = (folder_ / "old.ftk").string();
  {
    ASSERT_TRUE(cuda::KernelFileWriter::open(path, {"sm_80", "triton-3.6.0"}));
  }
  FamilyOptions fake = options({small()});
  fake.parameters[0].second = path;
  const auto fingerprint = (*make_triton(fake))->read_device();
  ASSERT_FALSE(fingerprint);
  EXPECT_EQ(fingerprint.error().code, ErrorCode::kMismatch);
  EXPECT_NE(fingerprint.error().message.find("sm_80"), std::string::npos);
}

}  // namespace
}  // namespace foretune
