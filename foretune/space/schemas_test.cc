#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "foretune/space/schemas/cpu_gemm.h"
#include "foretune/space/schemas/cublaslt.h"
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

}  // namespace
}  // namespace foretune
