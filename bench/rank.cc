// How long a model takes to rank the configs of a new problem, on one core.
//
//   rank --model python/foretune/models/triton-sm_90.ftm --shapes bench/shapes/cublaslt_test.csv
//        [--candidates 1206] [--runs 9] [--json FILE]
//
// The model's pool is brought to --candidates configs by neighbours of its own configs (each block
// size halved or doubled, one stage more or less), all of which count as legal: PyTorch's
// exhaustive list for a large bf16 product has 1,206. Medians over the problems of --shapes and the
// rounds; features, scores and the pick are included, as Selector::select_uncached does it. The
// fast mode's time is that of the model's own pool.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/selection_time.h"
#include "foretune/base/file.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/model/model_file.h"
#include "foretune/select/select.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

constexpr std::size_t kLaunchPostCandidates = 1206;

std::vector<Config> neighbours_of(const Config& config, const ConfigSchema& schema) {
  std::vector<Config> near;
  for (std::size_t i = 0; i < config.words.size(); ++i) {
    const std::string& name = schema.parameters[i].name;
    const std::int32_t word = config.words[i];
    std::vector<std::int32_t> others;
    if (name.starts_with("block_") && word > 0) {
      others = {word / 2, word * 2};
    } else if (name == "num_stages" && word > 0) {
      others = {word - 1, word + 1};
    }
    for (const std::int32_t other : others) {
      if (other > 0) {
        near.push_back(config);
        near.back().words[i] = other;
      }
    }
  }
  return near;
}

void extend_pool(Model& model, std::size_t wanted) {
  std::set<Config> known(model.pool.begin(), model.pool.end());
  for (std::size_t i = 0; i < model.pool.size() && model.pool.size() < wanted; ++i) {
    for (Config& config : neighbours_of(model.pool[i], model.config_schema)) {
      if (model.pool.size() < wanted && known.insert(config).second) {
        model.pool.push_back(std::move(config));
      }
    }
  }
}

// Known by its constraints alone, of which there are none.
Status forget_rules(Model& model) {
  FORETUNE_TRY(SpaceDefinition space, SpaceDefinition::parse(model.space_text));
  space.domains.clear();
  space.constraints.clear();
  space.canonical.clear();
  model.space_text = space.text();
  model.distilled.reset();
  return {};
}

Status run(int argc, char** argv, Figures& figures) {
  const std::string path = bench::argument(argc, argv, "model");
  const auto wanted =
      bench::count_argument<std::size_t>(argc, argv, "candidates", kLaunchPostCandidates);
  const int runs = static_cast<int>(bench::count_argument<unsigned>(argc, argv, "runs", 9));
  FORETUNE_TRY(const std::string text, read_text_file(bench::argument(argc, argv, "shapes")));
  FORETUNE_TRY(const std::vector<Problem> problems, parse_shape_set(text));
  FORETUNE_TRY(const std::unique_ptr<Selector> own, Selector::open(path));
  FORETUNE_TRY(Model model, read_model(path));
  const std::size_t own_pool = model.pool.size();
  extend_pool(model, wanted);
  FORETUNE_TRY_STATUS(forget_rules(model));
  const std::size_t pool = model.pool.size();
  FORETUNE_TRY(const std::unique_ptr<Selector> extended, Selector::create(std::move(model)));
  const double own_us = bench::selection_us(*own, problems, runs, false);
  const double extended_us = bench::selection_us(*extended, problems, runs, false);
  const double fast_us = bench::selection_us(*own, problems, runs, true);
  std::printf(
      "%zu problems: %zu candidates in %.0f us, the model's own %zu (those that are legal) "
      "in %.0f us, %.2f us by the fast mode\n",
      problems.size(), pool, extended_us, own_pool, own_us, fast_us);
  figures.add("candidates", static_cast<double>(pool));
  figures.add("rank_1206_us", extended_us);
  figures.add("rank_own_us", own_us);
  figures.add("fast_mode_us", fast_us);
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("rank", argc, argv, foretune::run);
}
