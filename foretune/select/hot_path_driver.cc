// What hot_path_test counts: one function that answers problems, everything else around it.
//
//   select_hot_path_driver cached|uncached
#include <cstdio>
#include <string_view>

#include "foretune/models/infer/model_samples.h"
#include "foretune/select/select.h"

extern "C" __attribute__((noinline)) std::uint64_t foretune_hot_path(
    const foretune::Selector& selector, const std::vector<foretune::Problem>& problems,
    bool cached);

std::uint64_t foretune_hot_path(const foretune::Selector& selector,
                                const std::vector<foretune::Problem>& problems, bool cached) {
  std::uint64_t sum = 0;
  for (const foretune::Problem& problem : problems) {
    sum +=
        cached ? selector.select(problem).candidate : selector.select_uncached(problem).candidate;
  }
  return sum;
}

int main(int argc, char** argv) {
  const std::string_view mode = argc == 2 ? argv[1] : "";
  if (mode != "cached" && mode != "uncached") {
    std::fprintf(stderr, "usage: select_hot_path_driver cached|uncached\n");
    return 2;
  }
  foretune::Rng rng(61);
  const foretune::Model model = foretune::sample_model(
      {.candidates = 512,
       .forest = {.trees = 100, .max_leaves = 63, .vary_leaves = false, .any_missing = false}},
      rng);
  const auto selector = foretune::Selector::create(model);
  if (!selector) {
    std::fprintf(stderr, "%s\n", selector.error().message.c_str());
    return 1;
  }
  std::vector<foretune::Problem> problems;
  while (problems.size() < 10) {
    const foretune::Problem problem = foretune::sample_gemm(rng);
    if ((*selector)->select(problem).picked()) {
      problems.push_back(problem);
    }
  }
  std::printf("%llu\n", static_cast<unsigned long long>(
                            foretune_hot_path(**selector, problems, mode == "cached")));
  return 0;
}
