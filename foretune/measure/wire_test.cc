#include "foretune/measure/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

Problem some_problem() {
  return GemmProblem::create(
             {.m = 3, .n = 123456, .k = 1, .batch = 7, .operation = GemmOperation::kBmm})
      ->to_problem();
}

Config some_config() {
  Config config;
  config.schema = 0xfedcba9876543210U;
  config.words = {-2147483647 - 1, 2147483647, 0, -1};
  return config;
}

HelloMessage some_hello() {
  HelloMessage hello;
  hello.parent_process = 4711;
  hello.family = "null";
  hello.options.fingerprint.device = "a device";
  hello.options.fingerprint.isa = "avx2";
  hello.options.fingerprint.hardware.set(HardwareValue::kFmaPeakGflops, 123.456789012345);
  hello.options.data_path = "/some/file";
  hello.options.build_jobs = 3;
  hello.options.threads = 5;
  hello.options.parameters = {{"crash", "0.5"}, {"empty", ""}};
  hello.options.payload_folders = {"weights", "more weights"};
  hello.protocol = {.window_ns = 5,
                    .windows = 6,
                    .max_windows = 7,
                    .target_spread = 0.5,
                    .warmup_ns = 8,
                    .warmup_runs = 11,
                    .max_total_ns = 9,
                    .censor_factor = 10,
                    .cache = CacheState::kCold,
                    .keep_samples = true,
                    .verify = false,
                    .time_limit_s = 0.25,
                    .data_seed = 99};
  hello.context = {.machine = 1,
                   .device = "d",
                   .threads = 2,
                   .cache = CacheState::kCold,
                   .clock_mhz = 3,
                   .fidelity = -1};
  return hello;
}

Measurement some_measurement() {
  Measurement measurement{.problem = some_problem(), .config = some_config()};
  measurement.outcome = Outcome::kCensored;
  measurement.stage = Stage::kRun;
  measurement.flags = kFlagLoaded | kFlagReference;
  measurement.reason = "slower";
  measurement.metrics = {{kTimeNs, 12.5, 0.25, 5}, {kEnergyJ, 1e300, 0, 1}};
  measurement.samples_ns = {1.5F, 2.5F};
  return measurement;
}

TEST(Wire, HelloRoundTrips) {
  const HelloMessage hello = some_hello();
  const Result<HelloMessage> read = decode_hello(encode(hello));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->family, hello.family);
  EXPECT_EQ(read->parent_process, hello.parent_process);
  EXPECT_EQ(read->options.fingerprint, hello.options.fingerprint);
  EXPECT_EQ(read->options.data_path, hello.options.data_path);
  EXPECT_EQ(read->options.parameters, hello.options.parameters);
  EXPECT_EQ(read->options.payload_folders, hello.options.payload_folders);
  EXPECT_EQ(read->context, hello.context);
  EXPECT_EQ(encode(*read), encode(hello));  // the protocol too
}

TEST(Wire, AnotherVersionIsRefused) {
  HelloMessage hello = some_hello();
  hello.version = kWireVersion + 1;
  const Result<HelloMessage> read = decode_hello(encode(hello));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kMismatch);
}

TEST(Wire, RequestsAndResultsRoundTrip) {
  const Request request{.problem = some_problem(), .config = some_config(), .incumbent_ns = 12.25};
  const Result<Request> read = decode_request(encode(request));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->problem, request.problem);
  EXPECT_EQ(read->config, request.config);
  EXPECT_EQ(read->incumbent_ns, request.incumbent_ns);

  const CompareMessage compare{
      .problem = some_problem(), .configs = {some_config(), Config{}}, .rounds = 9};
  const Result<CompareMessage> compared = decode_compare(encode(compare));
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->configs, compare.configs);
  EXPECT_EQ(compared->rounds, 9);

  const std::vector<Measurement> sent{some_measurement(),
                                      {.problem = some_problem(), .config = some_config()}};
  std::vector<Measurement> received(2, {.problem = some_problem(), .config = some_config()});
  ASSERT_TRUE(decode_results(encode_results(sent), received));
  EXPECT_EQ(received, sent);
  std::vector<Measurement> too_few(1, sent[1]);
  EXPECT_FALSE(decode_results(encode_results(sent), too_few));

  const Result<StageMessage> stage = decode_stage(encode(StageMessage{3, Stage::kVerify}));
  ASSERT_TRUE(stage);
  EXPECT_EQ(stage->config, 3U);
  EXPECT_EQ(stage->stage, Stage::kVerify);
  const Error error{ErrorCode::kUnsupported, "no"};
  EXPECT_EQ(decode_error(encode(error)), error);
}

TEST(Wire, EvaluationsRoundTripWithTheirStage) {
  const Request request{
      .problem = some_problem(), .config = some_config(), .evaluate = {"psnr_db", "", "accuracy"}};
  const Result<Request> read = decode_request(encode(request));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->evaluate, request.evaluate);
  for (int stage = 0; stage <= static_cast<int>(Stage::kEvaluate); ++stage) {
    const Result<StageMessage> announced =
        decode_stage(encode(StageMessage{3, static_cast<Stage>(stage)}));
    ASSERT_TRUE(announced) << stage;
    EXPECT_EQ(announced->stage, static_cast<Stage>(stage));
  }
  EXPECT_FALSE(decode_stage(encode(StageMessage{3, static_cast<Stage>(6)})));
  Measurement measurement = some_measurement();
  measurement.stage = Stage::kEvaluate;
  measurement.metrics = {{"psnr_db", 41.5, 0.25, 3}, {std::string(64, 'x'), -1, 0, 0}};
  std::vector<Measurement> received(1, some_measurement());
  ASSERT_TRUE(decode_results(encode_results(std::span(&measurement, 1)), received));
  EXPECT_EQ(received.front(), measurement);
}

TEST(Wire, FramesComeOutWholeHoweverTheyArrive) {
  const std::vector<std::byte> first = encode_frame(FrameKind::kHello, encode(some_hello()));
  const std::vector<std::byte> second = encode_frame(FrameKind::kReady, {});
  std::vector<std::byte> stream = first;
  stream.insert(stream.end(), second.begin(), second.end());
  for (const std::size_t step : {1U, 2U, 7U, 64U, 100000U}) {
    std::vector<std::byte> buffer;
    std::vector<FrameKind> kinds;
    for (std::size_t begin = 0; begin < stream.size(); begin += step) {
      const std::size_t end = std::min(stream.size(), begin + step);
      buffer.insert(buffer.end(), stream.begin() + static_cast<std::ptrdiff_t>(begin),
                    stream.begin() + static_cast<std::ptrdiff_t>(end));
      for (;;) {
        const Result<std::optional<Frame>> frame = take_frame(buffer);
        ASSERT_TRUE(frame);
        if (!*frame) {
          break;
        }
        kinds.push_back((*frame)->kind);
      }
    }
    EXPECT_THAT(kinds, testing::ElementsAre(FrameKind::kHello, FrameKind::kReady));
    EXPECT_TRUE(buffer.empty());
  }
}

TEST(Wire, EveryFlippedBitOfAFrameIsNoticed) {
  const std::vector<std::byte> frame = encode_frame(FrameKind::kResult, encode_results({}));
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    std::vector<std::byte> damaged = frame;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const Result<std::optional<Frame>> taken = take_frame(damaged);
    // A length that grew waits for more; everything else is refused.
    EXPECT_TRUE(!taken || !*taken) << bit;
  }
}

TEST(Wire, DamagedPayloadsNeverCrash) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  const std::vector<std::vector<std::byte>> payloads{
      encode(some_hello()),
      encode(Request{
          .problem = some_problem(), .config = some_config(), .evaluate = {"psnr_db", "accuracy"}}),
      encode(CompareMessage{.problem = some_problem(), .configs = {some_config()}}),
      encode_results(std::vector<Measurement>{some_measurement()})};
  std::vector<Measurement> out(1, some_measurement());
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = payloads[rng.below(payloads.size())];
    bytes.resize(rng.below(bytes.size()) + 1);
    for (std::uint64_t flips = rng.below(4); flips > 0; --flips) {
      bytes[rng.below(bytes.size())] = static_cast<std::byte>(rng.below(256));
    }
    (void)decode_hello(bytes);
    (void)decode_request(bytes);
    (void)decode_compare(bytes);
    (void)decode_stage(bytes);
    (void)decode_error(bytes);
    (void)decode_results(bytes, out);
  }
}

}  // namespace
}  // namespace foretune
