#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "foretune/space/schemas/cpu_gemm.h"
#include "foretune/space/schemas/cublaslt.h"
#include "foretune/space/schemas/cudnn.h"
#include "foretune/space/schemas/simulated.h"
#include "foretune/space/schemas/sparse_cpu.h"
#include "foretune/space/schemas/sparse_schedule.h"
#include "foretune/space/schemas/triton.h"

namespace foretune {
namespace {

// Data sets, models and configs in files hold these ids.
TEST(Schemas, KeepTheirIds) {
  EXPECT_EQ(cpu_gemm_schema().id(), 0x2287af7963d050b7U);
  EXPECT_EQ(cublaslt_schema().id(), 0xc89f683ca690d062U);
  EXPECT_EQ(cudnn_schema().id(), 0x732e410e8ad7adafU);
  EXPECT_EQ(triton_gemm_schema().id(), 0x92ea6b26f012dbbbU);
  EXPECT_EQ(triton_matmul_schema().id(), 0x42c4bf4e91a478c0U);
  EXPECT_EQ(diode_triton_schema().id(), 0x4ed9f2ea84f80458U);
  EXPECT_EQ(null_schema().id(), 0x1b2b55f433ef6ca6U);
  EXPECT_EQ(sparse_cpu_schema_v1().id(), 0x1a8ed6d978d20d66U);
  EXPECT_EQ(sparse_cpu_schema().id(), 0x18c0b4b50192953fU);
  EXPECT_EQ(sparse_schedule_schema().id(), 0x1917e833815749c0U);
}

TEST(Schemas, TheStructOfATritonConfigHasItsParametersInOrder) {
  const TritonConfig config{.kernel = TritonTemplate::kTile,
                            .block_m = 128,
                            .block_n = 256,
                            .block_k = 64,
                            .group_m = 8,
                            .num_stages = 3,
                            .num_warps = 4};
  EXPECT_EQ(to_text(triton_matmul_schema(), config.to_config()),
            "template=1 block_m=128 block_n=256 block_k=64 group_m=8 num_stages=3 num_warps=4");
  EXPECT_EQ(*TritonConfig::from(config.to_config()), config);
}

TEST(Schemas, TheStructOfACublasltConfigHasItsParametersInOrderAndReadsThemBack) {
  const CublasltConfig config{.heuristic = 0,
                              .algorithm = 66,
                              .tile = 23,
                              .stages = 35,
                              .split_k = 2,
                              .reduction = 4,
                              .swizzle = 1,
                              .custom = 5,
                              .cluster = 3,
                              .inner = 6};
  EXPECT_EQ(to_text(cublaslt_schema(), config.to_config()),
            "heuristic=0 algorithm=66 tile=23 stages=35 split_k=2 reduction=4 swizzle=1 custom=5 "
            "cluster=3 inner=6");
  EXPECT_EQ(cublaslt_schema().find("inner"), static_cast<std::size_t>(CublasltField::kInner));
  EXPECT_EQ(*CublasltConfig::from(config.to_config()), config);
  Config other = config.to_config();
  other.schema = 1;
  EXPECT_EQ(CublasltConfig::from(other).error().code, ErrorCode::kMismatch);
  other = config.to_config();
  other.words[2] = -1;
  EXPECT_EQ(CublasltConfig::from(other).error().code, ErrorCode::kInvalidArgument);
}

TEST(Schemas, ThePositionsOfCpuGemmAreThoseOfItsParameters) {
  const ConfigSchema& schema = cpu_gemm_schema();
  EXPECT_EQ(schema.parameters.size(), kCpuGemmWords);
  EXPECT_EQ(schema.find("order"), static_cast<std::size_t>(CpuGemmField::kOrder));
  EXPECT_EQ(schema.find("split"), static_cast<std::size_t>(CpuGemmField::kSplit));
  EXPECT_EQ(schema.parameters.back().labels[static_cast<std::size_t>(GemmSplit::kK)], "k");
}

TEST(Schemas, ConfigsOfTheFirstVersionOfSparseCpuAreRead) {
  const SparseCpuConfig config{.isa = CpuIsa::kAvx2,
                               .format = SparseFormat::kSell,
                               .vector = SparseVector::kRows,
                               .height = 8,
                               .window = 64};
  Config older = config.to_config();
  older.schema = sparse_cpu_schema_v1().id();
  EXPECT_EQ(SparseCpuConfig::from(older).error().code, ErrorCode::kMismatch);
  older.words.resize(sparse_cpu_schema_v1().parameters.size());
  EXPECT_EQ(*SparseCpuConfig::from(older), config);
  EXPECT_EQ(sparse_cpu_schema().parameters.size(), kSparseCpuWords);
  EXPECT_EQ(sparse_cpu_schema().find("prefetch"),
            static_cast<std::size_t>(SparseCpuField::kPrefetch));
}

TEST(Schemas, ACudnnConfigKeepsKnobsThatHaveNoPosition) {
  CudnnConfig config = CudnnConfig::of_engine(62);
  EXPECT_TRUE(config.set_knob(2, 12));
  EXPECT_TRUE(config.set_knob(60, 1));
  EXPECT_TRUE(config.set_knob(41, 7));
  const std::string text = to_text(cudnn_schema(), config.to_config());
  EXPECT_TRUE(
      text.starts_with("heuristic=none rank=0 engine=62 split_k=-1 tile_size=12 use_tex=-1"))
      << text;
  EXPECT_TRUE(
      text.ends_with("other1=41 other1_value=7 other2=60 other2_value=1 other3=-1 "
                     "other3_value=-1 other4=-1 other4_value=-1"))
      << text;
  const auto read = CudnnConfig::from(*parse_config(cudnn_schema(), text));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, config);
  EXPECT_EQ(read->knob(2), 12);
  EXPECT_EQ(read->knob(60), 1);
  EXPECT_EQ(read->knob(14), CudnnConfig::kDefault);
  EXPECT_TRUE(config.set_knob(41, CudnnConfig::kDefault));
  EXPECT_EQ(config.others[0], (CudnnConfig::Other{60, 1}));
  for (const std::int32_t type : {1, 4, 8}) {
    EXPECT_TRUE(config.set_knob(type, 0));
  }
  EXPECT_FALSE(config.set_knob(9, 0));
  EXPECT_TRUE(CudnnConfig::from(config.to_config()));
}

TEST(Schemas, ACudnnConfigHasOneForm) {
  EXPECT_TRUE(CudnnConfig::from(CudnnConfig::ranked(CudnnHeuristic::kB, 3).to_config()));
  const auto is_refused = [](const CudnnConfig& config) {
    return !CudnnConfig::from(config.to_config());
  };
  EXPECT_TRUE(is_refused({}));
  EXPECT_TRUE(is_refused(CudnnConfig::ranked(CudnnHeuristic::kA, 0)));
  EXPECT_TRUE(is_refused(CudnnConfig::ranked(CudnnHeuristic::kA, 257)));
  EXPECT_TRUE(is_refused(CudnnConfig::ranked(CudnnHeuristic::kNone, 1)));
  CudnnConfig config = CudnnConfig::ranked(CudnnHeuristic::kFallback, 1);
  config.engine = 0;
  EXPECT_TRUE(is_refused(config));
  config = CudnnConfig::of_engine(1);
  config.others[0] = {2, 1};  // a type with a position
  EXPECT_TRUE(is_refused(config));
  config.others = {CudnnConfig::Other{41, 1}, CudnnConfig::Other{40, 1}};
  EXPECT_TRUE(is_refused(config));
  config.others = {CudnnConfig::Other{}, CudnnConfig::Other{40, 1}};
  EXPECT_TRUE(is_refused(config));
  Config other = CudnnConfig::of_engine(1).to_config();
  other.schema = 1;
  EXPECT_EQ(CudnnConfig::from(other).error().code, ErrorCode::kMismatch);
}

}  // namespace
}  // namespace foretune
