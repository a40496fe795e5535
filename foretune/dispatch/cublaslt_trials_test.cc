// Tests the trials of cuBLASLt's dispatcher, which events of the faked driver time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cuda/event_clock.h"
#include "foretune/dataset/journal.h"
#include "foretune/dispatch/cublaslt_dispatch.h"
#include "foretune/dispatch/testing/cublaslt.h"

namespace foretune {
namespace {

using cublaslt::CudaType;
using ::testing::HasSubstr;
using ::testing::Not;

// Multiplies until no call is a trial any more; returns how many calls there were.
int settle(CublasltDispatcher& dispatcher, const MatmulSample& sample) {
  int calls = 0;
  while (!run(dispatcher, sample).is_settled && calls < 100) {
    ++calls;
  }
  return calls + 1;
}

TEST(CublasltTrialsTest, TrialsFindTheFastestWithoutWaiting) {
  // The model's order is wrong: tile 448 is too large for this product.
  const std::vector<Prediction> predictions{
      {tensor_config(448), 7}, {tensor_config(23), 8}, {CublasltConfig::rank(1), 9}};
  const auto dispatcher =
      open_dispatcher({.model = cublaslt_model(predictions), .dispatch = {.measure_top = 3}});
  const MatmulSample sample({.m = 32, .n = 32, .k = 512, .type = CudaType::kBf16});
  bench().fake.set_faults("busy");
  std::set<std::string> tried;
  for (int call = 0; call < 20; ++call) {
    EXPECT_FALSE(run(*dispatcher, sample).is_settled);
    tried.insert(to_text(cublaslt_schema(), bench().executed().to_config()));
  }
  EXPECT_EQ(tried.size(), 3U);
  EXPECT_EQ(dispatcher->decision(sample.call())->source, ChoiceSource::kModel);
  // Their work ends, and one report each is enough.
  bench().fake.set_faults("");
  const CublasltDecision decision = run(*dispatcher, sample);
  EXPECT_TRUE(decision.is_settled);
  EXPECT_EQ(decision.source, ChoiceSource::kMeasured);
  EXPECT_GT(decision.measured_ns, 0);
  const std::uint64_t questions = bench().questions();
  run(*dispatcher, sample);
  EXPECT_EQ(to_text(cublaslt_schema(), bench().executed().to_config()), decision.config_text);
  EXPECT_EQ(bench().questions(), questions);

  // The fastest of the three by the fake's own clock.
  double best_ns = 1e300;
  std::string best;
  for (const std::string& text : tried) {
    const auto only = following_dispatcher(
        cublaslt_model({{*CublasltConfig::from(*parse_config(cublaslt_schema(), text)), 1}}));
    const cuda::EventClock clock(bench().driver);
    const auto span = clock.begin(nullptr);
    run(*only, sample);
    ASSERT_TRUE(span && clock.end(*span, nullptr));
    const double ns = **clock.read(*span);
    if (ns < best_ns) {
      best_ns = ns;
      best = text;
    }
  }
  EXPECT_EQ(decision.config_text, best);
}

TEST(CublasltTrialsTest, TrialsAreRowsOfADataSetThatALaterProcessFollows) {
  const testing_support::TemporaryFolder folder;
  const auto path = folder / "trials.ftd";
  const MatmulSample sample({.type = CudaType::kBf16});
  const auto measuring = open_dispatcher({.model = cublaslt_model(sample_predictions()),
                                          .dispatch = {.measure_top = 3, .keep_trials = true}});
  EXPECT_LE(settle(*measuring, sample), 3 * (1 + 3) + 1);  // the first run of each does not count
  const CublasltDecision measured = *measuring->decision(sample.call());
  ASSERT_EQ(measured.source, ChoiceSource::kMeasured);
  const auto appended = measuring->dispatcher().append_trials(path, "cublaslt");
  ASSERT_TRUE(appended) << appended.error().message;
  EXPECT_EQ(*appended, 3U);
  const auto trials = read_dataset(path);
  ASSERT_TRUE(trials) << trials.error().message;
  EXPECT_EQ(trials->header().config_schema, cublaslt_schema());
  EXPECT_THAT(trials->header().fingerprint.isa, HasSubstr("sm_90 cublaslt-13.0"));

  const auto later = open_dispatcher({.model = cublaslt_model(sample_predictions())});
  EXPECT_EQ(later->dispatcher().load_choices(path), 1U);
  // Calls of the same problem follow it, whatever their strides.
  for (const std::int64_t gap : {0, 8}) {
    const CublasltDecision known = run(*later, MatmulSample({.type = CudaType::kBf16, .gap = gap}));
    EXPECT_EQ(known.source, ChoiceSource::kRemembered);
    EXPECT_EQ(known.config_text, measured.config_text);
    EXPECT_FLOAT_EQ(static_cast<float>(known.measured_ns),
                    static_cast<float>(measured.measured_ns));  // as files store it
  }
}

TEST(CublasltTrialsTest, CapturedCallsAreNoTrials) {
  const auto dispatcher = open_dispatcher(
      {.model = cublaslt_model(sample_predictions()), .dispatch = {.measure_top = 3}});
  const cuda::DriverApi& driver = *bench().driver;
  const MatmulSample sample({.type = CudaType::kBf16});
  MatmulCall call = sample.call();
  cuda::Graph graph = nullptr;
  ASSERT_EQ(driver.stream_create(&call.stream, cuda::kStreamNonBlocking), 0);
  ASSERT_EQ(driver.begin_capture(call.stream, cuda::kCaptureThreadLocal), 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(dispatcher->matmul(call), 0);
  }
  ASSERT_EQ(driver.end_capture(call.stream, &graph), 0);
  EXPECT_FALSE(dispatcher->decision(call)->is_settled);
  EXPECT_EQ(dispatcher->decision(call)->measured_ns, -1);
  driver.graph_destroy(graph);
  driver.stream_destroy(call.stream);
}

TEST(CublasltTrialsTest, ATrialThatIsRefusedIsDropped) {
  const auto dispatcher = open_dispatcher(
      {.model = cublaslt_model(sample_predictions()), .dispatch = {.measure_top = 3}});
  const MatmulSample sample({.type = CudaType::kBf16});
  bench().fake.set_faults("refuse:448");
  settle(*dispatcher, sample);
  bench().fake.set_faults("");
  const CublasltDecision decision = run(*dispatcher, sample);
  EXPECT_EQ(decision.source, ChoiceSource::kMeasured);
  EXPECT_THAT(decision.config_text, Not(HasSubstr("tile=448")));
}

}  // namespace
}  // namespace foretune
