#include "foretune/tune/strategy_contest.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/problem/problem_type.h"
#include "foretune/search/strategy.h"

namespace foretune {
namespace {

// The textbook's list is longer than anyone measures.
constexpr std::size_t kTextbookProposals = 512;
constexpr std::int64_t kMaxNumber = 100000;

// "beam4bfs": the number between two words.
std::optional<std::size_t> number_between(std::string_view text, std::string_view before,
                                          std::string_view after) {
  if (!text.starts_with(before) || !text.ends_with(after) ||
      text.size() <= before.size() + after.size()) {
    return std::nullopt;
  }
  const auto number =
      parse_int(text.substr(before.size(), text.size() - before.size() - after.size()));
  return number && *number >= 1 && *number <= kMaxNumber
             ? std::optional(static_cast<std::size_t>(*number))
             : std::nullopt;
}

bool is_strategy(std::string_view name) {
  const std::vector<std::string> names = strategy_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string strategy_list() {
  return concat("start, textbook, greedy2, beam4bfs, beam4dfs, ", join(strategy_names(), ", "));
}

// Work of a run, so that work over nanoseconds is the speed.
double work_of(const Problem& problem) {
  const std::optional<ProblemWork> work = problem_work(problem);
  return work && work->flops > 0 ? work->flops : 1e9;
}

class Contest {
 public:
  Contest(const Family& family, Measurer& measurer, JournalWriter* journal, const Problem& problem,
          const ContestOptions& options, const CollectHooks& hooks)
      : family_(family),
        measurer_(measurer),
        journal_(journal),
        problem_(problem),
        options_(options),
        hooks_(hooks),
        work_(work_of(problem)) {}

  Result<ContestResult> run(std::span<const Contestant> contestants);

 private:
  // The part of one contestant in the final comparison.
  struct Finalists {
    std::vector<std::size_t> compared;  // positions in compared_
    std::vector<std::size_t> steps;     // of its trace
  };

  Status search(const Contestant& contestant);
  std::size_t compared(const Config& config);
  Status compare(const std::optional<Config>& start);
  void follow_ways();
  [[nodiscard]] double speed_of(const Measurement& measurement) const;
  [[nodiscard]] double now_s() const { return hooks_.now_s ? hooks_.now_s() : 0; }

  const Family& family_;
  Measurer& measurer_;
  JournalWriter* journal_;
  const Problem& problem_;
  const ContestOptions& options_;
  const CollectHooks& hooks_;
  double work_;
  std::unique_ptr<Space> space_;
  ContestResult result_;
  std::vector<Finalists> finalists_;
  std::vector<Config> compared_;
  std::unordered_map<Config, std::size_t> position_;  // in compared_
};

double Contest::speed_of(const Measurement& measurement) const {
  const MetricValue* const time = measurement.find(kTimeNs);
  const bool is_known = measurement.outcome == Outcome::kOk && time != nullptr && time->value > 0;
  return is_known ? work_ / time->value : 0;
}

// Returns where a config is compared, once however many found it: it has one speed.
std::size_t Contest::compared(const Config& config) {
  const auto [found, is_new] = position_.emplace(config, compared_.size());
  if (is_new) {
    compared_.push_back(config);
  }
  return found->second;
}

Status Contest::search(const Contestant& contestant) {
  if (options_.on_search) {
    options_.on_search(contestant);
  }
  TuneOptions tune = options_.tune;
  tune.strategy = contestant.strategy;
  tune.lookahead = contestant.lookahead;
  tune.width = contestant.width;
  // Every other strategy searches alone.
  tune.policy = contestant.strategy == "policy" ? options_.tune.policy : nullptr;
  tune.first = space_->proposals(contestant.proposals);
  tune.first.insert(tune.first.end(), contestant.configs.begin(), contestant.configs.end());
  const double begin_s = now_s();
  FORETUNE_TRY(const TuneResult found,
               search_problem(family_, measurer_, journal_, problem_, tune, hooks_));
  ContestEntry entry{.name = contestant.name, .trace = {}, .config_text = {}, .speeds_on_way = {}};
  ContestTrace& trace = entry.trace;
  trace.elapsed_s = now_s() - begin_s;
  trace.is_finished = found.exhausted;
  std::unordered_map<Config, std::size_t> step_of;
  for (const TuneStep& step : found.steps) {
    step_of.emplace(step.config, trace.steps.size());
    trace.steps.push_back({.config = step.config,
                           .speed = work_ / step.time_ns,
                           .time_ns = step.time_ns,
                           .elapsed_s = step.elapsed_s});
    if (trace.steps.back().speed > trace.steps[trace.best].speed) {
      trace.best = trace.steps.size() - 1;
    }
  }
  Finalists finalists;
  for (const TunedConfig& tuned : found.finalists) {
    finalists.compared.push_back(compared(tuned.config));
    finalists.steps.push_back(step_of.at(tuned.config));
  }
  finalists_.push_back(std::move(finalists));
  result_.entries.push_back(std::move(entry));
  return {};
}

Status Contest::compare(const std::optional<Config>& start) {
  if (start) {
    compared(*start);
  }
  if (compared_.empty()) {
    return {};
  }
  std::vector<Measurement> measured = measurer_.compare(problem_, compared_, options_.tune.rounds);
  std::vector<double> speeds;
  for (Measurement& measurement : measured) {
    speeds.push_back(speed_of(measurement));
    if (journal_ != nullptr) {
      measurement.context.fidelity = kReferenceFidelity;
      FORETUNE_TRY_STATUS(journal_->append(measurement));
    }
  }
  result_.start_speed = start ? speeds.at(position_.at(*start)) : 0;
  for (std::size_t i = 0; i < finalists_.size(); ++i) {
    ContestEntry& entry = result_.entries[i];
    for (std::size_t j = 0; j < finalists_[i].compared.size(); ++j) {
      const double speed = speeds.at(finalists_[i].compared[j]);
      if (speed > entry.speed) {
        entry.speed = speed;
        entry.time_ns = work_ / speed;
        entry.trace.best = finalists_[i].steps[j];
      }
    }
    if (entry.speed > 0) {
      entry.config_text = space_->describe(entry.trace.steps[entry.trace.best].config);
    }
  }
  return {};
}

void Contest::follow_ways() {
  const SequentialSpace* const walked = space_->sequential();
  std::unordered_map<Config, double> known;
  for (ContestEntry& entry : result_.entries) {
    if (walked == nullptr || !(entry.speed > 0)) {
      continue;
    }
    for (const Config& config : walked->way_to(entry.trace.steps[entry.trace.best].config)) {
      const auto [found, is_new] = known.emplace(config, 0);
      if (is_new) {
        found->second = speed_of(measurer_.measure({.problem = problem_, .config = config}));
      }
      entry.speeds_on_way.push_back(found->second);
    }
  }
}

Result<ContestResult> Contest::run(std::span<const Contestant> contestants) {
  FORETUNE_TRY(space_, family_.space(problem_));
  FORETUNE_TRY_STATUS(check_contestants(contestants, *space_));
  result_.name = problem_.shown_text();
  result_.problem = problem_.text();
  for (const Contestant& contestant : contestants) {
    FORETUNE_TRY_STATUS(search(contestant));
  }
  std::optional<Config> start;
  if (const SequentialSpace* const walked = space_->sequential()) {
    start = space_->canonical(walked->start());
  } else if (const std::vector<Config> defaults = family_.default_configs(problem_);
             !defaults.empty()) {
    start = space_->canonical(defaults.front());
  }
  FORETUNE_TRY_STATUS(compare(start));
  follow_ways();
  return std::move(result_);
}

}  // namespace

Result<Contestant> Contestant::parse(std::string_view name) {
  Contestant out{.name = std::string(name), .strategy = {}};
  if (name == "start" || name == "base") {
    return out;
  }
  if (name == "textbook") {
    out.proposals = kTextbookProposals;
    return out;
  }
  if (is_strategy(name)) {
    out.strategy = name;
    return out;
  }
  if (name == "bruteforce") {
    out.strategy = "exhaustive";
    return out;
  }
  if (const auto lookahead = number_between(name, "greedy", "")) {
    out.strategy = "greedy";
    out.lookahead = *lookahead;
    return out;
  }
  for (const std::string_view order : {"bfs", "dfs"}) {
    if (const auto width = number_between(name, "beam", order)) {
      out.strategy = concat("beam-", order);
      out.width = *width;
      return out;
    }
  }
  return fail(ErrorCode::kNotFound, "there is no strategy ", quoted(name, 40), "; there are ",
              strategy_list());
}

Result<std::vector<Contestant>> Contestant::parse_list(std::string_view names) {
  std::vector<Contestant> out;
  for (const std::string_view name : split(names, ',')) {
    FORETUNE_TRY(Contestant next, parse(trim(name)));
    const auto is_same = [&](const Contestant& other) { return other.name == next.name; };
    if (std::any_of(out.begin(), out.end(), is_same)) {
      return fail(ErrorCode::kInvalidArgument, "the strategy ", quoted(next.name, 40),
                  " is there twice");
    }
    out.push_back(std::move(next));
  }
  return out;
}

std::string_view speed_unit(const Problem& problem) {
  const std::optional<ProblemWork> work = problem_work(problem);
  return work && work->flops > 0 ? "GFLOP/s" : "runs/s";
}

Status check_contestants(std::span<const Contestant> contestants, const Space& space) {
  for (const StrategyEntry* const entry : strategies()) {
    const bool takes_part = std::ranges::any_of(
        contestants, [&](const Contestant& each) { return each.strategy == entry->name; });
    if (takes_part && entry->steps_only) {
      FORETUNE_TRY_STATUS(check_walkable(entry->name, space));
    }
  }
  return {};
}

Result<ContestResult> run_contest(const Family& family, Measurer& measurer, JournalWriter* journal,
                                  const Problem& problem, std::span<const Contestant> contestants,
                                  const ContestOptions& options, const CollectHooks& hooks) {
  if (!options.tune.budget.measurements && !options.tune.budget.seconds) {
    return fail(ErrorCode::kInvalidArgument,
                "a search needs an end: a number of measurements or of seconds");
  }
  if (options.tune.objective != Objective::time()) {
    return fail(ErrorCode::kUnsupported, "strategies are compared by the time of what they find");
  }
  return Contest(family, measurer, journal, problem, options, hooks).run(contestants);
}

}  // namespace foretune
