#include "foretune/dispatch/default_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/cpu_conv/cpu_conv.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"
#include "foretune/families/sparse_cpu/sparse_cpu.h"
#include "foretune/model/later_schema.h"
#include "foretune/problem/sampler.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/select/select.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

std::unique_ptr<Family> family_of(const DefaultModel& shipped, const Fingerprint& machine) {
  const FamilyOptions options{.fingerprint = machine, .threads = shipped.threads};
  if (shipped.family == "cpu-gemm") {
    return *create_cpu_gemm(options);
  }
  if (shipped.family == "sparse-cpu") {
    return *create_sparse_cpu(options);
  }
  EXPECT_EQ(shipped.family, "cpu-conv") << shipped.name;
  return *create_cpu_conv(options);
}

// Products of matrices of several sizes, which need not exist.
std::vector<Problem> sparse_products() {
  std::vector<Problem> out;
  for (const std::int64_t rows : {36, 5000, 200000}) {
    for (const std::int64_t columns : {90, 8192, 100000}) {
      for (const SparseOperation operation :
           {SparseOperation::kSpmv, SparseOperation::kSpmm, SparseOperation::kSddmm}) {
        const SparseSizes sizes{.operation = operation,
                                .rows = rows,
                                .columns = columns,
                                .non_zeros = std::min(rows * columns / 3, 40 * rows),
                                .width = operation == SparseOperation::kSpmv ? 1 : 8 + columns % 99,
                                .payload = Digest::of({})};
        out.push_back(SparseProblem::create(sizes).value().to_problem());
      }
    }
  }
  return out;
}

// Draws problems of all operations and layouts.
std::vector<Problem> drawn_problems(const Family& family) {
  if (family.info().problem_type == kSparseProblem) {
    return sparse_products();
  }
  const ProblemSchema& schema = *find_problem_schema(family.info().problem_type);
  ProblemSampling sampling;
  for (const ProblemField& field : schema.fields) {
    if (field.name == "op" || field.name == "layout") {
      sampling.labels[std::string(field.name)] = {field.labels.begin(), field.labels.end()};
    }
  }
  sampling.labels["dtype"] = {"f32"};
  Rng rng(5);
  const auto drawn = sample_log_normal(*find_problem_type(schema.name), 40, {}, sampling, rng);
  EXPECT_TRUE(drawn) << drawn.error().message;
  return drawn ? drawn->problems : std::vector<Problem>();
}

// A model keeps the rules of the family that it was trained on. Later ones may allow more, never
// less: a config that is legal by the model's rules must run.
void expect_legal_in_family(const Model& model, const Family& family) {
  const auto definition = SpaceDefinition::parse(model.space_text);
  ASSERT_TRUE(definition);
  const auto known = CompiledSpace::create(*definition);
  ASSERT_TRUE(known);
  const Hardware& hardware = model.fingerprint.hardware;
  std::size_t legal = 0;
  for (const Problem& problem : drawn_problems(family)) {
    if (!family.supports(problem)) {
      continue;
    }
    for (const Config& config : model.pool) {
      if ((*known)->is_legal(config.words.view(), problem.fields(), hardware)) {
        ++legal;
        ASSERT_TRUE(family.info().space->is_legal(config.words.view(), problem.fields(), hardware))
            << to_text(model.config_schema, config) << " for " << problem.text();
      }
    }
  }
  EXPECT_GT(legal, model.pool.size());
}

TEST(DefaultCudnnModels, AreReadableNameTheirLibraryAndPickForTheirDirection) {
  ASSERT_EQ(default_cudnn_models().size(), 3U);
  for (const DefaultCudnnModel& shipped : default_cudnn_models()) {
    SCOPED_TRACE(shipped.name);
    auto model = parse_model(shipped.bytes);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->family, "cudnn");
    EXPECT_NE(model->fingerprint.isa.find("cudnn-9."), std::string::npos);
    const auto selector = Selector::create(*std::move(model));
    ASSERT_TRUE(selector) << selector.error().message;
    const auto picks = [&](ConvOperation operation) {
      const Problem layer = *Problem::parse(
          concat("conv op=", to_string(operation),
                 " n=32 c=256 k=256 hi=14 wi=14 y=3 x=3 pad_h=1 pad_w=1 dtype=bf16"));
      return (*selector)->select(layer).picked() && (*selector)->select_fast(layer).choice.picked();
    };
    for (const ConvOperation operation :
         {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
      EXPECT_EQ(picks(operation), operation == shipped.operation) << to_string(operation);
    }
  }
}

TEST(DefaultModelsTest, AreReadableRankTheirFamilyAndNameTheirMachine) {
  ASSERT_FALSE(default_models().empty());
  for (const DefaultModel& shipped : default_models()) {
    SCOPED_TRACE(shipped.name);
    const auto model = parse_model(shipped.bytes);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->family, shipped.family);
    EXPECT_FALSE(model->fingerprint.device.empty());
    EXPECT_FALSE(model->portfolio.empty());
    EXPECT_EQ(model->fingerprint.hardware.get(HardwareValue::kCores), shipped.threads);
    EXPECT_EQ(model->fingerprint.hardware.get(HardwareValue::kVectorBytes),
              4 * kernel_limits(shipped.isa).lanes);
    const std::unique_ptr<Family> family = family_of(shipped, model->fingerprint);
    EXPECT_TRUE(adds_labels_only(family->info().config_schema, model->config_schema));
    const auto of_today = with_later_schema(*model, family->info().config_schema);
    ASSERT_TRUE(of_today) << of_today.error().message;
    EXPECT_TRUE(check_model(*of_today)) << check_model(*of_today).error().message;
    expect_legal_in_family(*model, *family);
    const auto threads = model->config_schema.find("threads");
    ASSERT_TRUE(threads);
    for (const Config& config : model->pool) {
      ASSERT_LE(config.words[*threads], shipped.threads);
    }
  }
  EXPECT_FALSE(default_cpu_model("cpu-gemm", CpuIsa::kGeneric, 1));
  EXPECT_FALSE(default_cpu_model("cpu-gemm", CpuIsa::kAvx512, 3));
  EXPECT_FALSE(default_cpu_model("sparse-cpu", CpuIsa::kAvx512, 3));
}

}  // namespace
}  // namespace foretune
