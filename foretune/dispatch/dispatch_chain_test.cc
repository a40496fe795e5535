// Tests the chain of fallbacks on providers that refuse, distrust and know calls of several kinds.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/dispatch/dispatcher.h"
#include "foretune/dispatch/testing/text_provider.h"

namespace foretune {
namespace {

// A library that has a choice of its own for every call and lists what it was asked to make.
class Library final : public KernelProvider {
 public:
  Library() : family_(machine()) {}

  [[nodiscard]] const FamilyInfo& info() const override { return family_.info(); }
  [[nodiscard]] Support supports(const DispatchCall& call) const override {
    return call.variant.empty() ? Support::no("calls come with a variant") : Support::yes();
  }
  [[nodiscard]] Support follows_model(const DispatchCall& call) const override {
    return call.problem == nullptr ? Support::no("the call is not a product") : Support::yes();
  }
  [[nodiscard]] bool trusts_fallbacks() const override { return true; }
  [[nodiscard]] std::unique_ptr<KernelMaker> maker(const DispatchCall& call) const override {
    return std::make_unique<Maker>(*this, call);
  }

  mutable int decisions = 0;
  mutable std::vector<Config> asked;
  std::size_t refusals = 0;  // of the first configs it is asked for
  bool is_short_of_memory = false;
  // Its own choice: nothing for none, an empty config for one that it makes anew at every call.
  std::optional<Config> own = Config{};

 private:
  class Maker final : public KernelMaker {
   public:
    Maker(const Library& library, const DispatchCall& call) : library_(library), call_(call) {
      ++library.decisions;
    }
    Result<std::shared_ptr<const void>> make(const Config& config) override {
      library_.asked.push_back(config);
      if (library_.asked.size() <= library_.refusals) {
        return fail(ErrorCode::kUnsupported, "refusal ", library_.asked.size());
      }
      return library_.family_.make_kernel(*call_.problem, config);
    }
    std::vector<Fallback> fallbacks(std::size_t /*wanted*/) override {
      if (!library_.own) {
        return {};
      }
      return {{.config = *library_.own,
               .kernel = std::make_shared<const std::string>("own"),
               .source = ChoiceSource::kHeuristic}};
    }
    [[nodiscard]] bool may_be_kept() const override { return !library_.is_short_of_memory; }

   private:
    const Library& library_;
    const DispatchCall& call_;
  };

  TextProvider family_;
};

DispatchCall variant_of(const Problem& problem, std::span<const std::uint64_t> variant) {
  DispatchCall call(problem);
  call.variant = variant;
  return call;
}

constexpr std::array<std::uint64_t, 1> kOne{1};
constexpr std::array<std::uint64_t, 1> kTwo{2};

TEST(DispatchChainTest, APickHasToKeepTheMarginOverTheTextbook) {
  const auto provider = std::make_shared<TextProvider>(machine());
  const Problem problem = gemm(200, 300, 100);
  const auto decide = [&](double margin) {
    Dispatcher dispatcher({.margin = margin});
    EXPECT_TRUE(dispatcher.add(provider, shipped()));
    return *dispatcher.decision(problem);
  };
  EXPECT_EQ(decide(1e-6).source, ChoiceSource::kModel);
  const Decision careful = decide(100);
  EXPECT_EQ(careful.source, ChoiceSource::kDefault);
  EXPECT_EQ(careful.config, provider->family().default_configs(problem).front());
  EXPECT_NE(careful.note.find("less than the margin of 100"), std::string::npos) << careful.note;
}

TEST(DispatchChainTest, TheModelsOrderIsFollowedUntilTooManyAreRefused) {
  const Problem problem = gemm(200, 300, 100);
  for (const std::size_t refusals : {std::size_t{1}, kMostRefusals}) {
    const auto library = std::make_shared<Library>();
    library->refusals = refusals;
    Dispatcher dispatcher({});
    ASSERT_TRUE(dispatcher.add(library, shipped()));
    const auto decision = dispatcher.decision(variant_of(problem, kOne));
    ASSERT_TRUE(decision) << decision.error().message;
    const bool is_over = refusals == kMostRefusals;
    EXPECT_EQ(decision->source, is_over ? ChoiceSource::kHeuristic : ChoiceSource::kModel);
    EXPECT_EQ(library->asked.size(), is_over ? kMostRefusals : 2U);
    EXPECT_EQ(decision->config, is_over ? Config{} : library->asked.back());
    EXPECT_EQ(decision->note,
              std::string(is_over ? "none of the model's best 8 can run here; " : "") +
                  "the model's first is refused: refusal 1");
  }
}

TEST(DispatchChainTest, ALibraryIsTrustedMoreThanThePortfolio) {
  const auto library = std::make_shared<Library>();
  Dispatcher dispatcher({});
  ASSERT_TRUE(dispatcher.add(library, shipped()));
  const Problem outside = gemm(200, 300000, 100);
  const auto decision = dispatcher.decision(variant_of(outside, kOne));
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->source, ChoiceSource::kHeuristic);
  EXPECT_EQ(decision->config_text, "");
  EXPECT_NE(decision->note.find("outside"), std::string::npos) << decision->note;
  DispatchCall unknown;
  unknown.variant = kOne;
  const auto foreign = dispatcher.decision(unknown);
  ASSERT_TRUE(foreign);
  EXPECT_EQ(foreign->note, "the call is not a product");
  EXPECT_TRUE(library->asked.empty());
  const auto refused = dispatcher.next(outside);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("calls come with a variant"), std::string::npos);
}

TEST(DispatchChainTest, TheLibrarysChoiceHasAPlaceAmongTheTrialsUnlessThereIsNone) {
  for (const bool has_choice : {true, false}) {
    const auto library = std::make_shared<Library>();
    library->own = has_choice ? std::optional(Config{.words = {99}}) : std::nullopt;
    Dispatcher dispatcher({.measure_top = 3});
    ASSERT_TRUE(dispatcher.add(library, shipped()));
    const auto kernels = dispatcher.kernels(variant_of(gemm(200, 300, 100), kOne));
    ASSERT_TRUE(kernels) << kernels.error().message;
    EXPECT_EQ(kernels->size(), 3U);
    // No config of the ranking is made twice.
    EXPECT_EQ(library->asked.size(), has_choice ? 2U : 3U);
    const std::set<Config> distinct(library->asked.begin(), library->asked.end());
    EXPECT_EQ(distinct.size(), library->asked.size());
  }
}

TEST(DispatchChainTest, VariantsAreDecidedApartAndShareWhatIsRemembered) {
  const auto library = std::make_shared<Library>();
  const Problem problem = gemm(200, 300, 100);
  Dispatcher dispatcher({.measure_top = 2, .measure_rounds = 1});
  ASSERT_TRUE(dispatcher.add(library, shipped()));
  const auto measure = [&](std::span<const std::uint64_t> variant, double nanoseconds) {
    while (true) {
      const auto turn = dispatcher.next(variant_of(problem, variant));
      ASSERT_TRUE(turn);
      if (!turn->is_trial()) {
        EXPECT_TRUE(turn->is_final());
        return;
      }
      dispatcher.report(*turn, nanoseconds /= 2);
    }
  };
  measure(kOne, 400);
  EXPECT_EQ(library->decisions, 1);
  measure(kTwo, 200);
  EXPECT_EQ(library->decisions, 2);
  EXPECT_EQ(dispatcher.decision(variant_of(problem, kOne))->measured_ns, 100);
  EXPECT_EQ(dispatcher.decision(variant_of(problem, kTwo))->measured_ns, 50);
  EXPECT_EQ(library->decisions, 2);

  Dispatcher later({});
  ASSERT_TRUE(later.add(std::make_shared<Library>(), shipped()));
  EXPECT_EQ(later.take_choices(dispatcher.choices_text()), 1U);
  for (const auto& variant : {kOne, kTwo}) {
    const auto known = later.decision(variant_of(problem, variant));
    ASSERT_TRUE(known);
    EXPECT_EQ(known->source, ChoiceSource::kRemembered);
    EXPECT_EQ(known->measured_ns, 50);
  }
}

TEST(DispatchChainTest, AKernelThatCannotRunAfterAllIsReplaced) {
  const auto library = std::make_shared<Library>();
  const Problem problem = gemm(200, 300, 100);
  const DispatchCall call = variant_of(problem, kOne);
  Dispatcher dispatcher({});
  ASSERT_TRUE(dispatcher.add(library, shipped()));
  const auto turn = dispatcher.next(call);
  ASSERT_TRUE(turn);
  ASSERT_NE(text_of(*turn), "own");
  const auto other = dispatcher.replace(call, *turn, "it failed");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->is_final());
  EXPECT_EQ(text_of(*other), "own");
  EXPECT_EQ(text_of(*dispatcher.next(call)), "own");
  EXPECT_EQ(dispatcher.decision(call)->note, "it failed");
  // Another thread that held the refused kernel gets the same replacement.
  EXPECT_EQ(dispatcher.replace(call, *turn, "it failed again")->kernel(), other->kernel());
  EXPECT_EQ(dispatcher.decision(call)->note, "it failed");
}

TEST(DispatchChainTest, ATrialThatCannotRunIsNotRepeated) {
  const auto library = std::make_shared<Library>();
  const Problem problem = gemm(200, 300, 100);
  const DispatchCall call = variant_of(problem, kOne);
  Dispatcher dispatcher({.measure_top = 3, .measure_rounds = 2});
  ASSERT_TRUE(dispatcher.add(library, shipped()));
  const auto refused = dispatcher.next(call);
  ASSERT_TRUE(refused && refused->is_trial());
  const auto other = dispatcher.replace(call, *refused, "it failed");
  ASSERT_TRUE(other);
  EXPECT_NE(other->kernel(), refused->kernel());
  int trials = 0;
  while (true) {
    const auto turn = dispatcher.next(call);
    ASSERT_TRUE(turn);
    EXPECT_NE(turn->kernel(), refused->kernel());
    if (!turn->is_trial()) {
      break;
    }
    dispatcher.report(*turn, 100 + trials++);
  }
  EXPECT_EQ(trials, 4);
  EXPECT_EQ(dispatcher.decision(call)->measured_ns, 100);
}

TEST(DispatchChainTest, ADecisionThatMayNotBeKeptIsMadeAnew) {
  const auto library = std::make_shared<Library>();
  library->is_short_of_memory = true;
  const Problem problem = gemm(200, 300, 100);
  Dispatcher dispatcher({.measure_top = 3});
  ASSERT_TRUE(dispatcher.add(library, shipped()));
  for (int call = 1; call <= 2; ++call) {
    const auto turn = dispatcher.next(variant_of(problem, kOne));
    ASSERT_TRUE(turn);
    EXPECT_FALSE(turn->is_trial());
    EXPECT_FALSE(turn->is_final());
    EXPECT_EQ(library->decisions, call);
  }
  library->is_short_of_memory = false;
  EXPECT_TRUE(dispatcher.next(variant_of(problem, kOne))->is_trial());
}

}  // namespace
}  // namespace foretune
