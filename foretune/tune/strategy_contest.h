// Strategies against each other on one problem. Each searches with a budget of its own and learns
// nothing from the others' measurements; what they found is then timed once more in turns, so that
// a change of the machine's clock meets all of them alike.
//
//   FORETUNE_TRY(const Contestant random, Contestant::parse("random"));
//   FORETUNE_TRY(const Contestant beam, Contestant::parse("beam4bfs"));
//   FORETUNE_TRY(const ContestResult result,
//                run_contest(family, *measurer, nullptr, problem, contestants, options, hooks));
//
// Speeds are GFLOP/s where the problem says how many operations it has (problem_work()), else runs
// a second.
//
// Thread safety: as tune_problem().
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/problem.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {

// A strategy with its settings.
struct Contestant {
  std::string name;
  std::string strategy;  // of create_strategy(); empty: only default configs and what is below
  std::size_t lookahead = 1;
  std::size_t width = 4;
  std::size_t proposals = 0;         // so many of Space::proposals() are measured first
  std::vector<Config> configs = {};  // then these

  // Takes the name of a strategy, and besides: start (the family's default configs alone; also
  // base), textbook (the space's own proposals), greedy2 (with any lookahead), beam4bfs and
  // beam2dfs (with any width), bruteforce (exhaustive). Errors: kNotFound, with the names that
  // there are.
  static Result<Contestant> parse(std::string_view name);
  // Takes several joined by commas. Errors: besides those of parse(), kInvalidArgument for a name
  // that is there twice.
  static Result<std::vector<Contestant>> parse_list(std::string_view names);
};

struct ContestStep {
  Config config;
  double speed = 0;  // 0 where the config failed; of one that was stopped early its most
  double time_ns = std::numeric_limits<double>::infinity();
  double elapsed_s = 0;  // since the search began, this measurement included
};

struct ContestTrace {
  std::vector<ContestStep> steps;  // in the order of measuring
  std::size_t best = 0;            // the fastest of them, as far as is known
  double elapsed_s = 0;
  bool is_finished = false;  // the strategy had nothing more to try
};

// The search of one contestant and its find.
struct ContestEntry {
  std::string name;  // the contestant's
  ContestTrace trace;
  std::string config_text;  // of the fastest
  // In the final comparison; 0 and infinite where nothing that was found runs.
  double speed = 0;
  double time_ns = std::numeric_limits<double>::infinity();
  // After each action that builds the fastest from the start, the start first, where the space is
  // built step by step; 0 where a config on the way fails.
  std::vector<double> speeds_on_way;
};

struct ContestResult {
  std::string name;  // of the problem, for people
  std::string problem;
  // Speed of the config that searches start from, in the final comparison; 0 where there is none.
  double start_speed = 0;
  std::vector<ContestEntry> entries;  // in the order of the contestants
};

// Several problems with the same contestants in the same order.
struct ContestResults {
  std::string unit = "GFLOP/s";
  double peak = 0;  // what is 100 %; 0 where nothing is known
  std::vector<ContestResult> problems;
};

// "GFLOP/s", or the unit of speeds of problems that do not say what they compute.
std::string_view speed_unit(const Problem& problem);

struct ContestOptions {
  // strategy, lookahead, width and first are the contestants' own; nothing but the time counts.
  TuneOptions tune;
  // Called before each search.
  std::function<void(const Contestant& contestant)> on_search;
};

// Errors: kUnsupported for a strategy that needs a space built step by step, when this is none.
Status check_contestants(std::span<const Contestant> contestants, const Space& space);

// Every contestant may take options.tune.budget; the final comparison comes on top. All
// measurements are appended to `journal` when there is one. Errors: those of check_contestants(),
// before anything is measured, and of search_problem();
// kInvalidArgument for a budget without a limit, kUnsupported for an objective other than the time.
Result<ContestResult> run_contest(const Family& family, Measurer& measurer, JournalWriter* journal,
                                  const Problem& problem, std::span<const Contestant> contestants,
                                  const ContestOptions& options, const CollectHooks& hooks);

}  // namespace foretune
