#include "bench/pick_verdict.h"

#include <algorithm>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/model/model_scorer.h"

namespace foretune::bench {
namespace {

// The outcome of running a config.
enum class Fate : std::uint8_t { kRuns, kRefused, kNotPrepared, kFailed, kUnknown };

struct Run {
  Fate fate = Fate::kUnknown;
  double speed = 1;
  bool is_in_turns = true;
  bool is_stopped_early = false;
};

class Product {
 public:
  Product(const ModelAnswer& answer, const MeasuredConfigs& measured, const Config& library)
      : answer_(answer), measured_(measured), library_(library) {}

  [[nodiscard]] const MeasuredConfig* find(const Config& config) const {
    const auto found = measured_.find(config);
    return found == measured_.end() ? nullptr : &found->second;
  }

  // Returns true for the library's choice: the config that stands for it, or the one behind it.
  [[nodiscard]] bool is_library(const Config& config) const {
    return config == library_ || config == answer_.library_algorithm;
  }

  [[nodiscard]] Run run(const Config& config) const {
    if (is_library(config)) {
      const MeasuredConfig* const row = find(config);
      return {.fate = Fate::kRuns, .is_in_turns = row != nullptr && row->in_turns_ns};
    }
    const MeasuredConfig* const row = find(config);
    if (row == nullptr) {
      return {};
    }
    switch (row->outcome) {
      case Outcome::kUnsupported:
        return {.fate = Fate::kRefused};
      case Outcome::kPrepareFailed:
        return {.fate = Fate::kNotPrepared};
      case Outcome::kCrashed:
      case Outcome::kTimedOut:
      case Outcome::kWrongResult:
        return {.fate = Fate::kFailed};
      case Outcome::kOk:
      case Outcome::kCensored:
        break;
    }
    if (const auto speed = speed_by(&MeasuredConfig::in_turns_ns, *row)) {
      return {.fate = Fate::kRuns, .speed = *speed};
    }
    if (const auto speed = speed_by(&MeasuredConfig::once_ns, *row)) {
      return {.fate = Fate::kRuns,
              .speed = *speed,
              .is_in_turns = false,
              .is_stopped_early = row->outcome == Outcome::kCensored};
    }
    return {};
  }

  // Returns the speed relative to the library's choice, by times of the same kind.
  [[nodiscard]] std::optional<double> speed_by(std::optional<double> MeasuredConfig::* kind,
                                               const MeasuredConfig& row) const {
    const MeasuredConfig* const library = find(library_);
    return library == nullptr || !(library->*kind) || !(row.*kind)
               ? std::nullopt
               : std::optional(*(library->*kind) / *(row.*kind));
  }

 private:
  const ModelAnswer& answer_;
  const MeasuredConfigs& measured_;
  const Config& library_;
};

// Follows the ranking as the dispatcher does; returns false, with the reason, without a result.
bool judge_pick(const Product& product, const ModelAnswer& answer, Judgement& judgement) {
  Verdict& verdict = *judgement.verdict;
  verdict.is_covered = answer.is_covered;
  if (!answer.is_covered) {
    return true;
  }
  const std::size_t most = std::min(answer.ranking.size(), kMostRefusals);
  for (std::size_t i = 0; i < most; ++i) {
    const auto& [config, score] = answer.ranking[i];
    if (answer.library_score) {
      const double gain = *answer.library_score - score;
      verdict.expected_gain = std::min(verdict.expected_gain.value_or(gain), gain);
    }
    const Run run = product.run(config);
    if (run.fate == Fate::kRefused) {
      ++verdict.refused;
      continue;
    }
    if (run.fate == Fate::kNotPrepared) {
      return true;
    }
    if (run.fate != Fate::kRuns) {
      judgement.is_failed = run.fate == Fate::kFailed;
      judgement.left_out =
          concat("the model's pick ", judgement.is_failed ? "failed" : "was not measured");
      return false;
    }
    verdict.pick = run.speed;
    verdict.is_library = product.is_library(config);
    verdict.is_in_turns = run.is_in_turns;
    verdict.is_stopped_early = run.is_stopped_early;
    return true;
  }
  return true;
}

void judge_fast(const Product& product, const ModelAnswer& answer, Verdict& verdict) {
  if (!answer.fast_pick) {
    return;
  }
  if (product.is_library(*answer.fast_pick)) {
    verdict.fast_pick = 1;
    verdict.fast_in_turns = 1;
    return;
  }
  const Fate fate = product.run(*answer.fast_pick).fate;
  verdict.is_fast_known = fate != Fate::kFailed && fate != Fate::kUnknown;
  // When the library refuses it, the exact mode answers.
  if (fate == Fate::kRuns) {
    verdict.fast_pick =
        product.speed_by(&MeasuredConfig::once_ns, *product.find(*answer.fast_pick));
    verdict.is_fast_known = verdict.fast_pick.has_value();
    verdict.fast_in_turns =
        product.speed_by(&MeasuredConfig::in_turns_ns, *product.find(*answer.fast_pick));
  }
}

// The best of several configs that were measured once is the luckiest, so besides the pick only
// those that took turns count.
void judge_top(const Product& product, const ModelAnswer& answer, std::size_t top,
               Verdict& verdict) {
  verdict.best_of_top = verdict.pick;
  for (std::size_t i = 0; answer.is_covered && i < std::min(top, answer.ranking.size()); ++i) {
    const Run run = product.run(answer.ranking[i].config);
    if (run.fate == Fate::kRuns && run.is_in_turns) {
      verdict.best_of_top = std::max(verdict.best_of_top, run.speed);
    }
  }
}

// Judges the configs other than the library's choice, even when the model abstains.
void judge_others(const Product& product, const ModelAnswer& answer, const Config& library,
                  double fastest_other, std::size_t top, Verdict& verdict) {
  std::vector<double> speeds;
  for (std::size_t i = 0; i < answer.ranking.size() && speeds.size() < top; ++i) {
    if (answer.ranking[i].config == library) {
      continue;
    }
    const Run run = product.run(answer.ranking[i].config);
    if (run.fate == Fate::kFailed || run.fate == Fate::kNotPrepared) {
      speeds.push_back(0);
    } else if (run.fate == Fate::kRuns) {
      verdict.is_own_in_turns = verdict.is_own_in_turns && (run.is_in_turns || !speeds.empty());
      speeds.push_back(run.is_in_turns || speeds.empty() ? run.speed : 0);
    } else if (run.fate == Fate::kUnknown && speeds.empty()) {
      return;
    }
  }
  if (!speeds.empty() && fastest_other > 0) {
    verdict.own_efficiency = std::min(1.0, speeds.front() / fastest_other);
    verdict.own_top_efficiency =
        std::min(1.0, *std::max_element(speeds.begin(), speeds.end()) / fastest_other);
  }
}

}  // namespace

std::map<std::uint32_t, MeasuredConfigs> read_measured(const Dataset& dataset) {
  std::map<std::uint32_t, MeasuredConfigs> products;
  for (const Dataset::Row& row : dataset.rows()) {
    MeasuredConfig& measured = products[row.problem][dataset.configs()[row.config]];
    if (row.outcome == Outcome::kOk && (row.flags & kFlagReference) != 0) {
      measured.in_turns_ns = static_cast<double>(row.median_ns);
      continue;
    }
    measured.outcome = row.outcome;
    if (row.outcome == Outcome::kOk || row.outcome == Outcome::kCensored) {
      measured.once_ns = static_cast<double>(row.time_ns);
    }
  }
  return products;
}

Result<ModelAnswer> ask(const Selector& selector, const Problem& problem, const Config& library,
                        const Config* algorithm) {
  ModelAnswer answer;
  answer.is_covered = selector.coverage(problem) == AbstainReason::kNone;
  for (const RankedCandidate& candidate : selector.rank(problem)) {
    answer.ranking.push_back({selector.config(candidate.candidate), candidate.score});
    if (answer.ranking.back().config == library) {
      answer.library_score = candidate.score;
    }
  }
  if (algorithm != nullptr) {
    answer.library_algorithm = *algorithm;
    FORETUNE_TRY(answer.library_score, score_config(selector.model(), problem, *algorithm));
  }
  const FastChoice fast = selector.select_fast(problem);
  if (!fast.exact && fast.choice.picked()) {
    answer.fast_pick = selector.config(fast.choice.candidate);
  }
  return answer;
}

Judgement judge(const ModelAnswer& answer, const MeasuredConfigs& measured, const Config& library,
                std::size_t top) {
  Judgement judgement;
  const Product product(answer, measured, library);
  const MeasuredConfig* const first = product.find(library);
  if (first == nullptr || !first->in_turns_ns) {
    judgement.left_out = "the library's choice took no part in the comparison";
    return judgement;
  }
  Verdict& verdict = judgement.verdict.emplace();
  if (!judge_pick(product, answer, judgement)) {
    judgement.verdict.reset();
    return judgement;
  }
  judge_fast(product, answer, verdict);
  judge_top(product, answer, top, verdict);
  double fastest_other = 0;
  for (const auto& [config, row] : measured) {
    const auto speed = product.speed_by(&MeasuredConfig::in_turns_ns, row);
    fastest_other = std::max(fastest_other, config == library ? 0 : speed.value_or(0));
  }
  verdict.oracle = std::max(1.0, fastest_other);
  judge_others(product, answer, library, fastest_other, top, verdict);
  for (std::int32_t rank = 1; rank <= kCublasltHeuristicRanks; ++rank) {
    const MeasuredConfig* const row = product.find(CublasltConfig::rank(rank).to_config());
    if (row != nullptr && row->outcome == Outcome::kOk) {
      verdict.best_of_ranks = std::max(
          verdict.best_of_ranks, product.speed_by(&MeasuredConfig::once_ns, *row).value_or(1));
    }
  }
  return judgement;
}

}  // namespace foretune::bench
