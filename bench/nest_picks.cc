// How fast are the schedules that a model picks for products it never saw, nothing measured?
//
//   nest_picks --model nests.ftm [--shapes mm64_256_16_test] [--count 0] [--seconds 1] [--rounds 9]
//              [--seed 1] [--json FILE]
//
// Each problem gets the pick of generate_configs(), the textbook's first schedule, and the best
// that a search of `seconds` finds which starts from both. The three are then timed in turns. A
// share is the time of the fastest of them over that of the pick; new schedules are those that the
// searches measured for the first time, a second. One thread; `count` of 0 takes all problems.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/statistics.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/measure/measure.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/network_layers.h"
#include "foretune/select/generate.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {
namespace {

struct Contest {
  double pick = 0;      // share of the best known speed
  double textbook = 0;  // the same of the default config
  double generate_s = 0;
  double measured = 0;
  double search_s = 0;
};

class PickJudge {
 public:
  PickJudge(std::shared_ptr<Family> family, Model model, double seconds, int rounds,
            std::uint64_t seed)
      : family_(std::move(family)), model_(std::move(model)), rounds_(rounds) {
    measurer_ =
        make_local_measurer(family_, Protocol::brief(family_->info()), Context{.threads = 1});
    options_.strategy = "local";
    options_.budget.seconds = seconds;
    options_.seed = seed;
    options_.finalists = 4;
    options_.rounds = 5;
  }

  Result<Contest> judge(const Problem& problem) {
    Contest out;
    double begin_s = bench::seconds_now();
    FORETUNE_TRY(const GeneratedConfigs found, generate_configs(model_, problem, {}));
    out.generate_s = bench::seconds_now() - begin_s;
    const Config pick = found.configs.front();
    options_.first = {pick};
    CollectHooks hooks;
    hooks.now_s = &bench::seconds_now;
    begin_s = bench::seconds_now();
    FORETUNE_TRY(const TuneResult best,
                 tune_problem(*family_, *measurer_, nullptr, problem, options_, hooks));
    out.search_s = bench::seconds_now() - begin_s;
    out.measured = static_cast<double>(best.progress.measured);
    const Config textbook = family_->default_configs(problem).front();
    std::vector<Config> compared{pick, textbook};
    for (const TunedConfig& tuned : best.finalists) {
      compared.push_back(tuned.config);
    }
    const std::vector<Measurement> times = measurer_->compare(problem, compared, rounds_);
    std::vector<double> ns;
    for (const Measurement& time : times) {
      if (time.outcome != Outcome::kOk) {
        return fail(ErrorCode::kInternal, problem.text(), ": ", time.reason);
      }
      ns.push_back(time.find(kTimeNs)->value);
    }
    const double fastest = *std::min_element(ns.begin(), ns.end());
    out.pick = fastest / ns[0];
    out.textbook = fastest / ns[1];
    return out;
  }

 private:
  std::shared_ptr<Family> family_;
  Model model_;
  int rounds_;
  std::unique_ptr<Measurer> measurer_;
  TuneOptions options_;
};

void add_shares(const std::string& name, std::vector<double> shares, Figures& figures) {
  std::sort(shares.begin(), shares.end());
  double sum = 0;
  for (const double share : shares) {
    sum += share;
  }
  const double mean = sum / static_cast<double>(shares.size());
  const double p10 = shares[shares.size() / 10];
  std::printf("%-10s mean %.4f  P10 %.4f  least %.4f\n", name.c_str(), mean, p10, shares.front());
  figures.add(name + "_mean_share", mean);
  figures.add(name + "_p10_share", p10);
  figures.add(name + "_least_share", shares.front());
}

Status run(int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(Model model, read_model(bench::argument(argc, argv, "model")));
  FORETUNE_TRY(std::vector<Problem> problems,
               named_shape_set(bench::argument(argc, argv, "shapes", "mm64_256_16_test")));
  const auto count = bench::count_argument<std::size_t>(argc, argv, "count", 0);
  if (count > 0 && count < problems.size()) {
    problems.erase(problems.begin() + static_cast<std::ptrdiff_t>(count), problems.end());
  }
  FORETUNE_TRY(
      std::unique_ptr<Family> family,
      make_loop_nest({.fingerprint = model.fingerprint, .data_path = {}, .parameters = {}}));
  PickJudge judge(std::move(family), std::move(model),
                  bench::number_argument(argc, argv, "seconds", 1),
                  static_cast<int>(bench::count_argument<unsigned>(argc, argv, "rounds", 9)),
                  bench::count_argument<std::uint64_t>(argc, argv, "seed", 1));
  std::vector<double> picks;
  std::vector<double> textbooks;
  Contest all;
  for (const Problem& problem : problems) {
    FORETUNE_TRY(const Contest contest, judge.judge(problem));
    picks.push_back(contest.pick);
    textbooks.push_back(contest.textbook);
    all.generate_s += contest.generate_s;
    all.measured += contest.measured;
    all.search_s += contest.search_s;
  }
  add_shares("pick", picks, figures);
  add_shares("textbook", textbooks, figures);
  const double a_second = all.measured / all.search_s;
  std::printf("%zu problems; %.0f ms for a pick; %.0f schedules measured a second\n",
              problems.size(), 1e3 * all.generate_s / static_cast<double>(problems.size()),
              a_second);
  figures.add("problems", static_cast<double>(problems.size()));
  figures.add("seconds_of_a_pick", all.generate_s / static_cast<double>(problems.size()));
  figures.add("new_states_per_second", a_second);
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("nest_picks", argc, argv, foretune::run);
}
