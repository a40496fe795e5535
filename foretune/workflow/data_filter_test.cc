#include "foretune/workflow/data_filter.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "foretune/base/text.h"
#include "foretune/hardware/hardware.h"
#include "foretune/interop/ck/ck_kernels.h"

namespace foretune::workflow {
namespace {

Dataset convolutions(const char* device = "gfx950") {
  DatasetHeader header;
  header.family = "recorded";
  header.problem_type = find_problem_schema("conv")->type;
  header.config_schema = ck_grouped_conv_schema();
  header.fingerprint = known_device(device).value();
  Dataset dataset(header);
  const Config config =
      parse_ck_conv_name("grouped_conv_forward_bf16_2d_64x64x64_compv3").value().config;
  for (const char* const op : {"forward", "backward_data", "backward_weight"}) {
    for (const char* const dtype : {"bf16", "f8e4m3"}) {
      Measurement measurement{
          .problem = Problem::parse(
                         concat("conv op=", op, " n=1 c=64 k=64 hi=8 wi=8 y=3 x=3 dtype=", dtype))
                         .value(),
          .config = config,
          .context = {},
          .metrics = {}};
      measurement.metrics.emplace_back(kTimeNs, 1000.0, 0.0, 1U);
      dataset.add(measurement);
    }
  }
  return dataset;
}

// "forward bf16", ... of what passes.
std::set<std::string> passing(const DataFilter& filter) {
  std::set<std::string> out;
  const Dataset left = filter.apply(convolutions());
  for (const Problem& problem : left.problems()) {
    out.insert(concat(problem.field_text(*problem.schema().find("op")), " ",
                      problem.field_text(*problem.schema().find("dtype"))));
  }
  return out;
}

using Passing = std::set<std::string>;
const Passing kAll{"forward bf16",         "forward f8e4m3",       "backward_data bf16",
                   "backward_data f8e4m3", "backward_weight bf16", "backward_weight f8e4m3"};

TEST(DataFilter, TakesOperationsByTheirNamesHereAndThere) {
  const Passing data{"backward_data bf16", "backward_data f8e4m3"};
  EXPECT_EQ(passing({.op = "backward_data"}), data);
  EXPECT_EQ(passing({.op = "bwd_data"}), data);
  EXPECT_EQ(passing({.op = "grouped_conv_bwd_data"}), data);
  EXPECT_EQ(passing({.op = "conv"}), kAll);
  EXPECT_EQ(passing({.op = "grouped_conv"}), kAll);
  for (const char* const none : {"gemm", "gemm_universal", "grouped_conv_", "grouped_convforward",
                                 "grouped_conv_sideways", "data"}) {
    EXPECT_EQ(passing({.op = none}), Passing{}) << none;
  }
}

TEST(DataFilter, TellsKernelsOfStreamkFromOthers) {
  for (const bool is_streamk : {false, true}) {
    const Config config =
        parse_ck_gemm_name(concat("gemm_", is_streamk ? "streamk" : "universal",
                                  "_fp16_rcr_compv4_cshuffle_intrawave", is_streamk ? "_tree" : "",
                                  "_False_False_False_False_128x128x128_1x4x1_16x16x128"))
            .value()
            .config;
    DatasetHeader header;
    header.family = "recorded";
    header.config_schema = is_streamk ? ck_gemm_streamk_schema() : ck_gemm_schema();
    Dataset dataset(header);
    Measurement measurement{.problem = Problem::parse("gemm m=8 n=8 k=8").value(),
                            .config = config,
                            .context = {},
                            .metrics = {}};
    measurement.metrics.emplace_back(kTimeNs, 1000.0, 0.0, 1U);
    dataset.add(measurement);
    const auto passes = [&](const char* op) {
      return DataFilter{.op = op}.apply(dataset).size() == 1;
    };
    EXPECT_TRUE(passes("gemm"));
    EXPECT_EQ(passes("gemm_universal"), !is_streamk);
    EXPECT_EQ(passes("gemm_streamk"), is_streamk);
  }
}

TEST(DataFilter, TakesTypesByTheirNamesHereAndThere) {
  const Passing fp8{"forward f8e4m3", "backward_data f8e4m3", "backward_weight f8e4m3"};
  EXPECT_EQ(passing({.dtype = "f8e4m3"}), fp8);
  EXPECT_EQ(passing({.dtype = "fp8"}), fp8);
  EXPECT_EQ(passing({.dtype = "f32"}), Passing{});
  EXPECT_EQ(passing({.op = "forward", .dtype = "bf16"}), Passing{"forward bf16"});
}

TEST(DataFilter, TakesDataSetsOfADevice) {
  for (const char* const name : {"gfx950", "mi355x"}) {
    EXPECT_EQ(passing({.arch = name}), kAll) << name;
  }
  for (const char* const other : {"gfx942", "gfx95", "h200"}) {
    EXPECT_EQ(passing({.arch = other}), Passing{}) << other;
  }
  Dataset dataset = convolutions();
  dataset.mutable_header().fingerprint.isa = "gfx950:sramecc+:xnack-";
  EXPECT_EQ(DataFilter{.arch = "gfx950"}.apply(dataset).size(), dataset.size());
}

TEST(DataFilter, WithoutOptionsNothingChangesAndNothingLeftIsAnError) {
  const Dataset dataset = convolutions();
  EXPECT_EQ(DataFilter{}.apply_to_all(dataset)->fingerprint(), dataset.fingerprint());
  const auto none = DataFilter{.op = "forward", .dtype = "f16"}.apply_to_all(dataset);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_NE(none.error().message.find("--op forward --dtype f16"), std::string::npos);
}

}  // namespace
}  // namespace foretune::workflow
