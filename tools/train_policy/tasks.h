// The computations that a policy learns from. Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/gym/benchmarks.h"

namespace foretune::policy_training {

// Products, convolutions (depthwise, strided and 7x7 among them), reductions and elementwise
// chains of at most some 60 million operations, and products alone. LoopTune's 25 test products
// are never among them.
std::vector<loop::gym::Benchmark> draw_mixed(std::size_t count, std::uint64_t seed);
std::vector<loop::gym::Benchmark> draw_products(std::size_t count, std::uint64_t seed);

// Takes "mixed", "products", or what load_benchmarks() takes, several joined by ';'. Errors: those
// of load_benchmarks().
Result<std::vector<loop::gym::Benchmark>> benchmarks_of(std::string_view name, std::size_t count,
                                                        std::uint64_t seed);

}  // namespace foretune::policy_training
