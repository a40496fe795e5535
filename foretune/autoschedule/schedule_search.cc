#include "foretune/autoschedule/schedule_search.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/environment/cursor_actions.h"
#include "foretune/loop/register_tiles.h"

namespace foretune::autoschedule {
namespace {

using environment::CursorAction;
using environment::Evaluated;
using environment::Evaluator;

// What 22 of the 25 published trajectories of LoopTune's policy begin with, and how most go on.
constexpr std::array kRecipe{CursorAction::kSplit4,   CursorAction::kSwapDown,
                             CursorAction::kSwapDown, CursorAction::kDown,
                             CursorAction::kSplit16,  CursorAction::kSwapUp,
                             CursorAction::kSwapUp,   CursorAction::kSplit8};

struct NamedStrategy {
  std::string_view name;
  std::string_view strategy;
};
constexpr std::array<NamedStrategy, 9> kPlainNames{{{"base", ""},
                                                    {"recipe", ""},
                                                    {"textbook", ""},
                                                    {"random", "random"},
                                                    {"bruteforce", "exhaustive"},
                                                    {"annealing", "annealing"},
                                                    {"evolution", "evolution"},
                                                    {"mcts", "mcts"},
                                                    {"guided", "guided"}}};

// Proposes configs in the order of a list.
class ListedStrategy final : public Strategy {
 public:
  explicit ListedStrategy(std::vector<Config> configs) : configs_(std::move(configs)) {}
  std::vector<Config> ask(std::size_t count, Rng& /*rng*/) override {
    std::vector<Config> out;
    while (out.size() < count && next_ < configs_.size()) {
      out.push_back(configs_[next_++]);
    }
    return out;
  }
  void tell(std::span<const Trial> /*finished*/) override {}

 private:
  std::vector<Config> configs_;
  std::size_t next_ = 0;
};

void append_new(const ScheduleSpace& space, const loop::Nest& nest, std::vector<Config>& list) {
  Config config = space.config({.nest = nest, .cursor = 0});
  if (space.why_not(config) && std::find(list.begin(), list.end(), config) == list.end()) {
    list.push_back(std::move(config));
  }
}

std::vector<Config> listed(const ScheduleSpace& space, std::string_view name,
                           const SearchSetup& setup) {
  std::vector<Config> list{space.start()};
  if (name == "recipe") {
    auto state = space.state(space.start());
    for (const CursorAction action : kRecipe) {
      state = environment::replay_published(space.computation(), *state, {&action, 1}).state;
      append_new(space, state->nest, list);
    }
  } else if (name == "textbook") {
    list.clear();
    for (const loop::Nest& nest :
         loop::textbook_nests(space.computation(), setup.unit, setup.textbook_count)) {
      append_new(space, nest, list);
    }
  }
  return list;
}

class Recorder {
 public:
  Recorder(const ScheduleSpace& space, Evaluator& evaluator, const SearchBudget& budget,
           std::function<double()> now_seconds)
      : space_(space),
        evaluator_(evaluator),
        budget_(budget),
        now_seconds_(now_seconds ? std::move(now_seconds) : steady_seconds),
        begin_s_(now_seconds_()) {}

  SearchTrace run(Strategy& strategy, Rng& rng) {
    while (has_budget()) {
      const std::vector<Config> batch = strategy.ask(1, rng);
      if (batch.empty()) {
        trace_.is_finished = true;
        break;
      }
      const Trial trial = measure(batch.front());
      strategy.tell({&trial, 1});
    }
    trace_.elapsed_s = now_seconds_() - begin_s_;
    return std::move(trace_);
  }

 private:
  [[nodiscard]] bool has_budget() const {
    return (budget_.measurements == 0 || trace_.steps.size() < budget_.measurements) &&
           (budget_.seconds <= 0 || now_seconds_() - begin_s_ < budget_.seconds);
  }

  Trial measure(const Config& config) {
    Trial trial{.config = config, .value = std::nullopt};
    SearchStep step{.config = config};
    if (const auto nest = space_.nest(config)) {
      const Evaluated evaluated = evaluator_.evaluate(*nest);
      step.gflops = evaluated.counted_gflops();
      if (step.gflops > 0) {
        step.seconds = evaluated.seconds;
        trial.value = evaluated.seconds;
      }
    }
    step.elapsed_s = now_seconds_() - begin_s_;
    trace_.steps.push_back(std::move(step));
    if (trace_.steps.back().gflops > trace_.steps[trace_.best].gflops) {
      trace_.best = trace_.steps.size() - 1;
    }
    return trial;
  }

  const ScheduleSpace& space_;
  Evaluator& evaluator_;
  SearchBudget budget_;
  std::function<double()> now_seconds_;
  double begin_s_;
  SearchTrace trace_;
};

// "beam4bfs": the number between two words.
std::optional<std::size_t> number_between(std::string_view text, std::string_view before,
                                          std::string_view after) {
  if (!text.starts_with(before) || !text.ends_with(after) ||
      text.size() <= before.size() + after.size()) {
    return std::nullopt;
  }
  const auto number =
      parse_int(text.substr(before.size(), text.size() - before.size() - after.size()));
  return number && *number >= 1 && *number <= 100000
             ? std::optional(static_cast<std::size_t>(*number))
             : std::nullopt;
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<SearchMethod> SearchMethod::parse(std::string_view name) {
  SearchMethod method{.name = std::string(name), .strategy = {}};
  for (const NamedStrategy& known : kPlainNames) {
    if (known.name == name) {
      method.strategy = known.strategy;
      return method;
    }
  }
  if (const auto lookahead = number_between(name, "greedy", "")) {
    method.strategy = "greedy";
    method.lookahead = *lookahead;
    return method;
  }
  for (const std::string_view order : {"bfs", "dfs"}) {
    if (const auto width = number_between(name, "beam", order)) {
      method.strategy = concat("beam-", order);
      method.width = *width;
      return method;
    }
  }
  return fail(ErrorCode::kNotFound, "there is no search '", name,
              "'; there are base, recipe, textbook, random, greedy1, greedy2, beam2bfs, beam4dfs "
              "(any numbers), bruteforce, annealing, evolution, mcts and guided");
}

std::vector<std::string> SearchMethod::usual() {
  return {"base",     "recipe",   "random",    "greedy1",   "greedy2", "beam2dfs", "beam4dfs",
          "beam2bfs", "beam4bfs", "annealing", "evolution", "mcts",    "guided"};
}

std::size_t SearchTrace::measurements_to(double gflops) const {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].gflops >= gflops) {
      return i + 1;
    }
  }
  return 0;
}

Result<SearchTrace> run_search(const ScheduleSpace& space, const SearchMethod& method,
                               environment::Evaluator& evaluator, const SearchBudget& budget,
                               std::uint64_t seed, const SearchSetup& setup) {
  if (budget.measurements == 0 && !(budget.seconds > 0)) {
    return fail(ErrorCode::kInvalidArgument,
                "a search needs an end: a number of measurements or of seconds");
  }
  TreeGuide guide(nest_rows(space, setup.unit), setup.guide, regression_prior(setup.prior));
  std::unique_ptr<Strategy> strategy;
  if (method.strategy.empty()) {
    strategy = std::make_unique<ListedStrategy>(listed(space, method.name, setup));
  } else {
    FORETUNE_TRY(strategy, create_walk(method.strategy, space,
                                       {.sample_size = budget.measurements,
                                        .max_steps = setup.max_steps,
                                        .lookahead = method.lookahead,
                                        .width = method.width,
                                        .learner = &guide}));
  }
  Rng rng(seed);
  return Recorder(space, evaluator, budget, setup.now_seconds).run(*strategy, rng);
}

}  // namespace foretune::autoschedule
