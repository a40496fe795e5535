// Convolutions by the cuDNN that tests/fake_gpu plays: graphs, engines, plans, results.
#include "foretune/cudnn/convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/cudnn/conv_data.h"
#include "foretune/cudnn/enumerate.h"

namespace foretune::cudnn {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20U;
const cuda::Libraries kFake{.driver = FORETUNE_FAKE_GPU, .nvml = FORETUNE_FAKE_GPU};

// The device and the library that all tests share, because opening a device is slow.
struct Bench {
  std::shared_ptr<cuda::Device> device = *cuda::Device::open(kFake, 0);
  std::shared_ptr<const Api> api = *Api::load({FORETUNE_FAKE_GPU});
  std::shared_ptr<const Library> library = *Library::open(api, device->stream());
};

Bench& bench() {
  static Bench bench;
  return bench;
}

ConvSizes small(ConvOperation operation = ConvOperation::kForward, DataType dtype = DataType::kBf16,
                ConvLayout layout = ConvLayout::kChannelsLast) {
  return {.operation = operation,
          .n = 2,
          .c = 16,
          .k = 24,
          .hi = 7,
          .wi = 6,
          .y = 3,
          .x = 3,
          .pad_h = 1,
          .pad_w = 1,
          .dtype = dtype,
          .layout = layout};
}

std::unique_ptr<Convolution> convolution_of(const ConvSizes& sizes,
                                            const ConvolutionOptions& options = {}) {
  auto made = Convolution::create(bench().library, *ConvProblem::create(sizes), options);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

std::unique_ptr<ConvData> data_of(const ConvSizes& sizes) {
  auto data = ConvData::create(bench().device, *ConvProblem::create(sizes), kWorkspace, 5);
  EXPECT_TRUE(data) << data.error().message;
  return *std::move(data);
}

// Runs every engine that takes the problem, and returns how many did.
std::size_t run_all(const ConvSizes& sizes) {
  const auto convolution = convolution_of(sizes, {.workspace_bytes = kWorkspace});
  const auto data = data_of(sizes);
  EXPECT_FALSE(data->verify());  // still poisoned
  const auto engines = convolution->engines();
  EXPECT_TRUE(engines) << engines.error().message;
  std::size_t ran = 0;
  for (const EngineFacts& engine : *engines) {
    const auto plan = convolution->plan(CudnnConfig::of_engine(engine.index));
    if (!plan) {
      EXPECT_EQ(plan.error().code, ErrorCode::kUnsupported) << plan.error().message;
      continue;
    }
    data->poison();
    data->expect_transformed(engine.is_transformed());
    const Status done = convolution->run(*plan, data->operands(0));
    EXPECT_TRUE(done) << done.error().message;
    const Support right = data->verify();
    EXPECT_TRUE(right) << engine.index << ": " << right.reason();
    ++ran;
  }
  return ran;
}

TEST(CudnnApi, SaysWhatItCannotLoad) {
  const auto api = Api::load({"libno-such.so.9"});
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(api.error().message.find("libno-such.so.9"), std::string::npos);
  EXPECT_FALSE(Api::load({}));
  EXPECT_TRUE(Api::load({"libno-such.so.9", FORETUNE_FAKE_GPU}));
}

TEST(CudnnApi, TellsRefusalsFromFailures) {
  const Api& api = *bench().api;
  EXPECT_TRUE(api.check(kSuccess, "call"));
  EXPECT_EQ(api.check(3002, "call").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(api.check(kCompilationFailed, "call").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(api.check(4003, "call").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(api.check(1001, "call").error().code, ErrorCode::kIo);
  EXPECT_EQ(api.check(kExecutionFailed, "call").error().code, ErrorCode::kIo);
  EXPECT_NE(api.check(3002, "call").error().message.find("(3002)"), std::string::npos);
}

TEST(Convolution, KnowsItsEngines) {
  const auto engines = convolution_of(small())->engines();
  ASSERT_TRUE(engines) << engines.error().message;
  std::vector<std::int32_t> numbers;
  for (const EngineFacts& engine : *engines) {
    numbers.push_back(engine.index);
  }
  EXPECT_EQ(numbers, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  const EngineFacts& split = (*engines)[2];
  EXPECT_FALSE(split.is_deterministic());
  ASSERT_EQ(split.knobs.size(), 2U);
  EXPECT_EQ(split.knobs[1].type, 17);
  EXPECT_EQ(split.knobs[1].low, 1);
  EXPECT_EQ(split.knobs[1].high, 64);
  EXPECT_TRUE((*engines)[3].compiles);
  EXPECT_TRUE((*engines)[5].is_transformed());
  // Winograd computes forward passes only.
  EXPECT_EQ(convolution_of(small(ConvOperation::kBackwardData))->engines()->size(), 5U);
}

TEST(Convolution, F32IsNotRoundedToTf32) {
  const auto f32 = convolution_of(small(ConvOperation::kForward, DataType::kF32));
  const auto engines = f32->engines();
  ASSERT_TRUE(engines) << engines.error().message;
  for (const EngineFacts& engine : *engines) {
    EXPECT_FALSE(engine.has(NumericalNote::kTensorCore));
  }
  const auto answers = f32->answers(CudnnHeuristic::kA);
  ASSERT_TRUE(answers) << answers.error().message;
  for (const CudnnConfig& answer : *answers) {
    EXPECT_NE(answer.engine, 1);
    EXPECT_NE(answer.engine, 2);
  }
  const auto refused = f32->plan(CudnnConfig::of_engine(1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("tf32"), std::string::npos);
  EXPECT_TRUE(convolution_of(small(ConvOperation::kForward, DataType::kTf32))
                  ->plan(CudnnConfig::of_engine(1)));
}

TEST(Convolution, OperandsAreNotRoundedToANarrowerType) {
  for (const DataType dtype : {DataType::kTf32, DataType::kBf16}) {
    const auto convolution = convolution_of(small(ConvOperation::kForward, dtype));
    EXPECT_TRUE(convolution->may_use({.index = 9, .notes = {NumericalNote::kTensorCore}}));
    const Support refused = convolution->may_use(
        {.index = 9, .notes = {NumericalNote::kTensorCore, NumericalNote::kDownConvertInputs}});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.reason().find("narrower type"), std::string::npos);
  }
}

TEST(Convolution, DeterminismCanBeDemanded) {
  const auto convolution = convolution_of(small(), {.deterministic = true});
  const auto refused = convolution->plan(CudnnConfig::of_engine(2));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("not deterministic"), std::string::npos);
  const auto answers = convolution->answers(CudnnHeuristic::kB);
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(answers->front().engine, 1);
  EXPECT_EQ(convolution_of(small())->answers(CudnnHeuristic::kB)->front().engine, 2);
}

TEST(Convolution, RanksAreTheirExplicitConfigs) {
  const auto convolution = convolution_of(small());
  const auto answers = convolution->answers(CudnnHeuristic::kA);
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->size(), 5U);
  CudnnConfig first = CudnnConfig::of_engine(1);
  first.set_knob(2, 2);
  first.set_knob(14, 1);
  EXPECT_EQ(answers->front(), first);
  EXPECT_EQ(convolution->answers(CudnnHeuristic::kFallback)->size(), 1U);
  const auto plan = convolution->plan(CudnnConfig::ranked(CudnnHeuristic::kA, 2));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->engine.index, 2);
  EXPECT_EQ(plan->workspace_bytes, 2U * 24 * 7 * 6 * 4 * 4);
  const auto missing = convolution->plan(CudnnConfig::ranked(CudnnHeuristic::kA, 6));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("heuristic a has 5 answers"), std::string::npos);
}

TEST(Convolution, SaysWhyAConfigIsRefused) {
  const auto convolution = convolution_of(small(), {.workspace_bytes = 1000});
  const auto reason = [&](const CudnnConfig& config) {
    const auto plan = convolution->plan(config);
    EXPECT_EQ(plan ? ErrorCode::kInternal : plan.error().code, ErrorCode::kUnsupported);
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_NE(reason(CudnnConfig::of_engine(5)).find("1000 are allowed"), std::string::npos);
  EXPECT_NE(reason(CudnnConfig::of_engine(6)).find("engine: "), std::string::npos);
  EXPECT_NE(reason(CudnnConfig::of_engine(99)).find("engine: "), std::string::npos);
  CudnnConfig config = CudnnConfig::of_engine(1);
  config.set_knob(2, 3);
  config.set_knob(14, 2);
  EXPECT_NE(reason(config).find("engine config: "), std::string::npos);
  config = CudnnConfig::of_engine(3);
  config.set_knob(24, 5);
  EXPECT_NE(reason(config).find("plan: "), std::string::npos);
}

TEST(Convolution, RefusesWhatCudnnHasNot) {
  EXPECT_EQ(tensor_type(DataType::kI8).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(tensor_type(DataType::kF64).error().code, ErrorCode::kUnsupported);
}

TEST(Convolution, EnumeratesWhatTheLibraryAccepts) {
  const auto convolution = convolution_of(small());
  const std::vector<std::shared_ptr<const Library>> libraries{
      *Library::open(bench().api, bench().device->stream()),
      *Library::open(bench().api, bench().device->stream())};
  const auto enter = [] { bench().device->make_current(); };
  const auto listed =
      enumerate(*convolution, libraries, {.splits = {1, 2, 4}, .seconds = 60}, enter);
  ASSERT_TRUE(listed) << listed.error().message;
  std::set<Config> distinct;
  for (const CudnnConfig& config : listed->configs) {
    distinct.insert(config.to_config());
  }
  EXPECT_EQ(distinct.size(), listed->configs.size());
  // The six engines' own choices; tiles and stages but one; tiles and splits; kernels, of which one
  // will not compile; the knob without a position.
  EXPECT_EQ(listed->configs.size(), 6U + 11 + 12 + 6 + 2);
  EXPECT_EQ(listed->tried, listed->combinations);
  EXPECT_EQ(listed->combinations, 1U + 12 + 12 + 6 + 2 + 1);
  CudnnConfig unknown = CudnnConfig::of_engine(4);
  unknown.set_knob(60, 1);
  EXPECT_TRUE(distinct.contains(unknown.to_config()));
  // Plans that were made before are found.
  const auto built = convolution->build_all(listed->configs, libraries, 60, enter);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->size(), listed->configs.size());
  std::size_t plans = 0;
  for (const CudnnConfig& config : listed->configs) {
    plans += convolution->plan(config) ? 1U : 0U;
  }
  EXPECT_EQ(plans, listed->configs.size() - 1);
  const auto data = data_of(small());
  ASSERT_TRUE(convolution->run(*convolution->plan(unknown), data->operands(0)));
  EXPECT_TRUE(data->verify());
}

TEST(Convolution, TriesARandomPartOfTooMany) {
  const auto convolution = convolution_of(small());
  const std::vector<std::shared_ptr<const Library>> libraries{bench().library};
  const auto listed =
      enumerate(*convolution, libraries, {.splits = {}, .max_of_engine = 5, .seconds = 60}, [] {});
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed->combinations, 1U + 12 + 4 + 6 + 2 + 1);
  EXPECT_EQ(listed->tried, 1U + 5 + 4 + 5 + 2 + 1);
}

using Case = std::tuple<ConvOperation, DataType, ConvLayout>;

class Convolutions : public testing::TestWithParam<Case> {};

TEST_P(Convolutions, AreRightAndNoticedWhenWrong) {
  const auto [operation, dtype, layout] = GetParam();
  const ConvSizes sizes = small(operation, dtype, layout);
  EXPECT_GE(run_all(sizes), 3U);
  // An operand of another problem gives another result.
  const auto convolution = convolution_of(sizes);
  const auto data = data_of(sizes);
  ConvOperands operands = data->operands(0);
  const auto other = ConvData::create(bench().device, *ConvProblem::create(sizes), kWorkspace, 6);
  (operation == ConvOperation::kBackwardData ? operands.output : operands.input) =
      operation == ConvOperation::kBackwardData ? (*other)->operands(0).output
                                                : (*other)->operands(0).input;
  ASSERT_TRUE(convolution->run(*convolution->plan(CudnnConfig::of_engine(0)), operands));
  const Support wrong = data->verify();
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.reason().find("elements are wrong"), std::string::npos);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ConvOperation operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    for (const DataType dtype :
         {DataType::kF32, DataType::kTf32, DataType::kF16, DataType::kBf16}) {
      for (const ConvLayout layout : {ConvLayout::kChannelsLast, ConvLayout::kChannelsFirst}) {
        all.emplace_back(operation, dtype, layout);
      }
    }
  }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& instance) {
  const auto& [operation, dtype, layout] = instance.param;
  std::string name = concat(to_string(operation), "_", to_string(dtype), "_", to_string(layout));
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Convolutions, testing::ValuesIn(cases()), case_name);

class OddConvolutions : public testing::TestWithParam<ConvLayout> {};

TEST_P(OddConvolutions, AreRightInAllDirections) {
  const std::vector<ConvSizes> shapes{
      // Strides, dilations and paddings that differ by dimension; sizes of 1; 1-D and 3-D; groups
      // and
      // depthwise.
      {.n = 3,
       .c = 5,
       .k = 7,
       .hi = 11,
       .wi = 9,
       .y = 3,
       .x = 2,
       .stride_h = 2,
       .stride_w = 3,
       .pad_h = 1,
       .dilation_h = 2},
      {.n = 1, .c = 1, .k = 1, .hi = 1, .wi = 1},
      {.n = 2, .c = 8, .k = 4, .hi = 1, .wi = 33, .x = 5, .stride_w = 2, .pad_w = 2},
      {.n = 1,
       .c = 4,
       .k = 6,
       .di = 5,
       .hi = 4,
       .wi = 6,
       .z = 3,
       .y = 2,
       .x = 3,
       .stride_d = 2,
       .pad_d = 1,
       .pad_w = 1,
       .dilation_w = 2},
      {.n = 2, .c = 12, .k = 8, .g = 4, .hi = 6, .wi = 5, .y = 3, .x = 3, .pad_h = 1, .pad_w = 1},
      {.n = 2,
       .c = 9,
       .k = 9,
       .g = 9,
       .hi = 8,
       .wi = 8,
       .y = 5,
       .x = 5,
       .stride_h = 2,
       .stride_w = 2,
       .pad_h = 2,
       .pad_w = 2},
      {.n = 70, .c = 3, .k = 65, .hi = 4, .wi = 4, .y = 4, .x = 4},
  };
  for (ConvSizes sizes : shapes) {
    sizes.layout = GetParam();
    for (const ConvOperation operation :
         {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
      sizes.operation = operation;
      const std::string text = ConvProblem::create(sizes)->to_problem().text();
      EXPECT_GE(run_all(sizes), 3U) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, OddConvolutions,
                         testing::Values(ConvLayout::kChannelsLast, ConvLayout::kChannelsFirst));

TEST(Epilogues, AreFusedIntoForwardPasses) {
  for (const ConvEpilogue epilogue :
       {ConvEpilogue::kBias, ConvEpilogue::kBiasRelu, ConvEpilogue::kBiasAddRelu}) {
    for (const ConvLayout layout : {ConvLayout::kChannelsLast, ConvLayout::kChannelsFirst}) {
      for (const ConvOutput out : {ConvOutput::kSame, ConvOutput::kSums}) {
        ConvSizes sizes = small(ConvOperation::kForward, DataType::kF16, layout);
        sizes.epilogue = epilogue;
        sizes.out = out;
        EXPECT_GE(run_all(sizes), 3U);
      }
    }
  }
}

TEST(ConvData, SetsHoldTheSameInputsElsewhere) {
  const auto data = data_of(small());
  ASSERT_TRUE(data->make_sets(3));
  ASSERT_EQ(data->sets(), 3U);
  std::set<const void*> addresses;
  for (std::size_t set = 0; set < 3; ++set) {
    addresses.insert(data->operands(set).weights);
  }
  EXPECT_EQ(addresses.size(), 3U);
  EXPECT_EQ(data->operands(3).weights, data->operands(0).weights);
}

TEST(ConvData, RefusesDataOfAnotherProblem) {
  const auto data = data_of(small());
  EXPECT_TRUE(ConvData::of(data->problem().to_problem(), *data));
  const Problem other = ConvProblem::create(small(ConvOperation::kBackwardData))->to_problem();
  EXPECT_EQ(ConvData::of(other, *data).error().code, ErrorCode::kMismatch);
}

TEST(CudnnConfigs, AreReadWithWhatIsMissingLeftToTheLibrary) {
  const auto configs =
      parse_cudnn_configs("# a remark\n\nheuristic=b rank=2\nengine=62 tile_size=12 stages=3\n");
  ASSERT_TRUE(configs) << configs.error().message;
  ASSERT_EQ(configs->size(), 2U);
  EXPECT_EQ((*configs)[0], CudnnConfig::ranked(CudnnHeuristic::kB, 2).to_config());
  CudnnConfig explicit_config = CudnnConfig::of_engine(62);
  explicit_config.set_knob(2, 12);
  explicit_config.set_knob(14, 3);
  EXPECT_EQ((*configs)[1], explicit_config.to_config());
  for (const char* bad : {"heuristic=b", "rank=2", "engine=1 rank=2", "tile_size=3",
                          "heuristic=c rank=1", "engine=1 tile=3"}) {
    const auto refused = parse_cudnn_configs(concat("engine=0\n", bad, "\n"));
    ASSERT_FALSE(refused) << bad;
    EXPECT_TRUE(refused.error().message.starts_with("line 2: ")) << refused.error().message;
  }
}

}  // namespace
}  // namespace foretune::cudnn
