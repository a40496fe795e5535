// The program whose instructions hot_path_test counts: one function answers problems, all other
// code is outside of it.
//
//   select_hot_path_driver cached|exact|exact-portable|fast
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/forest/forest_scorer.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/select/select.h"

namespace foretune {

struct HotPath {
  std::string_view mode;
  std::unique_ptr<Selector> selector;
  std::unique_ptr<Scorer> portable;
  std::unique_ptr<PreparedPool> portable_pool;
  std::vector<std::byte> workspace;
  std::vector<double> scores;
  std::vector<Problem> problems;
};

}  // namespace foretune

extern "C" __attribute__((noinline)) std::uint64_t foretune_hot_path(foretune::HotPath& path);

std::uint64_t foretune_hot_path(foretune::HotPath& path) {
  std::uint64_t sum = 0;
  for (const foretune::Problem& problem : path.problems) {
    if (path.mode == "cached") {
      sum += path.selector->select(problem).candidate;
    } else if (path.mode == "fast") {
      sum += path.selector->select_fast(problem, 1).choice.candidate;
    } else if (path.mode == "exact") {
      sum += path.selector->select_uncached(problem).candidate;
    } else {
      path.portable_pool->score(problem, path.workspace, path.scores, {});
      sum += path.scores.front() < 0 ? 1U : 0U;
    }
  }
  return sum;
}

namespace foretune {
namespace {

Status prepare_portable(const Model& model, HotPath& path) {
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  FORETUNE_TRY(path.portable, forest_scorer(forests_of(model), *table, 0, CpuIsa::kGeneric));
  FORETUNE_TRY(path.portable_pool,
               path.portable->prepare(ConfigList(model.pool), model.fingerprint.hardware));
  path.workspace.resize(path.portable_pool->workspace_bytes());
  path.scores.resize(path.portable_pool->size());
  return {};
}

Result<std::uint64_t> run(std::string_view mode) {
  Rng rng(61);
  const Model model = sample_model_with_distilled(
      {.candidates = 512,
       .forest = {.trees = 100, .max_leaves = 63, .vary_leaves = false, .any_missing = false}},
      rng);
  HotPath path{.mode = mode};
  FORETUNE_TRY_STATUS(prepare_portable(model, path));
  FORETUNE_TRY(path.selector, Selector::create(model));
  while (path.problems.size() < 10) {
    const Problem problem = sample_gemm(rng);
    const bool is_answered = mode == "fast" ? !path.selector->select_fast(problem, 1).exact
                                            : path.selector->select(problem).picked();
    if (is_answered) {
      path.problems.push_back(problem);
    }
  }
  return foretune_hot_path(path);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  const std::string_view mode = argc == 2 ? argv[1] : "";
  if (mode != "cached" && mode != "exact" && mode != "exact-portable" && mode != "fast") {
    std::fprintf(stderr, "usage: select_hot_path_driver cached|exact|exact-portable|fast\n");
    return 2;
  }
  const foretune::Result<std::uint64_t> sum = foretune::run(mode);
  if (!sum) {
    std::fprintf(stderr, "%s\n", sum.error().message.c_str());
    return 1;
  }
  std::printf("%llu\n", static_cast<unsigned long long>(*sum));
  return 0;
}
