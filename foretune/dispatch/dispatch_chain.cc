#include <algorithm>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dispatch/answer_ranking.h"
#include "foretune/dispatch/internal/dispatcher_state.h"
#include "foretune/model/model_scorer.h"

namespace foretune::dispatch_internal {
namespace {

// A model's ranking for one call, from its pick on. The pool is scored when the second is asked
// for, or at once where the library has answers to rank with it.
class Ranking {
 public:
  Ranking(const Selector& selector, const Problem& problem, const Choice& pick,
          std::span<const LibraryAnswer> answers)
      : selector_(selector), problem_(problem), pick_(pick) {
    if (auto ranked = answers.empty() ? Result<std::vector<RankedConfig>>()
                                      : rank_with_answers(selector, problem, answers)) {
      with_answers_ = *std::move(ranked);
    }
  }

  // Returns the score of an answer of the library, or nothing.
  [[nodiscard]] std::optional<double> score_of(const Config& answer) const {
    const auto ranked = std::ranges::find(with_answers_, answer, &RankedConfig::config);
    return ranked == with_answers_.end() ? std::nullopt : std::optional(ranked->score);
  }

  // Returns the next one, or nothing at the end.
  std::optional<RankedConfig> next() {
    const std::size_t place = next_++;
    if (!with_answers_.empty()) {
      return place < with_answers_.size() ? std::optional(with_answers_[place]) : std::nullopt;
    }
    if (place == 0) {
      return RankedConfig{.config = selector_.config(pick_.candidate), .score = pick_.score};
    }
    if (place == 1) {
      pool_ = selector_.rank(problem_);
      std::erase_if(pool_, [this](const RankedCandidate& ranked) {
        return ranked.candidate == pick_.candidate;
      });
    }
    if (place > pool_.size()) {
      return std::nullopt;
    }
    const auto& [candidate, score] = pool_[place - 1];
    return RankedConfig{.config = selector_.config(candidate), .score = score};
  }

 private:
  const Selector& selector_;
  const Problem& problem_;
  Choice pick_;
  std::size_t next_ = 0;
  std::vector<RankedConfig> with_answers_;
  std::vector<RankedCandidate> pool_;  // without the pick
};

// Collects options. Each step of the chain is asked only while more of them are wanted.
class Chain {
 public:
  Chain(const Source& source, const DispatchCall& call, const DispatchOptions& options)
      : source_(source),
        call_(call),
        options_(options),
        info_(source.provider->info()),
        maker_(source.provider->maker(call)) {}

  Options make(const std::string& refusal) {
    const bool follows = refusal.empty() && ask_whether_to_follow();
    if (follows) {
      ask_model();
    }
    add_fallbacks();
    if (starts_with_fallback_) {
      const auto first = std::ranges::find(made_.all, ChoiceSource::kHeuristic, &Option::source);
      std::rotate(made_.all.begin(), first, first == made_.all.end() ? first : first + 1);
    }
    if (!refusal.empty()) {
      made_.note = refusal;
    }
    made_.may_be_kept = maker_->may_be_kept();
    return std::move(made_);
  }

 private:
  [[nodiscard]] bool is_full() const {
    return made_.all.size() >= static_cast<std::size_t>(options_.measure_top);
  }
  // Returns true when a fallback of the provider takes part in trials whatever the model says.
  [[nodiscard]] bool compares() const {
    return options_.measure_top > 1 && source_.provider->trusts_fallbacks();
  }
  // Keeps a place for the first fallback until the fallbacks have been asked.
  [[nodiscard]] bool has_enough_of_model() const {
    const bool keeps_place = compares() && !has_asked_fallbacks_;
    return made_.all.size() + (keeps_place ? 1U : 0U) >=
           static_cast<std::size_t>(options_.measure_top);
  }

  // Returns false when no model may rank this call, and notes the reason.
  bool ask_whether_to_follow() {
    if (const Support follows = source_.provider->follows_model(call_); !follows) {
      made_.note = follows.reason();
      return false;
    }
    return source_.selector != nullptr && call_.problem != nullptr;
  }

  // Adds the model's picks and its portfolio.
  void ask_model() {
    const Selector& selector = *source_.selector;
    const Problem& problem = *call_.problem;
    if (options_.fast) {
      const FastChoice fast = selector.select_fast(problem);
      if (!fast.exact && fast.choice.picked()) {
        add(selector.config(fast.choice.candidate), ChoiceSource::kFastModel);
      }
    }
    if (has_enough_of_model()) {
      return;
    }
    const Choice choice = selector.select(problem);
    if (!choice.picked()) {
      made_.note = selector.explain(problem, choice);
    } else {
      ranking_.emplace(selector, problem, choice, maker_->answers());
      if (options_.margin > 0) {
        ask_for_baseline();
      }
      if (!add_ranked()) {
        return;  // the baseline, a fallback, is better than what is left
      }
    }
    if (!source_.provider->trusts_fallbacks()) {
      add_portfolio(choice);
    }
  }

  void ask_for_baseline() {
    baseline_ = maker_->baseline();
    if (!baseline_) {
      return;
    }
    baseline_score_ = ranking_->score_of(baseline_->config);
    if (baseline_score_) {
      return;
    }
    if (const auto score =
            score_config(source_.selector->model(), *call_.problem, baseline_->scored)) {
      baseline_score_ = *score;
    }
  }

  // Returns false for a config that is predicted to gain too little to be chosen without a
  // measurement; notes it if nothing better can run.
  bool keeps_margin(const Config& config, double score) {
    if (!baseline_score_ || config == baseline_->config ||
        *baseline_score_ - score >= options_.margin) {
      return true;
    }
    if (compares()) {
      starts_with_fallback_ = starts_with_fallback_ || made_.all.empty();
      return true;
    }
    if (made_.all.empty()) {
      made_.note = concat("the best that can run is predicted to gain less than the margin of ",
                          options_.margin);
    }
    return false;
  }

  // Adds what follows in the ranking, first the pick, as long as more is wanted. Returns false when
  // it stopped at a config that gains too little.
  bool add_ranked() {
    while (!has_enough_of_model() && refusals_ < kMostRefusals) {
      const bool is_first = !std::exchange(has_pick_, true);
      const std::optional<RankedConfig> ranked = ranking_->next();
      if (!ranked) {
        break;
      }
      if (!keeps_margin(ranked->config, ranked->score)) {
        return false;
      }
      const Support allowed = maker_->allows(ranked->config);
      const std::string refusal =
          allowed ? add(ranked->config, ChoiceSource::kModel) : allowed.reason();
      refusals_ += allowed && !refusal.empty() ? 1U : 0U;
      if (is_first && !refusal.empty()) {
        made_.note = concat("the model's first is refused: ", refusal);
      }
    }
    if (made_.all.empty() && has_pick_) {
      made_.note = concat("none of the model's best ", refusals_, " can run here; ", made_.note);
    }
    return true;
  }

  // Adds the portfolio, first its best-ranked config outside of the applicability domain.
  void add_portfolio(const Choice& choice) {
    const Selector& selector = *source_.selector;
    if (!choice.picked() && choice.has_candidate && !is_full()) {
      add(selector.config(choice.candidate), ChoiceSource::kPortfolio);
    }
    if (is_full()) {
      return;  // without a look at the model, which may have to be prepared
    }
    for (const std::uint32_t candidate : selector.model().portfolio) {
      if (is_full()) {
        return;
      }
      add(selector.config(candidate), ChoiceSource::kPortfolio);
    }
  }

  // Adds fallbacks as long as more is wanted. Where they take part in trials whatever the model
  // says, only the first comes before the rest of the ranking.
  void add_fallbacks() {
    if (is_full()) {
      return;
    }
    for (Fallback& fallback : maker_->fallbacks(static_cast<std::size_t>(options_.measure_top))) {
      // A library's own choice at every call is no candidate for a trial.
      if (is_full() || (fallback.config.words.empty() && !made_.all.empty())) {
        break;
      }
      add_fallback(fallback);
      if (!std::exchange(has_asked_fallbacks_, true) && ranking_ && compares()) {
        add_ranked();
      }
    }
    if (!std::exchange(has_asked_fallbacks_, true) && ranking_ && compares()) {
      add_ranked();
    }
    if (made_.all.empty()) {
      if (const std::optional<Fallback> last = maker_->last_resort()) {
        add(last->config, last->source);
      }
    }
  }

  void add_fallback(Fallback& fallback) {
    if (fallback.kernel == nullptr) {
      add(fallback.config, fallback.source);
    } else if (!knows(fallback.config)) {
      made_.all.push_back({.config = std::move(fallback.config),
                           .source = fallback.source,
                           .kernel = std::move(fallback.kernel)});
    }
  }

  [[nodiscard]] bool knows(const Config& config) const {
    return std::ranges::any_of(made_.all,
                               [&](const Option& option) { return option.config == config; });
  }

  // Adds a config unless it is there already. Returns why it cannot run, or nothing.
  std::string add(const Config& config, ChoiceSource source) {
    Config canonical = config;
    if (info_.space != nullptr && call_.problem != nullptr) {
      canonical = info_.space->canonical(config, *call_.problem, info_.fingerprint.hardware);
    }
    if (knows(canonical)) {
      return {};
    }
    auto kernel = maker_->make(canonical);
    if (!kernel) {
      return kernel.error().message;
    }
    made_.all.push_back(
        {.config = std::move(canonical), .source = source, .kernel = *std::move(kernel)});
    return {};
  }

  const Source& source_;
  const DispatchCall& call_;
  const DispatchOptions& options_;
  const FamilyInfo& info_;
  std::unique_ptr<KernelMaker> maker_;
  std::optional<Baseline> baseline_;
  std::optional<double> baseline_score_;
  std::optional<Ranking> ranking_;  // the model's
  bool has_pick_ = false;           // its first was tried
  std::size_t refusals_ = 0;        // of the ranking
  bool has_asked_fallbacks_ = false;
  bool starts_with_fallback_ = false;
  Options made_;
};

}  // namespace

Options make_options(const Source& source, const DispatchCall& call, const DispatchOptions& options,
                     const std::string& refusal) {
  return Chain(source, call, options).make(refusal);
}

}  // namespace foretune::dispatch_internal
