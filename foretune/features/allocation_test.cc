// Extraction must not allocate.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/testing/allocation_count.h"
#include "foretune/features/feature_table.h"
#include "foretune/features/testing/foreign_row.h"
#include "foretune/interop/ck/ck_kernels.h"

namespace foretune {
namespace {

// Rows, parts and foreign rows of every table whose kernels have names, and of a library's.
TEST(FeatureTables, ExtractionDoesNotAllocate) {
  const Config gemm = parse_ck_gemm_name(
                          "gemm_universal_fp16_rcr_compv4_cshuffle_intrawave_False_False_False_"
                          "False_128x64x64_2x2x1_32x32x16")
                          .value()
                          .config;
  const Config conv =
      parse_ck_conv_name("grouped_conv_forward_bf16_2d_16x64x32_compv4_dsb").value().config;
  const Config library{.schema = 0, .words = {0, 66, 20, 35, 2, 2, 0, 0, 3, 0}};
  const Config tile{.schema = 0, .words = {1, 128, 64, 32, 8, 3, 4}};
  const Problem product = Problem::parse("gemm m=129 n=17 k=64 dtype=f16").value();
  const Problem convolution =
      Problem::parse("conv op=backward_data n=2 c=8 k=8 g=2 hi=9 wi=9 y=3 x=3").value();
  const Hardware hardware = known_device("gfx950").value().hardware;
  for (const char* name : {"gemm-ck", "gemm-ck-55", "gemm-ck-72", "grouped-conv",
                           "grouped-conv-ck-83", "grouped-conv-ck-91", "grouped-conv-ck-97",
                           "gemm-cublaslt", "gemm-diode-v1", "gemm-diode"}) {
    const FeatureTable& table = *find_feature_table(name).value();
    const bool is_gemm = std::string(name).rfind("gemm", 0) == 0;
    const bool is_diode = std::string(name).rfind("gemm-diode", 0) == 0;
    const Config& config = std::string(name) == "gemm-cublaslt" ? library
                           : is_diode                           ? tile
                           : is_gemm                            ? gemm
                                                                : conv;
    const Problem& problem = is_gemm ? product : convolution;
    std::vector<double> row(table.columns().size());
    const bool is_foreign = !foreign_order(table).empty();
    const std::uint64_t before = allocation_count();
    feature_row(table, problem, hardware, config, row);
    if (is_foreign) {
      foreign_row(table, problem, hardware, config, row);
    }
    EXPECT_EQ(allocation_count(), before) << name;
    EXPECT_GT(row[0], 0) << name;
  }
  // The counter counts.
  const std::uint64_t before = allocation_count();
  const std::vector<double> some(100);
  EXPECT_GT(allocation_count(), before);
  EXPECT_NE(some.data(), nullptr);
}

}  // namespace
}  // namespace foretune
