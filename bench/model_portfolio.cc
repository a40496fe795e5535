// Chooses the configs worth measuring from many, by a model.
//
//   model_portfolio --model M.ftm --shapes S.csv --output configs.txt [--top 60]
//   model_portfolio --model M.ftm --shapes S.csv --output configs.txt --size 3000 [--reach 0.1]
//
// The model's pool is what is chosen from (`foretune train --kernels`). The first form takes all
// configs that the model ranks among the --top best of at least one problem. The second takes
// --size configs, one after another, each the one that lowers the sum over all problems of the
// predicted loss most: ln of the time of the best chosen config over that of the best of the pool,
// at most --reach for a problem. It stops early when there is nothing left to gain.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

// The problems for which a candidate comes within reach, and its predicted loss there.
struct Reached {
  std::uint32_t problem = 0;
  float loss = 0;
};
using Reaches = std::vector<std::vector<Reached>>;  // by candidate

std::vector<std::uint32_t> by_rank(const Selector& selector, const std::vector<Problem>& problems,
                                   std::size_t top) {
  std::vector<bool> is_chosen(selector.pool_size());
  for (const Problem& problem : problems) {
    const std::vector<RankedCandidate> ranking = selector.rank(problem);
    for (std::size_t i = 0; i < std::min(top, ranking.size()); ++i) {
      is_chosen[ranking[i].candidate] = true;
    }
  }
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t candidate = 0; candidate < is_chosen.size(); ++candidate) {
    if (is_chosen[candidate]) {
      chosen.push_back(candidate);
    }
  }
  return chosen;
}

Reaches reaches_of(const Selector& selector, const std::vector<Problem>& problems, double reach) {
  Reaches reaches(selector.pool_size());
  for (std::uint32_t problem = 0; problem < problems.size(); ++problem) {
    const std::vector<RankedCandidate> ranking = selector.rank(problems[problem]);
    for (const RankedCandidate& ranked : ranking) {
      const double loss = ranked.score - ranking.front().score;
      if (loss >= reach) {
        break;
      }
      reaches[ranked.candidate].push_back({problem, static_cast<float>(loss)});
    }
  }
  return reaches;
}

double gain_of(const std::vector<Reached>& reached, const std::vector<float>& losses) {
  double gain = 0;
  for (const auto& [problem, loss] : reached) {
    gain += static_cast<double>(std::max(0.0F, losses[problem] - loss));
  }
  return gain;
}

// A candidate's gain only falls while others are chosen, so the first of the queue whose gain is
// still what it was is the best.
std::vector<std::uint32_t> by_cover(const Reaches& reaches, std::size_t problems, double reach,
                                    std::size_t size) {
  std::vector<float> losses(problems, static_cast<float>(reach));
  std::priority_queue<std::pair<double, std::uint32_t>> queue;
  for (std::uint32_t candidate = 0; candidate < reaches.size(); ++candidate) {
    queue.emplace(gain_of(reaches[candidate], losses), candidate);
  }
  std::vector<std::uint32_t> chosen;
  while (chosen.size() < size && !queue.empty()) {
    const auto [before, candidate] = queue.top();
    queue.pop();
    const double gain = gain_of(reaches[candidate], losses);
    if (gain <= 0) {
      continue;
    }
    if (!queue.empty() && gain < queue.top().first) {
      queue.emplace(gain, candidate);
      continue;
    }
    chosen.push_back(candidate);
    for (const auto& [problem, loss] : reaches[candidate]) {
      losses[problem] = std::min(losses[problem], loss);
    }
  }
  double sum = 0;
  for (const float loss : losses) {
    sum += static_cast<double>(loss);
  }
  std::printf("predicted loss: %.3f %% on average\n",
              100 * sum / static_cast<double>(std::max<std::size_t>(1, problems)));
  return chosen;
}

Status run(int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(const std::unique_ptr<Selector> selector,
               Selector::open(bench::argument(argc, argv, "model")));
  FORETUNE_TRY(const std::vector<Problem> problems,
               read_shape_set(bench::argument(argc, argv, "shapes")));
  const auto size = bench::count_argument<std::size_t>(argc, argv, "size", 0);
  const double reach = bench::number_argument(argc, argv, "reach", 0.1);
  const std::vector<std::uint32_t> chosen =
      size > 0
          ? by_cover(reaches_of(*selector, problems, reach), problems.size(), reach, size)
          : by_rank(*selector, problems, bench::count_argument<std::size_t>(argc, argv, "top", 60));
  std::string lines;
  for (const std::uint32_t candidate : chosen) {
    lines += concat(selector->config_text(candidate), "\n");
  }
  std::printf("%zu of %zu configs, by %zu problems\n", chosen.size(), selector->pool_size(),
              problems.size());
  figures.add("configs", static_cast<double>(chosen.size()));
  return write_text_file_atomically(bench::argument(argc, argv, "output"), lines);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("model_portfolio", argc, argv, foretune::run);
}
