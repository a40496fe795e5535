#include "foretune/workflow/kernel_pool.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/interop/ck/ck_kernels.h"

namespace foretune::workflow {
namespace {

Dataset dataset_of(const ConfigSchema& schema, std::string_view problem) {
  DatasetHeader header;
  header.family = "recorded";
  header.config_schema = schema;
  Dataset dataset(header);
  dataset.intern_problem(Problem::parse(problem).value());
  dataset.mutable_header().problem_type = dataset.problems().front().type();
  return dataset;
}

TEST(KernelNames, AreReadOnePerLine) {
  const testing_support::TemporaryFolder folder;
  ASSERT_TRUE(
      write_text_file_atomically(folder / "names.txt", "# built\n a=1 \n\n\tb=2 | c\r\n#c\n"));
  EXPECT_EQ(read_kernel_names((folder / "names.txt").string()).value(),
            (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_FALSE(read_kernel_names((folder / "other.txt").string()));
}

TEST(KernelNames, OfComposableKernelFitTheProblems) {
  const Dataset dataset = dataset_of(ck_grouped_conv_schema(),
                                     "conv op=forward n=1 c=64 k=64 hi=8 wi=8 y=3 x=3 dtype=bf16");
  const std::vector<std::string> good{"grouped_conv_forward_bf16_2d_64x64x64_mem_intrawave",
                                      "grouped_conv_forward_bf16_2d_16x64x128_compv3"};
  const auto configs = configs_of_kernels(good, dataset);
  ASSERT_TRUE(configs) << configs.error().message;
  ASSERT_EQ(configs->size(), 2U);
  EXPECT_EQ(configs->at(1), parse_ck_conv_name(good[1])->config);
  const auto code = [&](const std::string& name) {
    const std::vector<std::string> names{good[0], name};
    const auto found = configs_of_kernels(names, dataset);
    return found ? ErrorCode::kInternal : found.error().code;
  };
  EXPECT_EQ(code("grouped_conv_forward_fp16_2d_64x64x64_compv3"), ErrorCode::kMismatch);
  EXPECT_EQ(code("grouped_conv_bwd_data_bf16_2d_64x64x64_compv3"), ErrorCode::kMismatch);
  EXPECT_EQ(code("grouped_conv_forward_bf16_2d_64x64x64_compv9"), ErrorCode::kInvalidArgument);
  const Dataset gemms = dataset_of(ck_gemm_schema(), "gemm m=8 n=8 k=8 dtype=f8e4m3 layout=rcr");
  const std::vector<std::string> rrr{
      "gemm_universal_fp8_rrr_compv3_cshuffle_intrawave_False_False_False_False_128x128x128_1x4x1_"
      "16x16x128"};
  EXPECT_EQ(configs_of_kernels(rrr, gemms).error().code, ErrorCode::kMismatch);
}

TEST(KernelNames, OfAFolderOfProgramsAreThoseForTheData) {
  const testing_support::TemporaryFolder folder;
  const Dataset dataset = dataset_of(ck_grouped_conv_schema(),
                                     "conv op=forward n=1 c=64 k=64 hi=8 wi=8 y=3 x=3 dtype=bf16");
  const std::filesystem::path programs = folder / "programs";
  std::filesystem::create_directories(programs);
  const auto read = [&]() -> Result<std::vector<Config>> {
    return read_candidates(programs, dataset, {});
  };
  ASSERT_TRUE(write_text_file_atomically(
      programs / "benchmark_grouped_conv_bwd_data_bf16_2d_64x64x64_compv3", ""));
  EXPECT_EQ(read().error().code, ErrorCode::kNotFound);
  const std::string name = "grouped_conv_forward_bf16_2d_64x64x64_mem_intrawave";
  ASSERT_TRUE(write_text_file_atomically(programs / ("benchmark_" + name), ""));
  const auto configs = read();
  ASSERT_TRUE(configs) << configs.error().message;
  EXPECT_EQ(*configs, std::vector<Config>{parse_ck_conv_name(name)->config});
}

TEST(KernelNames, OfOtherSchemasAreTextsOfConfigs) {
  const ConfigSchema schema{.name = "tiles", .parameters = {{"a", {}}, {"b", {}}}};
  const Dataset dataset = dataset_of(schema, "gemm m=8 n=8 k=8");
  const std::vector<std::string> names{"b=2 a=1"};
  const auto configs = configs_of_kernels(names, dataset);
  ASSERT_TRUE(configs && configs->size() == 1) << configs.error().message;
  EXPECT_EQ(to_text(schema, configs->front()), "a=1 b=2");
  const std::vector<std::string> wrong{"a=1"};
  const auto missing = configs_of_kernels(wrong, dataset);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("candidate 'a=1'"), std::string::npos);
}

}  // namespace
}  // namespace foretune::workflow
