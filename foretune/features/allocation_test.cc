// Extraction must not allocate: counted by replacing the global allocator.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/space/ck_kernels.h"

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t size) {
  allocations.fetch_add(1);
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1);
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace foretune {
namespace {

// Rows, parts and foreign rows of every table whose kernels have names.
TEST(FeatureTables, ExtractionDoesNotAllocate) {
  const Config gemm = parse_ck_gemm_name(
                          "gemm_universal_fp16_rcr_compv4_cshuffle_intrawave_False_False_False_"
                          "False_128x64x64_2x2x1_32x32x16")
                          .value()
                          .config;
  const Config conv =
      parse_ck_conv_name("grouped_conv_forward_bf16_2d_16x64x32_compv4_dsb").value().config;
  const Problem product = Problem::parse("gemm m=129 n=17 k=64 dtype=f16").value();
  const Problem convolution =
      Problem::parse("conv op=backward_data n=2 c=8 k=8 g=2 hi=9 wi=9 y=3 x=3").value();
  const Hardware hardware = known_device("gfx950").value().hardware;
  for (const char* name :
       {"gemm-ck", "gemm-ck-55", "gemm-ck-72", "grouped-conv", "grouped-conv-ck-83"}) {
    const FeatureTable& table = *find_feature_table(name).value();
    const bool is_gemm = std::string(name).rfind("gemm", 0) == 0;
    const Config& config = is_gemm ? gemm : conv;
    const Problem& problem = is_gemm ? product : convolution;
    std::vector<double> row(table.columns().size());
    const bool is_foreign = !foreign_order(table).empty();
    const std::size_t before = allocations.load();
    feature_row(table, problem, hardware, config, row);
    if (is_foreign) {
      foreign_row(table, problem, hardware, config, row);
    }
    EXPECT_EQ(allocations.load(), before) << name;
    EXPECT_GT(row[0], 0) << name;
  }
  // The counter counts.
  const std::size_t before = allocations.load();
  const std::vector<double> some(100);
  EXPECT_GT(allocations.load(), before);
  EXPECT_NE(some.data(), nullptr);
}

}  // namespace
}  // namespace foretune
