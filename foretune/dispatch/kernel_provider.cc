#include "foretune/dispatch/kernel_provider.h"

#include <span>
#include <utility>

#include "foretune/base/rng.h"

namespace foretune {
namespace {

class FamilyMaker final : public KernelMaker {
 public:
  FamilyMaker(const FamilyProvider& provider, const Problem& problem)
      : provider_(provider), problem_(problem) {}

  Result<std::shared_ptr<const void>> make(const Config& config) override {
    const FamilyInfo& info = provider_.info();
    if (info.space != nullptr &&
        !info.space->is_legal(config.words.view(), problem_.fields(), info.fingerprint.hardware)) {
      return fail(ErrorCode::kUnsupported, "it is not legal here");
    }
    return provider_.make_kernel(problem_, config);
  }

  std::vector<Fallback> fallbacks(std::size_t /*wanted*/) override {
    std::vector<Fallback> all;
    for (Config& config : provider_.family().default_configs(problem_)) {
      all.push_back({std::move(config), nullptr, ChoiceSource::kDefault});
    }
    for (Config& config : provider_.variants(problem_)) {
      all.push_back({std::move(config), nullptr, ChoiceSource::kVariant});
    }
    return all;
  }

  std::optional<Fallback> last_resort() override {
    if (const auto space = provider_.family().space(problem_)) {
      Rng rng(0);
      if (auto any = (*space)->sample(rng)) {
        return Fallback{*std::move(any), nullptr, ChoiceSource::kFirstLegal};
      }
    }
    return std::nullopt;
  }

  std::optional<Baseline> baseline() override {
    std::vector<Config> defaults = provider_.family().default_configs(problem_);
    return defaults.empty() ? std::nullopt
                            : std::optional(Baseline{defaults.front(), defaults.front()});
  }

 private:
  const FamilyProvider& provider_;
  const Problem& problem_;
};

}  // namespace

std::string_view to_string(ChoiceSource source) {
  switch (source) {
    case ChoiceSource::kRemembered:
      return "remembered";
    case ChoiceSource::kMeasured:
      return "measured";
    case ChoiceSource::kModel:
      return "model";
    case ChoiceSource::kPortfolio:
      return "portfolio";
    case ChoiceSource::kDefault:
      return "default";
    case ChoiceSource::kFirstLegal:
      return "first legal";
    case ChoiceSource::kFastModel:
      return "fast model";
    case ChoiceSource::kHeuristic:
      return "heuristic";
    case ChoiceSource::kVariant:
      return "variant";
  }
  return "unknown";
}

Support FamilyProvider::supports(const DispatchCall& call) const {
  return call.problem == nullptr ? Support::no("the call is not a problem of any type")
                                 : family().supports(*call.problem);
}

std::unique_ptr<KernelMaker> FamilyProvider::maker(const DispatchCall& call) const {
  return std::make_unique<FamilyMaker>(*this, *call.problem);
}

std::vector<Config> drawn_neighbours(const Family& family, const Problem& problem, int trials) {
  const std::vector<Config> textbook = family.default_configs(problem);
  if (trials <= static_cast<int>(textbook.size()) || textbook.empty()) {
    return {};
  }
  const auto space = family.space(problem);
  if (!space) {
    return {};
  }
  std::vector<Config> all = (*space)->neighbours(textbook.front());
  Rng rng(0);
  rng.shuffle(std::span(all));
  return all;
}

}  // namespace foretune
