// Tests the dispatcher of cublasLtMatmul on libraries that are faked on the CPU.
#include "foretune/dispatch/cublaslt_dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/dispatch/testing/cublaslt.h"
#include "foretune/model/model_file.h"

namespace foretune {
namespace {

using cublaslt::ComputeType;
using cublaslt::CudaType;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::uint32_t kRelu = 2;
constexpr std::uint32_t kBias = 4;
constexpr std::uint32_t kReluBias = 6;
constexpr std::uint32_t kGelu = 32;
constexpr std::uint32_t kGeluBias = 36;
constexpr std::uint32_t kGeluAux = 160;

TEST(DefaultCublasltModels, AreReadableAndRankThisFamily) {
  ASSERT_FALSE(default_cublaslt_models().empty());
  for (const DefaultCublasltModel& shipped : default_cublaslt_models()) {
    const auto model = parse_model(shipped.bytes);
    ASSERT_TRUE(model) << shipped.name << ": " << model.error().message;
    EXPECT_EQ(model->family, "cublaslt");
    EXPECT_EQ(model->space_text, cublaslt_space().text()) << "train it again";
    EXPECT_NE(model->fingerprint.isa.find("cublaslt-"), std::string::npos);
    EXPECT_EQ(
        concat("cublaslt-", model->fingerprint.isa.substr(0, model->fingerprint.isa.find(' '))),
        shipped.name);
    const Config first = CublasltConfig::rank(1).to_config();
    EXPECT_NE(std::find(model->pool.begin(), model->pool.end(), first), model->pool.end())
        << "what cublasLtMatmul would do has to be a candidate";
  }
}

TEST(CublasltDispatchTest, RunsTheModelsPick) {
  const auto dispatcher = sample_dispatcher();
  const CublasltDecision tensor = run(*dispatcher, MatmulSample({.type = CudaType::kBf16}));
  EXPECT_EQ(tensor.source, ChoiceSource::kModel);
  EXPECT_THAT(tensor.reason, IsEmpty());
  EXPECT_EQ(bench().executed(), tensor_config(448));
  EXPECT_EQ(tensor.config_text, to_text(cublaslt_schema(), tensor_config(448).to_config()));
  EXPECT_THAT(tensor.text(), StartsWith("model: heuristic=0 algorithm=66 tile=448"));

  // The rules of the space leave the model the configs that run f32.
  const CublasltDecision plain = run(*dispatcher, MatmulSample({}));
  EXPECT_EQ(plain.source, ChoiceSource::kModel);
  EXPECT_EQ(bench().executed(), plain_config(11));
  EXPECT_THAT(plain.reason, IsEmpty());
}

TEST(CublasltDispatchTest, ComputesWhatIsAskedFor) {
  const auto dispatcher = sample_dispatcher();
  for (const CudaType type : {CudaType::kF32, CudaType::kBf16}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const std::uint32_t epilogue : {1U, kBias, kReluBias, kGeluBias}) {
          MatmulShape shape{.transpose_a = transpose_a,
                            .transpose_b = transpose_b,
                            .type = type,
                            .epilogue = epilogue};
          EXPECT_EQ(run(*dispatcher, MatmulSample(shape)).source, ChoiceSource::kModel);
          shape.gap = 8;
          shape.alpha = 0.5F;
          shape.beta = -2;
          EXPECT_EQ(run(*dispatcher, MatmulSample(shape)).source, ChoiceSource::kModel);
          if (epilogue == 1) {
            shape.batch = 3;
            shape.batch_gap = 64;
            EXPECT_EQ(run(*dispatcher, MatmulSample(shape)).source, ChoiceSource::kModel);
          }
          ASSERT_FALSE(HasFatalFailure()) << transpose_a << transpose_b << epilogue;
        }
      }
    }
  }
}

TEST(CublasltDispatchTest, MapsCallsToProblemsByRows) {
  const cublaslt::Api& api = *bench().api;
  const auto problem = [&](const MatmulShape& shape) {
    const MatmulSample sample(shape);
    dispatch_internal::CallKey key;
    EXPECT_EQ(dispatch_internal::read_descriptors(api, sample.call(), key), 0);
    return dispatch_internal::problem_of(key)->sizes();
  };
  const MatmulShape shape{.m = 24, .n = 16, .k = 8};
  EXPECT_EQ(problem(shape), (GemmSizes{.m = 16, .n = 24, .k = 8, .layout = GemmLayout::kRrr}));
  MatmulShape other = shape;
  other.transpose_a = true;
  other.type = CudaType::kBf16;
  EXPECT_EQ(
      problem(other),
      (GemmSizes{.m = 16, .n = 24, .k = 8, .dtype = DataType::kBf16, .layout = GemmLayout::kRcr}));
  other = shape;
  other.transpose_b = true;
  other.compute = ComputeType::kTf32;
  other.epilogue = kReluBias;
  EXPECT_EQ(problem(other), (GemmSizes{.m = 16,
                                       .n = 24,
                                       .k = 8,
                                       .operation = GemmOperation::kAddmmRelu,
                                       .dtype = DataType::kTf32,
                                       .layout = GemmLayout::kCrr}));
  other.epilogue = kGeluBias;
  EXPECT_EQ(problem(other).operation, GemmOperation::kAddmmGelu);
  other.transpose_a = true;
  other.epilogue = 1;
  other.batch = 5;
  EXPECT_EQ(problem(other), (GemmSizes{.m = 16,
                                       .n = 24,
                                       .k = 8,
                                       .batch = 5,
                                       .operation = GemmOperation::kBmm,
                                       .dtype = DataType::kTf32,
                                       .layout = GemmLayout::kCcr}));
}

TEST(CublasltDispatchTest, AsksOnceForCallsThatLookAlike) {
  const auto dispatcher = sample_dispatcher();
  const MatmulSample first({.type = CudaType::kBf16});
  run(*dispatcher, first);
  const std::uint64_t questions = bench().questions();
  const std::uint64_t products = bench().fake.calls("cublasLtMatmul");
  // The second sample has other operands, alpha and beta; its descriptors are other objects.
  const MatmulSample second({.type = CudaType::kBf16, .alpha = 3, .beta = 1}, 2);
  for (int i = 0; i < 5; ++i) {
    run(*dispatcher, first);
    run(*dispatcher, second);
  }
  EXPECT_EQ(bench().questions(), questions);
  EXPECT_EQ(bench().fake.calls("cublasLtMatmul"), products + 10);

  // A change of anything on which the choice may depend makes another kind of call.
  std::uint64_t last = questions;
  const auto expect_questions = [&](const MatmulCall& call, bool asks) {
    EXPECT_EQ(dispatcher->matmul(call), 0);
    EXPECT_EQ(bench().questions() > last, asks);
    last = bench().questions();
  };
  expect_questions(MatmulSample({.type = CudaType::kBf16, .gap = 8}).call(), true);
  expect_questions(MatmulSample({.type = CudaType::kBf16, .epilogue = kBias}).call(), true);
  expect_questions(MatmulSample({.type = CudaType::kBf16, .offset = 16}).call(), true);
  MatmulCall call = first.call();
  expect_questions(call, false);
  call.workspace_bytes /= 2;
  expect_questions(call, true);
  expect_questions(call, false);
}

TEST(CublasltDispatchTest, TheHeuristicChoosesWhereTheModelCannot) {
  const auto dispatcher = sample_dispatcher();
  const auto reason = [&](const MatmulShape& shape) {
    const CublasltDecision decision = run(*dispatcher, MatmulSample(shape));
    EXPECT_EQ(decision.source, ChoiceSource::kHeuristic);
    EXPECT_EQ(decision.rank, 1);
    EXPECT_THAT(decision.text(), StartsWith("heuristic: heuristic=0 algorithm="));
    return decision.reason;
  };
  EXPECT_THAT(reason({.epilogue = kRelu}), HasSubstr("do not know epilogue 2"));
  EXPECT_THAT(reason({.epilogue = kGelu}), HasSubstr("do not know epilogue 32"));
  EXPECT_THAT(reason({.batch = 2, .epilogue = kBias}), HasSubstr("do not know epilogue 4 of"));
  EXPECT_THAT(reason({.compute = ComputeType::kF32Pedantic}), HasSubstr("types"));
  EXPECT_THAT(reason({.type = CudaType::kBf16, .offset = 2}), HasSubstr("not aligned"));
  EXPECT_THAT(reason({.type = CudaType::kBf16, .offset = 8}), HasSubstr("not aligned"));
  const MatmulSample limited({});
  limited.set(cublaslt::DescriptorAttribute::kMultiprocessorCount, std::int32_t{16});
  EXPECT_THAT(run(*dispatcher, limited).reason, HasSubstr("multiprocessors"));

  const auto small = following_dispatcher(cublaslt_model(sample_predictions(), {.most_log2_m = 5}));
  EXPECT_EQ(run(*small, MatmulSample({.n = 32})).source, ChoiceSource::kModel);
  const CublasltDecision outside = run(*small, MatmulSample({.n = 33}));
  EXPECT_EQ(outside.source, ChoiceSource::kHeuristic);
  EXPECT_THAT(outside.reason, HasSubstr("outside of what the model was trained on"));
}

TEST(CublasltDispatchTest, WhatTheLibraryRefusesIsItsAnswer) {
  const auto dispatcher = sample_dispatcher();
  for (const MatmulShape& shape : {MatmulShape{.order = 1}, MatmulShape{.epilogue = kGeluAux}}) {
    const MatmulSample sample(shape);
    EXPECT_EQ(dispatcher->matmul(sample.call()), cublaslt::kNotSupported);
    const auto decision = dispatcher->decision(sample.call());
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->source, ChoiceSource::kHeuristic);
    EXPECT_THAT(decision->text(), StartsWith("heuristic: left to the library; "));
    EXPECT_THAT(decision->reason, HasSubstr(shape.order == 1 ? "another order" : "epilogue 160"));
  }
}

TEST(CublasltDispatchTest, ModelsOfOtherVersionsAndDevicesAreNotFollowed) {
  const auto reason = [](const std::string& isa) {
    const auto dispatcher =
        open_dispatcher({.model = cublaslt_model(sample_predictions(), {.isa = isa})});
    const CublasltDecision decision = run(*dispatcher, MatmulSample({.type = CudaType::kBf16}));
    EXPECT_EQ(decision.source, ChoiceSource::kHeuristic);
    EXPECT_EQ(decision.rank, 1);
    return decision.reason;
  };
  EXPECT_EQ(reason("sm_90 cublaslt-12.9"),
            "the model is for sm_90 with cuBLASLt 12.9, and this is sm_90 with cuBLASLt 13.0");
  EXPECT_EQ(reason("sm_100 cublaslt-13.0"),
            "the model is for sm_100 with cuBLASLt 13.0, and this is sm_90 with cuBLASLt 13.0");
  EXPECT_THAT(reason("sm_90"), HasSubstr("of unknown version"));
  const auto shipped = open_dispatcher({});
  EXPECT_EQ(run(*shipped, MatmulSample({})).source, ChoiceSource::kHeuristic);
}

TEST(CublasltDispatchTest, ConfigsThatNeedMoreWorkspaceAreNotUsed) {
  CublasltConfig split = tensor_config(448);
  split.split_k = 2;
  split.reduction = 2;
  const auto dispatcher = following_dispatcher(
      cublaslt_model({{split, 7}, {tensor_config(23), 8}, {CublasltConfig::rank(1), 9}}));
  const MatmulSample sample({.type = CudaType::kBf16});
  EXPECT_EQ(run(*dispatcher, sample).source, ChoiceSource::kModel);
  EXPECT_EQ(bench().executed(), split);

  MatmulCall call = sample.call();
  for (const auto& [workspace, bytes] :
       {std::pair<void*, std::size_t>{bench().workspace, 1000},
        {nullptr, kSampleWorkspace},
        {static_cast<char*>(bench().workspace) + 16, kSampleWorkspace - 16}}) {
    call.workspace = workspace;
    call.workspace_bytes = bytes;
    EXPECT_EQ(dispatcher->matmul(call), 0);
    EXPECT_EQ(bench().executed(), tensor_config(23));
    sample.check();
  }
  call.workspace = bench().workspace;
  call.workspace_bytes = 1000;
  EXPECT_THAT(dispatcher->decision(call)->reason,
              HasSubstr("bytes of workspace, and 1000 may be used"));
}

TEST(CublasltDispatchTest, WithoutAnAcceptedConfigTheHeuristicChooses) {
  CublasltConfig in_place = tensor_config(20);
  in_place.split_k = 2;
  in_place.reduction = 1;
  Model model = cublaslt_model({{in_place, 6}, {tensor_config(99), 7}, {tensor_config(23, 9), 8}});
  const auto nothing = following_dispatcher(model);
  const CublasltDecision decision = run(*nothing, MatmulSample({.type = CudaType::kBf16}));
  EXPECT_EQ(decision.source, ChoiceSource::kHeuristic);
  EXPECT_EQ(decision.rank, 1);
  EXPECT_THAT(decision.reason, StartsWith("none of the model's best 3 can run here; "));
  EXPECT_THAT(decision.reason, HasSubstr("summed in place"));
}

TEST(CublasltDispatchTest, RanksOfTheHeuristicCanBeThePick) {
  const auto dispatcher =
      following_dispatcher(cublaslt_model({{CublasltConfig::rank(2), 7}, {tensor_config(23), 8}}));
  const MatmulSample sample({.type = CudaType::kBf16});
  const CublasltDecision decision = run(*dispatcher, sample);
  EXPECT_EQ(decision.source, ChoiceSource::kModel);
  EXPECT_EQ(decision.rank, 2);
  EXPECT_THAT(decision.text(), StartsWith("model, rank 2 of the heuristic: heuristic=0 "));
  EXPECT_EQ(to_text(cublaslt_schema(), bench().executed().to_config()), decision.config_text);
}

// The model's scores depend only on the tile.
TEST(CublasltDispatchTest, AMarginIsOverWhatTheModelSaysOfTheHeuristicsFirst) {
  const MatmulSample sample({.type = CudaType::kBf16});
  const auto with_margin = [&](const std::vector<Prediction>& predictions, double margin) {
    const auto dispatcher =
        open_dispatcher({.model = cublaslt_model(predictions), .dispatch = {.margin = margin}});
    return run(*dispatcher, sample);
  };
  const CublasltDecision first = with_margin(sample_predictions(), 100);
  ASSERT_EQ(first.source, ChoiceSource::kHeuristic);
  EXPECT_EQ(first.rank, 1);
  EXPECT_THAT(first.reason, HasSubstr("margin of 100"));
  const CublasltConfig answer =
      *CublasltConfig::from(*parse_config(cublaslt_schema(), first.config_text));
  ASSERT_NE(answer.tile, 448);
  // The result is the same when the answer itself is a candidate and when only another config of
  // its tile is.
  for (const CublasltConfig& known : {answer, tensor_config(answer.tile, 9)}) {
    std::vector<Prediction> predictions{{tensor_config(448), 8.0}, {known, 8.1}};
    EXPECT_EQ(with_margin(predictions, 0.11).source, ChoiceSource::kHeuristic);
    EXPECT_EQ(with_margin(predictions, 0.09).source, ChoiceSource::kModel);
    EXPECT_EQ(with_margin(predictions, kDefaultCublasltMargin).source, ChoiceSource::kModel);
    predictions.back().score = 8.03;
    EXPECT_EQ(with_margin(predictions, kDefaultCublasltMargin).source, ChoiceSource::kHeuristic);
    EXPECT_EQ(with_margin(predictions, 0).source, ChoiceSource::kModel);
  }
}

TEST(CublasltDispatchTest, TheFastModelIsAskedFirstWhereThatIsWanted) {
  Model model = cublaslt_model(sample_predictions());
  std::vector<Problem> problems;
  for (const std::int64_t size : {16, 32, 48, 64}) {
    problems.push_back(
        GemmProblem::create({.m = size, .n = size, .k = size, .dtype = DataType::kBf16})
            ->to_problem());
  }
  model.domain = ApplicabilityDomain::fit(problems);
  DistilledModel fast;
  fast.portfolio = {0, 2};  // of two constant scores the second is the better one
  fast.features = {{.kind = DistilledFeatureKind::kLog2, .field = 1, .scale = 500}};
  fast.layers = {{.inputs = 1, .outputs = 2, .weights = {0, 0}, .bias = {2, 1}}};
  fast.score_unit = 1e-3;
  fast.regions = {{.bound = 0.01F}};
  model.distilled = fast;
  const MatmulSample sample(
      {.m = 32, .n = 32, .k = 32, .type = CudaType::kBf16, .compute = ComputeType::kF32});
  const auto source = [&](double margin, bool is_fast) {
    const auto dispatcher =
        open_dispatcher({.model = model, .dispatch = {.margin = margin, .fast = is_fast}});
    return run(*dispatcher, sample).source;
  };
  EXPECT_EQ(source(0, true), ChoiceSource::kFastModel);
  EXPECT_EQ(bench().executed(), tensor_config(23));
  EXPECT_EQ(source(0, false), ChoiceSource::kModel);
  EXPECT_EQ(bench().executed(), tensor_config(448));
  EXPECT_EQ(source(100, true), ChoiceSource::kFastModel);
  EXPECT_EQ(source(100, false), ChoiceSource::kHeuristic);
}

TEST(CublasltDispatchTest, GraphsHoldTheChoice) {
  const auto dispatcher = sample_dispatcher();
  const cuda::DriverApi& driver = *bench().driver;
  const MatmulSample sample({.type = CudaType::kBf16});
  MatmulCall call = sample.call();
  cuda::Graph graph = nullptr;
  cuda::GraphExec exec = nullptr;
  ASSERT_EQ(driver.stream_create(&call.stream, cuda::kStreamNonBlocking), 0);
  ASSERT_EQ(driver.begin_capture(call.stream, cuda::kCaptureThreadLocal), 0);
  EXPECT_EQ(dispatcher->matmul(call), 0);
  ASSERT_EQ(driver.end_capture(call.stream, &graph), 0);
  ASSERT_EQ(driver.graph_instantiate(&exec, graph, 0), 0);
  sample.poison();
  ASSERT_EQ(driver.graph_launch(exec, call.stream), 0);
  sample.check();
  EXPECT_EQ(bench().executed(), tensor_config(448));
  driver.graph_exec_destroy(exec);
  driver.graph_destroy(graph);
  driver.stream_destroy(call.stream);
}

TEST(CublasltDispatchTest, TheLibraryThatIsLoadedIsShared) {
  bench();
  EXPECT_TRUE(cuda::SharedLibrary::open_loaded(FORETUNE_FAKE_GPU));
  EXPECT_EQ(cuda::SharedLibrary::open_loaded("libnothing-like-it.so").error().code,
            ErrorCode::kNotFound);
  // The second library is preferred, because it is loaded already.
  const auto shared = cublaslt::Api::load_or_share({"libnothing-like-it.so", FORETUNE_FAKE_GPU});
  ASSERT_TRUE(shared);
  EXPECT_EQ((*shared)->matmul, bench().api->matmul);
}

TEST(CublasltDispatchTest, ARefusalAtRunTimeIsRemembered) {
  const auto dispatcher = sample_dispatcher();
  const MatmulSample sample({.type = CudaType::kBf16});
  bench().fake.set_faults("refuse:448");
  const std::uint64_t before = bench().fake.calls("cublasLtMatmul");
  EXPECT_EQ(dispatcher->matmul(sample.call()), 0);
  sample.check();
  EXPECT_EQ(bench().fake.calls("cublasLtMatmul"), before + 2);
  const CublasltDecision decision = run(*dispatcher, sample);
  EXPECT_EQ(bench().fake.calls("cublasLtMatmul"), before + 3);
  bench().fake.set_faults("");
  EXPECT_EQ(decision.source, ChoiceSource::kHeuristic);
  EXPECT_THAT(decision.reason, HasSubstr("refused the model's choice when it ran"));
}

TEST(CublasltDispatchTest, AnAlgorithmOfTheCallersIsPassedOn) {
  const auto dispatcher = sample_dispatcher();
  const MatmulSample sample({.type = CudaType::kBf16});
  cublaslt::Algorithm algorithm;
  const CudaType type = CudaType::kBf16;
  ASSERT_EQ(bench().api->algorithm_init(bench().handle, ComputeType::kF32, CudaType::kF32, type,
                                        type, type, type, 66, &algorithm),
            0);
  ASSERT_TRUE(cublaslt::set_words(*bench().api, algorithm, tensor_config(20)));
  MatmulCall call = sample.call();
  call.algorithm = &algorithm;
  const std::uint64_t questions = bench().questions();
  EXPECT_EQ(dispatcher->matmul(call), 0);
  EXPECT_EQ(bench().executed(), tensor_config(20));
  EXPECT_EQ(bench().questions(), questions);
}

TEST(CublasltDispatchTest, WrongArgumentsAreRefused) {
  const auto dispatcher = sample_dispatcher();
  const MatmulSample sample({});
  const auto status = [&](auto change) {
    MatmulCall call = sample.call();
    change(call);
    return dispatcher->matmul(call);
  };
  EXPECT_EQ(status([](MatmulCall& call) { call.handle = nullptr; }), 7);
  EXPECT_EQ(status([](MatmulCall& call) { call.descriptor = nullptr; }), 7);
  EXPECT_EQ(status([](MatmulCall& call) { call.alpha = nullptr; }), 7);
  EXPECT_EQ(status([](MatmulCall& call) { call.beta = nullptr; }), 7);
  EXPECT_EQ(status([](MatmulCall& call) { call.a = nullptr; }), 7);
  EXPECT_EQ(status([](MatmulCall& call) { call.b = nullptr; }), 7);
  EXPECT_EQ(status([](MatmulCall& call) { call.d = nullptr; }), 7);
  for (const auto layout : {&MatmulCall::a_layout, &MatmulCall::b_layout, &MatmulCall::c_layout,
                            &MatmulCall::d_layout}) {
    EXPECT_EQ(status([&](MatmulCall& call) { call.*layout = nullptr; }), 7);
    EXPECT_EQ(
        status([&](MatmulCall& call) { call.*layout = reinterpret_cast<cublaslt::Layout>(&call); }),
        7);
  }
  EXPECT_EQ(dispatcher->decision({}).error().code, ErrorCode::kInvalidArgument);
  run(*dispatcher, sample);
}

TEST(CublasltDispatchTest, AFullTableLeavesTheRestToTheLibrary) {
  const auto dispatcher = open_dispatcher(
      {.model = cublaslt_model(sample_predictions()), .dispatch = {.max_problems = 1}});
  const MatmulSample first({.type = CudaType::kBf16});
  run(*dispatcher, first);
  const MatmulSample second({.n = 56, .type = CudaType::kBf16});
  const std::uint64_t questions = bench().questions();
  EXPECT_EQ(dispatcher->matmul(second.call()), 0);
  second.check();
  EXPECT_EQ(bench().questions(), questions);
  run(*dispatcher, first);
  EXPECT_EQ(bench().executed(), tensor_config(448));
}

TEST(CublasltDispatchTest, AThreadWithoutAContextIsServed) {
  const auto dispatcher = sample_dispatcher();
  const MatmulSample sample({.type = CudaType::kBf16});
  std::jthread([&] {
    EXPECT_EQ(dispatcher->matmul(sample.call()), 0);
    EXPECT_THAT(dispatcher->decision(sample.call())->reason, HasSubstr("an unknown device"));
  }).join();
  sample.check();
  EXPECT_EQ(run(*dispatcher, sample).source, ChoiceSource::kModel);
}

TEST(CublasltDispatchTest, ManyThreadsMultiplyAtOnce) {
  const auto dispatcher = sample_dispatcher();
  std::vector<std::unique_ptr<MatmulSample>> samples;
  for (int i = 0; i < 8 * 12; ++i) {
    // Makes twelve kinds of calls, each for eight threads with operands of their own.
    const int kind = i % 12;
    samples.push_back(std::make_unique<MatmulSample>(
        MatmulShape{.m = 16 + 8 * (kind / 2),
                    .n = 24,
                    .k = 16,
                    .type = kind % 2 == 0 ? CudaType::kBf16 : CudaType::kF32},
        static_cast<std::uint64_t>(i)));
  }
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        bench().enter_thread();
        for (std::size_t i = 0; i < 120; ++i) {
          const MatmulCall call = samples[thread * 12 + (i + thread) % 12]->call();
          wrong += dispatcher->matmul(call) == 0 ? 0 : 1;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  for (const auto& sample : samples) {
    sample->check();
    EXPECT_EQ(dispatcher->decision(sample->call())->source, ChoiceSource::kModel);
  }
}

TEST(CublasltDispatchTest, RefusesModelsOfOtherConfigs) {
  Model model = cublaslt_model(sample_predictions());
  model.config_schema.name = "other";
  const auto opened = CublasltDispatcher::open(
      {.model = model, .cublaslt = {FORETUNE_FAKE_GPU}, .driver = FORETUNE_FAKE_GPU});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kMismatch);
}

}  // namespace
}  // namespace foretune
