#include "foretune/approx/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/approx/effects.h"
#include "foretune/approx/judge.h"
#include "foretune/approx/loss_model.h"
#include "foretune/approx/models.h"
#include "foretune/approx/profile.h"
#include "foretune/approx/sensitivity.h"
#include "foretune/base/clock.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/families/network_cpu/network_cpu.h"
#include "foretune/families/network_cpu/network_data.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/quality.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/plan.h"
#include "foretune/graph/simplify.h"
#include "foretune/graph/testing/small_task.h"
#include "foretune/hardware/cpu.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/payload_store.h"

namespace foretune::approx {
namespace {

using ::testing::HasSubstr;

// Small random networks are all but useless, so the exact one says what is right.
std::shared_ptr<const graph::Task> self_labelled_task(std::uint64_t seed) {
  graph::Task task = graph::testing::small_task(seed);
  const auto executor = *graph::Executor::create({});
  const auto plan = *graph::NetworkPlan::create(task.network, executor, {.images = 70});
  std::vector<float> input(70 * 64);
  std::vector<float> output(70 * 4);
  for (graph::LabelledImages* images : {&task.tuning, &task.test}) {
    task.read_images(*images, 0, 70, input);
    const float* const from = input.data();
    float* const to = output.data();
    EXPECT_TRUE(plan->run({&from, 1}, {&to, 1}));
    for (std::size_t i = 0; i < 70; ++i) {
      const auto row = output.begin() + static_cast<std::ptrdiff_t>(4 * i);
      images->labels[i] = static_cast<std::int32_t>(std::max_element(row, row + 4) - row);
    }
  }
  return std::make_shared<const graph::Task>(std::move(task));
}

// Two convolutions that make an image of an image. Labels are not read.
std::shared_ptr<const graph::Task> image_task() {
  Rng rng(7);
  graph::NetworkBuilder builder("images");
  const graph::TensorId image = builder.input("image", {1, 1, 12, 12});
  const graph::Attributes around{.integers = {1, 1, 1, 1, 1, 1, 1, 1, 1}};
  const graph::TensorId w1 =
      builder.constant("w1", {8, 1, 3, 3}, graph::testing::random_values(72, rng));
  const graph::TensorId w2 =
      builder.constant("w2", {2, 8, 3, 3}, graph::testing::random_values(144, rng));
  const graph::TensorId first =
      builder.add("relu", "", {builder.add("conv", "first", {image, w1}, around)});
  graph::Task task{.network = *builder.finish({builder.add("conv", "last", {first, w2}, around)}),
                   .scale = 1.0F / 255};
  for (graph::LabelledImages* images : {&task.tuning, &task.test}) {
    images->labels.assign(20, 0);
    for (int pixel = 0; pixel < 20 * 144; ++pixel) {
      images->pixels.push_back(static_cast<std::uint8_t>(rng.below(256)));
    }
  }
  return std::make_shared<const graph::Task>(std::move(task));
}

class ApproxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    executor_ = *graph::Executor::create({});
    data_ = *network_cpu::NetworkData::create(task_, executor_, {.images = 4});
    network_ = *graph::simplify(task_->network);
    ranges_ = data_->ranges();
    // The reshaped tensor in front of the product.
    for (const graph::Node& node : network_.nodes()) {
      if (node.op->name == "reshape") {
        ranges_[network_.tensor(node.output).name] =
            ranges_.at(network_.tensor(node.inputs[0]).name);
      }
    }
  }

  static std::int32_t knob(std::string_view text) { return *graph::parse_knob(text); }
  void expect_effects_of_whole_networks(const graph::QualityMetric& metric);

  std::shared_ptr<const graph::Task> task_ = self_labelled_task(3);
  std::shared_ptr<graph::Executor> executor_;
  std::unique_ptr<network_cpu::NetworkData> data_;
  graph::Network network_;
  graph::Calibration ranges_;
};

// The rest of a network on stored tensors gives what whole networks give.
void ApproxTest::expect_effects_of_whole_networks(const graph::QualityMetric& metric) {
  const auto data =
      *network_cpu::NetworkData::create(task_, executor_, {.images = 4, .metric = &metric});
  // Sums of other orders move a ratio of squares a little, and no image to another class.
  const double near = metric.is_count() ? 1e-9 : 0.05;
  const std::vector<std::vector<std::int32_t>> wanted{{0, knob("i8"), knob("f32+rows2.0")},
                                                      {0, knob("f32+columns2.1")},
                                                      {0, knob("bf16"), knob("i8")}};
  const auto effects =
      measure_effects(*task_, executor_, ranges_, wanted,
                      {.first = 0, .images = 70, .metric = &metric, .on_progress = {}});
  ASSERT_TRUE(effects) << effects.error().message;
  EXPECT_EQ(effects->images(), 70);
  EXPECT_NEAR(effects->exact_quality / static_cast<double>(effects->images()), 100, 1e-9);
  const std::vector<std::string> names{"first", "second", "last"};
  for (std::size_t l = 0; l < wanted.size(); ++l) {
    EXPECT_EQ(effects->layers[l].layer, names[l]);
    for (std::size_t k = 1; k < wanted[l].size(); ++k) {
      const graph::Variants variants{{names[l], *graph::variant_of_knob(wanted[l][k])}};
      const auto quality = data->quality(variants, network_cpu::Judges::kTuning);
      ASSERT_TRUE(quality) << quality.error().message;
      const KnobEffect& effect = effects->layers[l].knobs[k];
      EXPECT_NEAR(effect.quality / 70, *quality, near) << metric.name();
      // One layer alone: both models are exact.
      Choices choices(3, 0);
      choices[l] = static_cast<std::uint8_t>(k);
      ChangeSum sum(*effects);
      sum.choose_all(choices);
      EXPECT_NEAR(sum.loss(), 100 - *quality, near);
      EXPECT_NEAR(sum.losses({}).values[LossTerms::kP2], 100 - *quality, near);
      // Back to the exact network.
      sum.choose_all(Choices(3, 0));
      EXPECT_NEAR(sum.loss(), 0, near);
    }
  }
}

TEST_F(ApproxTest, EffectsAreThoseOfWholeNetworks) {
  for (const char* name : {"accuracy", "class-accuracy", "psnr"}) {
    expect_effects_of_whole_networks(**graph::find_quality(name));
  }
}

class ApproxImages : public ApproxTest {
 protected:
  ApproxImages() { task_ = image_task(); }
};

TEST_F(ApproxImages, LoseLikenessToTheExactOnes) {
  const graph::QualityMetric& ssim = **graph::find_quality("ssim");
  const auto data =
      *network_cpu::NetworkData::create(task_, executor_, {.images = 4, .metric = &ssim});
  const std::vector<std::vector<std::int32_t>> wanted{{0, knob("f32+rows2.0")}, {0, knob("i8")}};
  const auto effects =
      measure_effects(*task_, executor_, ranges_, wanted, {.images = 20, .metric = &ssim});
  ASSERT_TRUE(effects) << effects.error().message;
  EXPECT_NEAR(effects->exact_quality / static_cast<double>(effects->images()), 100, 1e-9);
  const graph::Variants both{{"first", *graph::variant_of_knob(wanted[0][1])},
                             {"last", *graph::variant_of_knob(wanted[1][1])}};
  const double loss = 100 - *data->quality(both, network_cpu::Judges::kTuning);
  ChangeSum sum(*effects);
  sum.choose_all({1, 1});
  EXPECT_GT(loss, 1);
  EXPECT_NEAR(sum.loss() / loss, 1, 0.1) << "P1";
  const double added = sum.losses({}).values[LossTerms::kP2];
  EXPECT_NEAR(added / loss, 1, 0.3) << "P2";

  NetworkTimes times;
  times.layers = {{.layer = "first", .knobs = wanted[0], .ns = {200, 120}},
                  {.layer = "last", .knobs = wanted[1], .ns = {100, 40}}};
  const std::vector<LayerSensitivity> layers = sensitivity_of(network_, *effects, times);
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].op, "conv");
  EXPECT_EQ(layers[0].knobs[0].loss, 0);
  EXPECT_EQ(layers[0].knobs[1].knob, "f32+rows2.0");
  EXPECT_EQ(layers[0].knobs[1].ns, 120);
  EXPECT_NEAR(layers[0].knobs[1].loss + layers[1].knobs[1].loss, added, 1e-9);
}

TEST_F(ApproxTest, EffectsCanBeStoppedAndRefuseWhatIsNotThere) {
  const std::vector<std::vector<std::int32_t>> wanted{{0, knob("i8")}, {0}, {0}};
  const auto stopped = measure_effects(*task_, executor_, ranges_, wanted,
                                       {.first = 0, .images = 70, .on_progress = [](double share) {
                                          EXPECT_GE(share, 0);
                                          EXPECT_LE(share, 1);
                                          return true;
                                        }});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  const auto many = measure_effects(*task_, executor_, ranges_, wanted,
                                    {.first = 10, .images = 61, .on_progress = {}});
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().message, HasSubstr("the task has 70 tuning images, not those from 10"));
  EXPECT_FALSE(measure_effects(*task_, executor_, ranges_, std::span(wanted).first(2),
                               {.first = 0, .images = 8, .on_progress = {}}));
}

TEST_F(ApproxTest, TimesAreOfTheKnobsThatALayerCanHave) {
  const std::vector<std::int32_t> knobs{knob("i8"), knob("f32+rows2.0"), knob("i8")};
  const auto times = measure_times(network_, executor_, ranges_, knobs,
                                   {.images = 4, .rounds = 2, .wants_stop = {}});
  ASSERT_TRUE(times) << times.error().message;
  ASSERT_EQ(times->layers.size(), 3U);
  EXPECT_EQ(times->layers[0].knobs, (std::vector<std::int32_t>{0, knobs[0], knobs[1]}));
  EXPECT_EQ(times->layers[2].knobs, (std::vector<std::int32_t>{0, knobs[0]}));
  TimeModel model(network_, *times);
  double sum = times->before_ns;
  for (const LayerTimes& layer : times->layers) {
    EXPECT_GT(layer.ns[0], 0);
    sum += layer.ns[0];
  }
  const std::vector<std::int32_t> exact(3, 0);
  EXPECT_NEAR(*model.predict_ns(exact), sum, 1e-6 * sum);
  // Two networks of which one converts: the fit gives back both times.
  const std::vector<std::vector<std::int32_t>> networks{exact, {0, knobs[0], 0}};
  const std::vector<double> ns{2 * sum, 3 * *model.predict_ns(networks[1])};
  ASSERT_TRUE(model.fit(networks, ns));
  EXPECT_NEAR(*model.predict_ns(exact) / ns[0], 1, 0.01);
  EXPECT_NEAR(*model.predict_ns(networks[1]) / ns[1], 1, 0.01);
  const std::vector<std::int32_t> unknown{0, 0, knobs[1]};
  ASSERT_FALSE(model.predict_ns(unknown));
  EXPECT_THAT(model.predict_ns(unknown).error().message,
              HasSubstr("layer last was not timed with f32+rows2.0"));
}

TEST(NetworkBytes, FollowTypesAndPointsOfFilters) {
  const graph::Network network = *graph::simplify(graph::testing::small_task(3).network);
  const std::vector<std::int32_t> exact(3, 0);
  const double all = network_bytes(network, exact);
  EXPECT_GT(all, 0);
  const std::vector<std::int32_t> halves(3, *graph::parse_knob("bf16"));
  EXPECT_NEAR(network_bytes(network, halves), all / 2, 1e-6);
  const std::vector<std::int32_t> integers(3, *graph::parse_knob("i8"));
  EXPECT_NEAR(network_bytes(network, integers), all / 4, 1e-6);
  const graph::Node& first = *graph::layers_of(network)[0];
  const auto weights =
      static_cast<double>(graph::element_count(network.tensor(first.inputs[1]).shape));
  const std::vector<std::int32_t> taps{*graph::parse_knob("f32+taps2.0"), 0, 0};
  EXPECT_NEAR(network_bytes(network, taps), all - 4 * weights / 2, 1e-6);
}

TEST(TimeModel, LearnsWhatConversionsCost) {
  const graph::Network network = *graph::simplify(graph::testing::small_task(3).network);
  const std::int32_t i8 = *graph::parse_knob("i8");
  NetworkTimes times{.layers = {}, .before_ns = 10};
  for (const graph::Node* layer : graph::layers_of(network)) {
    times.layers.push_back({.layer = layer->name, .knobs = {0, i8}, .ns = {100, 50}});
  }
  TimeModel model(network, times);
  // Each conversion takes 7 ns more than the layers' sums say.
  std::vector<std::vector<std::int32_t>> networks;
  std::vector<double> ns;
  for (int i = 0; i < 8; ++i) {
    networks.push_back({(i & 1) != 0 ? i8 : 0, (i & 2) != 0 ? i8 : 0, (i & 4) != 0 ? i8 : 0});
    const std::vector<std::int32_t>& knobs = networks.back();
    ns.push_back(*model.predict_ns(knobs) + 7 * (knobs[0] != knobs[1] ? 1 : 0) +
                 7 * (knobs[1] != knobs[2] ? 1 : 0));
  }
  EXPECT_GT(ns[1] / *model.predict_ns(networks[1]), 1.02);
  ASSERT_TRUE(model.fit(networks, ns));
  for (std::size_t i = 0; i < networks.size(); ++i) {
    EXPECT_NEAR(*model.predict_ns(networks[i]) / ns[i], 1, 0.005) << i;
  }
}

TEST(FitNonnegative, FindsWeightsAndKeepsThemFromZeroUp) {
  const std::vector<double> rows{1, 0, 0, 1, 1, 1};
  std::vector<double> weights{0, 0};
  fit_nonnegative(rows, std::vector<double>{2, 3, 5}, weights);
  EXPECT_NEAR(weights[0], 2, 1e-6);
  EXPECT_NEAR(weights[1], 3, 1e-6);
  fit_nonnegative(rows, std::vector<double>{-2, 3, 1}, weights);
  EXPECT_EQ(weights[0], 0);
  EXPECT_NEAR(weights[1], 2, 1e-6);
}

PairedScores compare_with_exact(std::span<const float> exact, std::span<const float> outputs,
                                std::span<const std::int32_t> labels) {
  const graph::QualityMetric& accuracy = graph::accuracy_quality();
  return compare_scores(accuracy, labels, scores_of(accuracy, {}, exact, exact, labels),
                        scores_of(accuracy, {}, outputs, exact, labels));
}

class TuneNetwork : public ApproxTest {
 protected:
  void SetUp() override {
    ApproxTest::SetUp();
    ASSERT_TRUE(graph::write_task(*task_, folder_ / "small.ftt"));
    FamilyOptions options;
    options.fingerprint = cpu_fingerprint(read_cpu_facts(), {});
    options.threads = 1;
    options.payload_folders = {folder_.path().string()};
    options.parameters = parameters_;
    family_ = *create_network_cpu(options);
    Protocol protocol;
    protocol.windows = 2;
    protocol.max_windows = 2;
    measurer_ = make_local_measurer(family_, protocol, {});
    const auto store = *PayloadStore::open(options.payload_folders);
    problem_.emplace(*store->resolve(
        *Problem::parse(*store->resolve_names("network images=4 payload=@small.ftt"))));
    hooks_.now_s = &monotonic_s;
  }

  Result<ApproxResult> tune(const ApproxOptions& options) {
    return tune_network(*family_, *measurer_, nullptr, *problem_, task_, options, hooks_, {});
  }

  std::vector<std::pair<std::string, std::string>> parameters_;  // of the family
  testing_support::TemporaryFolder folder_;
  std::shared_ptr<const Family> family_;
  std::unique_ptr<Measurer> measurer_;
  std::optional<Problem> problem_;
  CollectHooks hooks_;
};

TEST_F(TuneNetwork, ChoosesFasterNetworksThatKeepTheirBudgets) {
  const ApproxOptions options{.budgets = {20, 60},
                              .knobs = *graph::knob_catalogue("i8,f32+rows2.0,f32+columns2.0"),
                              .effect_images = 64,
                              .fit_networks = 3,
                              .judged_networks = 2,
                              .plain_evaluations = 6,
                              .rounds = 1,
                              .per_budget = 2,
                              .chosen = 5,
                              .compare_rounds = 3};
  const auto result = tune(options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->exact.speedup, 1);
  EXPECT_NEAR(result->exact.test_quality, 100, 1e-9);
  EXPECT_GE(result->measured, 2U);
  // Two budgets of two networks, the exact one, and integers everywhere.
  EXPECT_LE(result->measured, 6U);
  EXPECT_GT(result->profile_networks, 1);
  EXPECT_GE(result->search.plain.evaluations, 1U);
  EXPECT_LE(result->search.plain.evaluations, 6U);
  EXPECT_EQ(result->search.plain.has_reached, result->search.plain.volume >= result->search.volume);
  EXPECT_GT(result->search.evaluations_saved(0), 0);
  EXPECT_LE(result->chosen.size(), 5U);
  EXPECT_EQ(result->networks.size(), result->measured - 1);
  EXPECT_EQ(result->layers.size(), 3U);
  std::set<Config> configs;
  for (const ApproxConfig& each : result->chosen) {
    EXPECT_TRUE(configs.insert(each.config).second);
    EXPECT_TRUE(each.budget == 20 || each.budget == 60);
    EXPECT_LE(each.loss_high, each.budget);
    EXPECT_GE(each.loss_high, each.tune_loss);
    // The margin is that of the images that the two networks tell apart.
    const graph::Variants variants = variants_of(task_->network, each.config);
    const auto exact = outputs_of(*task_, executor_, data_->ranges(), {}, 70);
    const auto outputs = outputs_of(*task_, executor_, data_->ranges(), variants, 70);
    ASSERT_TRUE(exact && outputs);
    const PairedScores scores = compare_with_exact(*exact, *outputs, task_->tuning.labels);
    EXPECT_NEAR(each.tune_loss, scores.loss(), 1e-9);
    EXPECT_NEAR(each.loss_high - each.tune_loss, scores.margin(1.645, 70), 1e-9);
    EXPECT_NEAR(each.test_loss, 100 - each.test_quality, 1e-9);
    EXPECT_NEAR(each.speedup, result->exact.time_ns / each.time_ns, 1e-9);
    EXPECT_GT(each.speedup, 1);
    EXPECT_FALSE(each.text.empty());
  }
  EXPECT_TRUE(std::is_sorted(
      result->chosen.begin(), result->chosen.end(),
      [](const ApproxConfig& a, const ApproxConfig& b) { return a.time_ns < b.time_ns; }));
}

class TuneImages : public TuneNetwork {
 protected:
  TuneImages() {
    task_ = image_task();
    parameters_ = {{"quality", "psnr"}};
  }
};

// Budgets are far above what an accuracy can lose.
TEST_F(TuneImages, KeepLikenessesToTheExactOnes) {
  const graph::QualityMetric& psnr = **graph::find_quality("psnr");
  const auto result = tune({.metric = &psnr,
                            .budgets = {60, 90},
                            .knobs = *graph::knob_catalogue("i8,bf16"),
                            .effect_images = 20,
                            .fit_networks = 3,
                            .rounds = 1,
                            .per_budget = 2,
                            .compare_rounds = 3});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->quality_model, "p1");
  EXPECT_NEAR(result->exact.test_quality, 100, 1e-9);
  EXPECT_GE(result->networks.size(), 1U);
  for (const ApproxConfig& each : result->networks) {
    EXPECT_GT(each.tune_loss, 10) << "outputs of fewer bits are below 90 dB";
    EXPECT_GE(each.loss_high, each.tune_loss);
    EXPECT_LT(each.loss_high, each.tune_loss + 20) << "likenesses of images are much the same";
  }
}

TEST_F(TuneNetwork, StopsAndRefuses) {
  EXPECT_EQ(tune({.budgets = {}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(tune({.budgets = {-1}}).error().code, ErrorCode::kInvalidArgument);
  const std::atomic<bool> stop{true};
  hooks_.stop = &stop;
  const auto stopped =
      tune({.budgets = {1}, .knobs = *graph::knob_catalogue("i8,f32+rows2.0,f32+columns2.0")});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace foretune::approx
