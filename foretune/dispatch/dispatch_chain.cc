#include <algorithm>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dispatch/internal/dispatcher_state.h"
#include "foretune/model/model_scorer.h"

namespace foretune::dispatch_internal {
namespace {

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
    has_asked_fallbacks_ = true;
    if (pick_ && compares()) {
      add_followers(*pick_);
    }
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
      if (options_.margin > 0) {
        ask_for_baseline();
      }
      if (!add_ranked(choice)) {
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

  // Adds the pick, and what follows it in the ranking as long as more is wanted. Returns false when
  // it stopped at a config that gains too little.
  bool add_ranked(const Choice& choice) {
    const Config config = source_.selector->config(choice.candidate);
    if (!keeps_margin(config, choice.score)) {
      return false;
    }
    pick_ = choice.candidate;
    if (const std::string refusal = add(config, ChoiceSource::kModel); !refusal.empty()) {
      refusals_ = 1;
      made_.note = concat("the model's first is refused: ", refusal);
    }
    if (!add_followers(choice.candidate)) {
      return false;
    }
    if (made_.all.empty()) {
      made_.note = concat("none of the model's best ", refusals_, " can run here; ", made_.note);
    }
    return true;
  }

  // Adds what follows the pick in the ranking, from where an earlier call stopped. Returns as
  // add_ranked().
  bool add_followers(std::uint32_t pick) {
    if (has_enough_of_model()) {
      return true;  // without a ranking, for which the whole pool is scored
    }
    const std::vector<RankedCandidate> ranking = source_.selector->rank(*call_.problem);
    for (; next_ < ranking.size() && !has_enough_of_model() && refusals_ < kMostRefusals; ++next_) {
      const auto& [candidate, score] = ranking[next_];
      if (candidate == pick) {
        continue;
      }
      const Config config = source_.selector->config(candidate);
      if (!keeps_margin(config, score)) {
        return false;
      }
      refusals_ += add(config, ChoiceSource::kModel).empty() ? 0U : 1U;
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

  void add_fallbacks() {
    if (is_full()) {
      return;
    }
    for (Fallback& fallback : maker_->fallbacks()) {
      // A library's own choice at every call is no candidate for a trial.
      if (is_full() || (fallback.config.words.empty() && !made_.all.empty())) {
        return;
      }
      if (fallback.kernel == nullptr) {
        add(fallback.config, fallback.source);
      } else if (!knows(fallback.config)) {
        made_.all.push_back({.config = std::move(fallback.config),
                             .source = fallback.source,
                             .kernel = std::move(fallback.kernel)});
      }
    }
    if (made_.all.empty()) {
      if (const std::optional<Fallback> last = maker_->last_resort()) {
        add(last->config, last->source);
      }
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
  std::optional<std::uint32_t> pick_;  // the model's, if it keeps the margin
  std::size_t next_ = 0;               // position in the ranking
  std::size_t refusals_ = 0;           // of the pick and the ranking
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
