#include "foretune/collect/active.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/collect/selection.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/search/picking.h"

namespace foretune {
namespace {

// Number of a problem's best configs whose neighbours join a sampled pool.
constexpr std::size_t kBestNeighboured = 3;

// Keeps a copy of every measurement, for training.
class KeepingMeasurer final : public Measurer {
 public:
  explicit KeepingMeasurer(Measurer& measurer) : measurer_(measurer) {}
  Measurement measure(const Request& request) override {
    kept.push_back(measurer_.measure(request));
    return kept.back();
  }
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override {
    return measurer_.compare(problem, configs, rounds);
  }
  const Context& context() const override { return measurer_.context(); }

  std::vector<Measurement> kept;

 private:
  Measurer& measurer_;
};

// One problem in the loop.
struct ActiveProblem {
  Problem problem;
  std::unique_ptr<Space> space;
  std::vector<Config> next;                    // to be measured in this round
  std::unordered_set<Config> chosen;           // in this and all earlier rounds
  std::vector<std::pair<float, Config>> good;  // times of ok ones
  // The other configs, with the predictions of this round's model.
  std::vector<Config> candidates;
  std::vector<double> scores;
  std::vector<double> uncertainty;
  double incumbent = 0;

  [[nodiscard]] CandidateScores view() const { return {scores, uncertainty, incumbent}; }
};

// Fills in zeros where there is no model: random draws ignore scores but need as many.
void score_nothing(ActiveProblem& entry) {
  entry.scores.assign(entry.candidates.size(), 0);
  entry.uncertainty.assign(entry.candidates.size(), 0);
}

Status score_candidates(const Scorer& scorer, const Hardware& hardware, ActiveProblem& entry) {
  // The measured configs follow, so that the model also scores the incumbent.
  ConfigList configs(entry.space->schema());
  const auto append = [&](const Config& config) { configs.add(config.words.view()); };
  std::for_each(entry.candidates.begin(), entry.candidates.end(), append);
  for (const auto& [time_ns, config] : entry.good) {
    append(config);
  }
  const std::size_t count = configs.size();
  FORETUNE_TRY(const std::unique_ptr<PreparedPool> pool, scorer.prepare(configs, hardware));
  std::vector<std::byte> workspace(pool->workspace_bytes());
  entry.scores.resize(count);
  entry.uncertainty.resize(count);
  pool->score(entry.problem, workspace, entry.scores, entry.uncertainty);
  const auto measured = entry.scores.begin() + static_cast<std::ptrdiff_t>(entry.candidates.size());
  entry.incumbent = measured == entry.scores.end()
                        ? std::numeric_limits<double>::infinity()
                        : *std::min_element(measured, entry.scores.end());
  entry.scores.resize(entry.candidates.size());
  entry.uncertainty.resize(entry.candidates.size());
  return {};
}

class ActiveCollection {
 public:
  ActiveCollection(const Family& family, Measurer& measurer, JournalWriter& journal,
                   const CollectOptions& options, const ActiveOptions& active,
                   const ActiveTrainer& train, const CollectHooks& hooks)
      : family_(family),
        measurer_(measurer),
        journal_(journal),
        options_(options),
        active_(active),
        train_(train),
        hooks_(hooks),
        known_(options.previous != nullptr ? *options.previous : Dataset(header_of(family.info()))),
        learned_(header_of(family.info())),
        start_s_(now_s()) {}

  Result<CollectResult> run(std::span<const Problem> problems);

 private:
  Status select(std::span<const Problem> problems);
  Status measure_round();
  void learn_round();
  // Counts the problems with at least one row of a chosen config.
  [[nodiscard]] std::uint64_t problems_measured() const;
  Status propose(std::uint32_t round);
  Result<std::unique_ptr<Scorer>> trained();
  void find_candidates(ActiveProblem& entry, Rng& rng) const;
  void index_known(RowIndex first);
  bool may_go_on();
  [[nodiscard]] double now_s() const { return hooks_.now_s ? hooks_.now_s() : 0; }
  // Returns the progress of all rounds: the ends of earlier ones, and the state of this one.
  [[nodiscard]] CollectProgress total(const CollectProgress& of_round) const;
  [[nodiscard]] bool ended() const {
    return result_.stopped_by_budget || result_.stopped_by_request;
  }

  const Family& family_;
  Measurer& measurer_;
  JournalWriter& journal_;
  const CollectOptions& options_;
  const ActiveOptions& active_;
  const ActiveTrainer& train_;
  const CollectHooks& hooks_;
  std::vector<ActiveProblem> entries_;
  Dataset known_;                                       // the file's rows and this run's
  std::unordered_map<std::uint64_t, RowIndex> row_of_;  // of known_, by resume key
  Dataset learned_;                                     // those of them that rounds selected
  std::uint64_t asked_ = 0;
  CollectResult result_;
  std::map<std::string, std::uint64_t> skipped_;
  double start_s_;
};

bool ActiveCollection::may_go_on() {
  result_.stopped_by_request = hooks_.wants_stop();
  const Budget& budget = options_.budget;
  result_.stopped_by_budget =
      (budget.measurements && result_.progress.measured >= *budget.measurements) ||
      (budget.seconds && now_s() - start_s_ >= *budget.seconds);
  return !ended();
}

void ActiveCollection::index_known(RowIndex first) {
  for (RowIndex row = first; row < known_.size(); ++row) {
    const Dataset::Row& entry = known_.rows()[row];
    if (entry.is_evaluation()) {
      continue;
    }
    row_of_.emplace(resume_key(known_.problems()[entry.problem], known_.configs()[entry.config],
                               known_.contexts()[entry.context]),
                    row);
  }
}

// Selects the problems that take part, each with its first configs.
Status ActiveCollection::select(std::span<const Problem> problems) {
  const double mean = static_cast<double>(active_.measurements) /
                      static_cast<double>(std::max<std::size_t>(1, problems.size()));
  const auto all = static_cast<std::size_t>(mean);
  const auto share = static_cast<std::size_t>(std::lround(active_.first_share * mean));
  CollectOptions first{.seed = options_.seed};
  first.search_space.sample_size =
      active_.rounds == 1 ? all : std::clamp<std::size_t>(share, active_.minimum, all);
  std::unordered_set<Problem> seen;
  for (const Problem& problem : problems) {
    if (!seen.insert(problem).second) {
      ++skipped_[std::string(kRepeatedProblem)];
      continue;
    }
    auto configs = select_configs(family_, problem, first);
    if (!configs) {
      ++skipped_[configs.error().message];
      continue;
    }
    // A default config replaces a sampled one; otherwise a small budget would be exceeded.
    configs->resize(std::min(configs->size(), first.search_space.sample_size));
    ActiveProblem entry{.problem = problem, .next = *std::move(configs)};
    FORETUNE_TRY(entry.space, family_.space(problem));
    entry.chosen.insert(entry.next.begin(), entry.next.end());
    asked_ += entry.next.size();
    entries_.push_back(std::move(entry));
  }
  return {};
}

CollectProgress ActiveCollection::total(const CollectProgress& of_round) const {
  CollectProgress sum = result_.progress;
  sum.problems_done = of_round.problems_done;
  sum.problems_total = entries_.size();
  sum.measured += of_round.measured;
  for (std::size_t i = 0; i < std::size(sum.by_outcome); ++i) {
    sum.by_outcome[i] += of_round.by_outcome[i];
  }
  sum.problem = of_round.problem;
  sum.best_ns = of_round.best_ns;
  sum.best_config = of_round.best_config;
  sum.planned = active_.measurements;
  sum.elapsed_s = now_s() - start_s_;
  sum.eta_s = -1;
  if (sum.measured > 0 && sum.elapsed_s > 0) {
    std::uint64_t left = sum.planned - std::min(sum.planned, sum.measured + sum.resumed);
    if (options_.budget.measurements) {
      left = std::min(left, *options_.budget.measurements - sum.measured);
    }
    sum.eta_s = static_cast<double>(left) * sum.elapsed_s / static_cast<double>(sum.measured);
    if (options_.budget.seconds) {
      sum.eta_s = std::clamp(*options_.budget.seconds - sum.elapsed_s, 0.0, sum.eta_s);
    }
  }
  return sum;
}

// Measures the chosen configs by collect().
Status ActiveCollection::measure_round() {
  std::unordered_map<Problem, const ActiveProblem*> by_problem;
  std::vector<Problem> problems;
  for (const ActiveProblem& entry : entries_) {
    for (const Config& config : entry.next) {
      result_.progress.resumed +=
          journal_.contains(entry.problem, config, measurer_.context()) ? 1U : 0U;
    }
    if (!entry.next.empty()) {
      by_problem.emplace(entry.problem, &entry);
      problems.push_back(entry.problem);
    }
  }
  CollectOptions options{.budget = options_.budget, .seed = options_.seed};
  options.search_space.sample_size = 0;
  options.previous = &known_;
  options.first = [&](const Problem& problem) { return by_problem.at(problem)->next; };
  if (options.budget.measurements) {
    *options.budget.measurements -= result_.progress.measured;
  }
  if (options.budget.seconds) {
    *options.budget.seconds -= now_s() - start_s_;
  }
  CollectHooks hooks = hooks_;
  if (hooks.on_progress) {
    hooks.on_progress = [&](const CollectProgress& progress) {
      hooks_.on_progress(total(progress));
    };
  }
  KeepingMeasurer keeping(measurer_);
  FORETUNE_TRY(const CollectResult round,
               collect(family_, keeping, journal_, problems, options, hooks));
  const auto first = static_cast<RowIndex>(known_.size());
  for (const Measurement& measurement : keeping.kept) {
    known_.add(measurement);
  }
  index_known(first);
  result_.progress = total(round.progress);
  result_.stopped_by_budget = round.stopped_by_budget;
  result_.stopped_by_request = round.stopped_by_request;
  return {};
}

std::uint64_t ActiveCollection::problems_measured() const {
  return static_cast<std::uint64_t>(
      std::count_if(entries_.begin(), entries_.end(), [this](const ActiveProblem& entry) {
        return std::any_of(entry.chosen.begin(), entry.chosen.end(), [&](const Config& config) {
          return row_of_.contains(resume_key(entry.problem, config, measurer_.context()));
        });
      }));
}

// Adds the round's measured or resumed rows to the training data, always in the order of problems
// and choice, so that a resumed run learns the same.
void ActiveCollection::learn_round() {
  for (ActiveProblem& entry : entries_) {
    for (const Config& config : entry.next) {
      const auto row = row_of_.find(resume_key(entry.problem, config, measurer_.context()));
      if (row == row_of_.end()) {
        continue;
      }
      const Measurement measurement = known_.measurement(row->second);
      learned_.add(measurement);
      if (known_.rows()[row->second].is_timed()) {
        entry.good.emplace_back(known_.rows()[row->second].time_ns, config);
      }
    }
    std::sort(entry.good.begin(), entry.good.end());
    entry.next.clear();
  }
}

void ActiveCollection::find_candidates(ActiveProblem& entry, Rng& rng) const {
  entry.candidates.clear();
  std::unordered_set<Config> seen = entry.chosen;
  const auto add = [&](Config config) {
    if (entry.space->why_not(config) && seen.insert(config).second) {
      entry.candidates.push_back(std::move(config));
    }
  };
  RandomOrder order(*entry.space);
  for (std::size_t drawn = 0; drawn < kMaxCandidates; ++drawn) {
    std::optional<Config> config = order.next(rng);
    if (!config) {
      return;  // these were all
    }
    add(entry.space->canonical(*config));
  }
  for (std::size_t i = 0; i < std::min(kBestNeighboured, entry.good.size()); ++i) {
    for (const Config& neighbour : entry.space->neighbours(entry.good[i].second)) {
      add(entry.space->canonical(neighbour));
    }
  }
}

// Returns null when there is nothing to learn from yet, or when the budget or a request ended the
// training.
Result<std::unique_ptr<Scorer>> ActiveCollection::trained() {
  const bool any_good = std::any_of(entries_.begin(), entries_.end(),
                                    [](const ActiveProblem& entry) { return !entry.good.empty(); });
  if (!active_.policy.wants_model() || !any_good) {
    return nullptr;
  }
  const double begin_s = now_s();
  Result<std::unique_ptr<Scorer>> scorer = train_(learned_, [this] { return may_go_on(); });
  result_.progress.training_s += now_s() - begin_s;
  ++result_.progress.trainings;
  if (!scorer && scorer.error().code == ErrorCode::kCancelled && ended()) {
    return nullptr;
  }
  return scorer;
}

// Chooses the configs of round `round`.
Status ActiveCollection::propose(std::uint32_t round) {
  FORETUNE_TRY(const std::unique_ptr<Scorer> scorer, trained());
  if (ended()) {
    return {};
  }
  std::vector<double> needs;
  std::vector<std::size_t> room;
  std::vector<Rng> rngs;
  for (ActiveProblem& entry : entries_) {
    rngs.push_back(Rng(options_.seed).split(entry.problem.hash()).split(round));
    find_candidates(entry, rngs.back());
    if (scorer != nullptr) {
      FORETUNE_TRY_STATUS(score_candidates(*scorer, family_.info().fingerprint.hardware, entry));
    } else {
      score_nothing(entry);
    }
    // The remainder goes to the problems with the fewest configs, in random order.
    needs.push_back(scorer != nullptr && active_.policy.by_need
                        ? largest_improvement(entry.view())
                        : rngs.back().uniform() - static_cast<double>(entry.chosen.size()));
    room.push_back(entry.candidates.size());
  }
  const std::uint64_t left = active_.measurements - std::min(active_.measurements, asked_);
  const std::vector<std::size_t> shares =
      share_out(left / (active_.rounds - round), needs, room, active_.policy.by_need);
  static constexpr ActivePolicy kWithoutModel{.name = "", .description = ""};
  const ActivePolicy& policy = scorer != nullptr ? active_.policy : kWithoutModel;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    ActiveProblem& entry = entries_[i];
    for (const std::size_t c : choose_candidates(policy, entry.view(), shares[i], rngs[i])) {
      entry.next.push_back(entry.candidates[c]);
      entry.chosen.insert(entry.candidates[c]);
    }
    asked_ += entry.next.size();
    // Up to 4,096 candidates per problem are too many to keep for all problems.
    entry.candidates = {};
  }
  return {};
}

Result<CollectResult> ActiveCollection::run(std::span<const Problem> problems) {
  FORETUNE_TRY_STATUS(select(problems));
  index_known(0);
  result_.progress.rounds = active_.rounds;
  for (std::uint32_t round = 0; round < active_.rounds && may_go_on(); ++round) {
    if (round > 0) {
      FORETUNE_TRY_STATUS(propose(round));
      if (ended()) {
        break;
      }
    }
    result_.progress.round = round + 1;
    FORETUNE_TRY_STATUS(measure_round());
    if (ended()) {
      break;
    }
    learn_round();
  }
  result_.progress.problems_done = problems_measured();
  result_.progress.elapsed_s = now_s() - start_s_;
  result_.progress.eta_s = 0;
  result_.skipped.assign(skipped_.begin(), skipped_.end());
  return std::move(result_);
}

}  // namespace

Status check_active_options(const ActiveOptions& active, std::size_t problems) {
  if (active.rounds == 0 || active.minimum == 0) {
    return fail(ErrorCode::kInvalidArgument, "active collection needs at least one round, and one ",
                "config of every problem");
  }
  if (!(active.first_share >= 0 && active.first_share <= 1)) {
    return fail(ErrorCode::kInvalidArgument, "the share of the first round is from 0 to 1, not ",
                active.first_share);
  }
  if (active.measurements / active.minimum < problems) {
    return fail(ErrorCode::kInvalidArgument, active.measurements, " measurements are too few for ",
                problems, " problems with at least ", active.minimum, " each");
  }
  return {};
}

Result<CollectResult> collect_active(const Family& family, Measurer& measurer,
                                     JournalWriter& journal, std::span<const Problem> problems,
                                     const CollectOptions& options, const ActiveOptions& active,
                                     const ActiveTrainer& train, const CollectHooks& hooks) {
  FORETUNE_TRY_STATUS(check_active_options(active, problems.size()));
  if (options.budget.seconds && !hooks.now_s) {
    return fail(ErrorCode::kInvalidArgument, "a time budget needs a clock");
  }
  if (options.previous == nullptr && journal.row_count() > 0) {
    return fail(ErrorCode::kInvalidArgument, "the journal holds ", journal.row_count(),
                " rows, and active collection was not given them");
  }
  return ActiveCollection(family, measurer, journal, options, active, train, hooks).run(problems);
}

}  // namespace foretune
