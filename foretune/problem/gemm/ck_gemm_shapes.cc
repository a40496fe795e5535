#include "foretune/problem/gemm/ck_gemm_shapes.h"

#include <cstdint>
#include <initializer_list>
#include <unordered_set>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using Sizes = std::initializer_list<std::int64_t>;

// Collects shapes; skips repeated ones.
class ShapeCollector {
 public:
  void gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
    auto made = GemmProblem::create(
        {.m = m, .n = n, .k = k, .dtype = DataType::kF16, .layout = GemmLayout::kRcr});
    FORETUNE_CHECK(made.has_value());
    take(made->to_problem());
  }
  void grid(Sizes ms, Sizes ns, Sizes ks) {
    for (const std::int64_t m : ms) {
      for (const std::int64_t n : ns) {
        for (const std::int64_t k : ks) {
          gemm(m, n, k);
        }
      }
    }
  }
  // Adds all m with each of some pairs of n and k: the layers of a model at several batch sizes.
  void layers(Sizes ms, std::initializer_list<std::pair<std::int64_t, std::int64_t>> pairs) {
    for (const std::int64_t m : ms) {
      for (const auto& [n, k] : pairs) {
        gemm(m, n, k);
      }
    }
  }
  void cubes(Sizes sizes) {
    for (const std::int64_t size : sizes) {
      gemm(size, size, size);
    }
  }

  std::vector<Problem> problems;

 private:
  void take(Problem problem) {
    if (seen_.insert(problem).second) {
      problems.push_back(std::move(problem));
    }
  }
  std::unordered_set<Problem> seen_;
};

std::vector<Problem> first_look() {
  ShapeCollector out;
  out.cubes({64, 128, 256, 512, 1024, 2048, 4096, 8192});
  out.grid({1, 8, 32, 128}, {4096}, {4096});
  for (const std::int64_t m : {1, 32}) {  // LLaMA with 7, 70 and again 70 billion weights
    out.gemm(m, 11008, 4096);
    out.gemm(m, 4096, 11008);
    out.gemm(m, 8192, 8192);
    out.gemm(m, 28672, 8192);
  }
  out.gemm(256, 256, 8192);
  out.gemm(8192, 8192, 256);
  out.gemm(1024, 4096, 1024);
  out.gemm(4096, 1024, 4096);
  out.gemm(512, 2048, 8192);
  return out.problems;
}

std::vector<Problem> wide_coverage() {
  ShapeCollector out;
  out.grid({1}, {512, 1024, 1536, 2048, 3072, 4096, 4608, 7168, 8192, 11008, 14336, 28672},
           {256, 512, 1024, 2048, 4096, 7168, 8192, 14336, 28672});
  out.grid({2, 3, 4, 6, 8, 12, 16}, {1024, 4096, 8192}, {512, 2048, 4096, 8192});
  out.grid({32, 48, 64, 96, 128}, {1024, 4096, 8192}, {512, 2048, 4096, 8192});
  out.grid({256, 512, 1024, 2048}, {512, 2048, 4096, 8192}, {512, 2048, 4096, 8192});
  out.grid({4096, 8192, 16384, 20480}, {1024, 4096, 8192}, {512, 2048, 4096});
  out.cubes({32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192});
  // Wide and tall results, long and short sums.
  out.grid({16, 64}, {14336, 18432, 24576, 28672}, {1024, 4096, 7168});
  out.grid({2048, 4096, 8192, 16384}, {32, 64, 128, 256}, {512, 2048, 4096});
  out.grid({16, 64, 128}, {64, 256}, {4096, 8192, 16384, 24576, 32768});
  out.grid({256, 1024, 4096}, {512, 2048}, {16, 32, 64, 96, 128});
  // Primes: no tile divides them.
  out.cubes({17, 31, 61, 127, 251, 509, 1021, 2039, 4093});
  out.grid({17, 127, 1021}, {31, 509, 4093}, {61, 251, 2039});
  // Layers of DeepSeek-V3, LLaMA and GPT-3.
  out.layers({1, 16, 64, 256, 1024, 4096}, {{1536, 7168},
                                            {3072, 1536},
                                            {4608, 7168},
                                            {7168, 2048},
                                            {7168, 2304},
                                            {512, 7168},
                                            {2112, 7168},
                                            {24576, 1536},
                                            {16384, 512}});
  out.layers({1, 16, 32, 128, 512, 2048}, {{11008, 4096},
                                           {4096, 11008},
                                           {4096, 4096},
                                           {13824, 5120},
                                           {28672, 8192},
                                           {8192, 28672},
                                           {8192, 8192}});
  out.layers({1, 8, 32, 512, 2048},
             {{2304, 768}, {3072, 768}, {768, 3072}, {36864, 12288}, {12288, 49152}});
  // Between the powers of two.
  out.cubes({48,  80,  112, 160, 176, 224,  240,  288,  320,  352,  448, 480,
             576, 640, 704, 832, 960, 1280, 1440, 1920, 2560, 3840, 5120});
  out.grid({48, 320, 1280, 3840}, {96, 640, 5120}, {80, 960, 3840, 6144});
  return out.problems;
}

std::vector<Problem> edge_dimensions() {
  const Sizes ms{1, 2, 7, 16, 32, 63, 128, 256, 511, 1024, 2048, 4096, 8192};
  const Sizes sizes{2, 3, 8, 16, 31, 64, 127, 256, 512, 1000, 1024, 2048, 4096, 8192};
  ShapeCollector out;
  out.grid(ms, {1}, sizes);
  out.grid(ms, sizes, {1});
  out.grid(ms, {2, 3, 4, 8, 15, 16, 32}, {4096});
  out.grid(ms, {4096}, {2, 3, 4, 8, 15, 16, 32});
  return out.problems;
}

}  // namespace

std::vector<NamedShapeSet> ck_gemm_shape_sets() {
  return {{"ck-25", "25 GEMMs: cubes, small batches, language models, extremes", &first_look},
          {"ck-wide", "706 GEMMs of every kind, primes among them", &wide_coverage},
          {"ck-edge", "546 GEMMs with n or k of 1, or one of them small", &edge_dimensions}};
}

}  // namespace foretune
