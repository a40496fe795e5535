// Selectors whose exact model is prepared when it is first needed.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "foretune/base/file.h"
#include "foretune/base/testing/allocation_count.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/select/foretune.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

constexpr double kNoLimit = 1e9;

class DeferredTest : public testing::Test {
 protected:
  // As the file says it, whether it could be used or not.
  void write(const Model& model) {
    const Status written = write_file_atomically(path_, model_bytes(model));
    ASSERT_TRUE(written) << written.error().message;
  }
  // A model whose forest has one feature too many: nothing that a checksum or the fast model shows.
  Model with_unusable_forest() {
    Model model = model_;
    edit_forests(model, [](auto& forests) { forests[0].feature_count += 1; });
    return model;
  }
  std::unique_ptr<Selector> open(Preparation preparation) {
    auto selector = Selector::open(path_, preparation);
    EXPECT_TRUE(selector.has_value()) << selector.error().message;
    return std::move(*selector);
  }
  // One that the fast model answers.
  Problem fast_problem(const Selector& selector) {
    while (true) {
      const Problem problem = sample_gemm(rng_);
      const std::uint64_t before = allocation_count();
      if (!selector.select_fast(problem, kNoLimit).exact) {
        EXPECT_EQ(allocation_count(), before) << "the fast model alone should have answered";
        return problem;
      }
    }
  }

  static constexpr std::uint64_t kSeed = 71;
  Rng rng_{kSeed};
  Model model_ = sample_model_with_distilled({.forests = 2}, rng_);
  testing_support::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.ftm";
};

void expect_same(const Choice& a, const Choice& b) {
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.has_candidate, b.has_candidate);
  EXPECT_EQ(a.candidate, b.candidate);
  EXPECT_EQ(a.score, b.score);
  EXPECT_EQ(a.margin, b.margin);
}

TEST_F(DeferredTest, AnswersAsOneThatWasPreparedAtOpen) {
  write(model_);
  const auto eager = open(Preparation::kAtOpen);
  const auto deferred = open(Preparation::kAtFirstUse);
  std::size_t exact = 0;
  for (int i = 0; i < 200; ++i) {
    const Problem problem = sample_gemm(rng_);
    const FastChoice expected = eager->select_fast(problem);
    const FastChoice actual = deferred->select_fast(problem);
    EXPECT_EQ(actual.exact, expected.exact) << problem.text() << ", seed " << kSeed;
    EXPECT_EQ(actual.bound, expected.bound);
    expect_same(actual.choice, expected.choice);
    expect_same(deferred->select(problem), eager->select(problem));
    exact += expected.exact ? 1U : 0U;
    const auto ranked = eager->rank(problem);
    const auto also_ranked = deferred->rank(problem);
    ASSERT_EQ(ranked.size(), also_ranked.size());
    for (std::size_t k = 0; k < ranked.size(); ++k) {
      ASSERT_EQ(ranked[k].candidate, also_ranked[k].candidate);
      ASSERT_EQ(ranked[k].score, also_ranked[k].score);
    }
  }
  EXPECT_GT(exact, 20U);
  EXPECT_LT(exact, 180U);
  EXPECT_EQ(deferred->model(), model_);
}

TEST_F(DeferredTest, EveryMemberThatNeedsTheExactModelPreparesIt) {
  write(model_);
  const Problem problem = sample_gemm(rng_);
  EXPECT_EQ(open(Preparation::kAtFirstUse)->model(), model_);
  EXPECT_FALSE(open(Preparation::kAtFirstUse)->rank(problem).empty());
  EXPECT_TRUE(open(Preparation::kAtFirstUse)->select_uncached(problem).has_candidate);
  EXPECT_TRUE(open(Preparation::kAtFirstUse)->select(problem, 0.0).has_candidate);
  const auto fast = open(Preparation::kAtFirstUse)->select_fast(problem, -1);
  EXPECT_TRUE(fast.exact && fast.choice.has_candidate);
  const auto selector = open(Preparation::kAtFirstUse);
  EXPECT_TRUE(selector->prepare());
  EXPECT_TRUE(selector->prepare());
}

TEST_F(DeferredTest, OncePreparedDoesNotAllocate) {
  write(model_);
  const auto selector = open(Preparation::kAtFirstUse);
  ASSERT_TRUE(selector->prepare());
  const Problem problem = sample_gemm(rng_);
  const std::uint64_t before = allocation_count();
  static_cast<void>(selector->select(problem));
  static_cast<void>(selector->select_uncached(problem));
  static_cast<void>(selector->select_fast(problem, -1));
  EXPECT_EQ(allocation_count(), before);
}

TEST_F(DeferredTest, NeedsTheFileOnlyWhileItIsOpened) {
  write(model_);
  const auto selector = open(Preparation::kAtFirstUse);
  std::filesystem::resize_file(path_, 100);
  std::filesystem::remove(path_);
  EXPECT_TRUE(selector->prepare());
  EXPECT_EQ(selector->model(), model_);
}

TEST_F(DeferredTest, AnUnusableForestIsRefusedAtOpenOrMakesItAbstainForEver) {
  write(with_unusable_forest());
  const auto refused = Selector::open(path_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  const auto selector = open(Preparation::kAtFirstUse);
  const Problem fast = fast_problem(*selector);
  for (int i = 0; i < 3; ++i) {
    const Problem problem = sample_gemm(rng_);
    const Choice choice = selector->select(problem);
    EXPECT_EQ(choice.reason, AbstainReason::kUnusableModel);
    EXPECT_FALSE(choice.has_candidate || choice.picked());
    EXPECT_NE(selector->explain(problem, choice).find("features"), std::string::npos)
        << selector->explain(problem, choice);
    const Status prepared = selector->prepare();
    ASSERT_FALSE(prepared);
    EXPECT_EQ(prepared.error().code, ErrorCode::kMismatch);
    EXPECT_TRUE(selector->rank(problem).empty());
    EXPECT_EQ(selector->coverage(problem), AbstainReason::kUnusableModel);
    const FastChoice exact = selector->select_fast(problem, -1);
    EXPECT_TRUE(exact.exact);
    EXPECT_EQ(exact.choice.reason, AbstainReason::kUnusableModel);
    EXPECT_TRUE(selector->select_fast(fast, kNoLimit).choice.picked());
  }
  EXPECT_FALSE(selector->model().body);
  EXPECT_EQ(selector->model().pool, model_.pool);
}

TEST_F(DeferredTest, BytesThatAreNoForestAreFoundWhenItIsPrepared) {
  Model model = model_;
  edit_forests(model, [](auto& forests) { forests[1].feature[0] = UINT32_MAX; });
  write(model);
  EXPECT_EQ(Selector::open(path_).error().code, ErrorCode::kCorrupt);
  const auto selector = open(Preparation::kAtFirstUse);
  EXPECT_EQ(selector->prepare().error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(selector->select(sample_gemm(rng_)).reason, AbstainReason::kUnusableModel);
  EXPECT_FALSE(selector->model().body);
}

TEST_F(DeferredTest, DamageIsFoundAtOpen) {
  const std::vector<std::byte> good = model_bytes(model_);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); at += 97) {
    std::vector<std::byte> bytes = good;
    bytes[at] ^= std::byte{0x10};
    ASSERT_TRUE(write_file_atomically(path_, bytes));
    const bool is_good = parse_model(bytes).has_value();
    EXPECT_EQ(Selector::open(path_, Preparation::kAtFirstUse).has_value(), is_good) << at;
    refused += is_good ? 0U : 1U;
  }
  EXPECT_GT(refused, good.size() / 97 / 2);
}

TEST_F(DeferredTest, TheCInterfaceSaysTheSame) {
  write(model_);
  foretune_selector* eager = nullptr;
  foretune_selector* deferred = nullptr;
  std::array<char, 300> message{};
  ASSERT_EQ(foretune_selector_open(path_.c_str(), &eager, message.data(), message.size()), 0);
  ASSERT_EQ(foretune_selector_open_fast(path_.c_str(), &deferred, message.data(), message.size()),
            0);
  EXPECT_EQ(foretune_selector_prepare(deferred, nullptr, 0), FORETUNE_OK);
  const foretune_gemm gemm{
      .m = 100, .n = 256, .k = 512, .batch = 1, .op = FORETUNE_MM, .dtype = 2, .layout = 1};
  foretune_choice expected;
  foretune_choice actual;
  ASSERT_EQ(foretune_select_gemm(eager, &gemm, &expected), FORETUNE_OK);
  ASSERT_EQ(foretune_select_gemm(deferred, &gemm, &actual), FORETUNE_OK);
  EXPECT_EQ(actual.candidate, expected.candidate);
  EXPECT_EQ(actual.score, expected.score);
  foretune_selector_close(deferred);
  foretune_selector_close(eager);

  write(with_unusable_forest());
  ASSERT_EQ(foretune_selector_open_fast(path_.c_str(), &deferred, message.data(), message.size()),
            0);
  EXPECT_EQ(foretune_selector_prepare(deferred, message.data(), message.size()), FORETUNE_MISMATCH);
  EXPECT_NE(std::strstr(message.data(), "features"), nullptr) << message.data();
  ASSERT_EQ(foretune_select_gemm(deferred, &gemm, &actual), FORETUNE_OK);
  EXPECT_EQ(actual.status, FORETUNE_ABSTAINED);
  EXPECT_EQ(actual.reason, FORETUNE_REASON_UNUSABLE_MODEL);
  EXPECT_EQ(actual.words, nullptr);
  foretune_selector_close(deferred);
  EXPECT_EQ(foretune_selector_open_fast("no/such.ftm", &deferred, nullptr, 0), FORETUNE_NOT_FOUND);
  EXPECT_EQ(foretune_selector_prepare(nullptr, message.data(), message.size()),
            FORETUNE_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace foretune
