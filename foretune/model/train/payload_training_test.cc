// Learning from problems with payloads: from what is known of them, and where some or all of it is
// missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/train/distilled_model.h"
#include "foretune/model/train/internal/network_inputs.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/model/train/training_set.h"
#include "foretune/model/training_range.h"
#include "foretune/problem/gemm/gemm_weights.h"

namespace foretune {
namespace {

// As cpu-gemm has it; only rows of register blocks differ.
ConfigSchema cpu_schema() {
  ConfigSchema schema;
  schema.name = "cpu";
  for (const char* name : {"isa", "kernel", "mr", "nr", "pack_a", "pack_b", "mc", "nc", "kc",
                           "order", "unroll", "prefetch", "threads", "split"}) {
    schema.parameters.push_back({name, {}});
  }
  return schema;
}

Config rows(std::int32_t mr) {
  return {.schema = cpu_schema().id(), .words = {1, 0, mr, 16, 1, 1, 64, 64, 64, 0, 1, 0, 1, 0}};
}

enum class Known : std::uint8_t { kNothing, kHalf, kAll };

// Small blocks are best with many subnormal weights, large ones with few. Problems come in pairs
// that differ in their weights alone.
Dataset weights_dataset(Known known) {
  static std::deque<PayloadDescriptor> kept;
  Dataset dataset({.family = "cpu", .problem_type = kGemmProblem, .config_schema = cpu_schema()});
  std::uint64_t number = 0;
  for (std::int64_t m = 8; m < 200; m += 7) {
    for (const bool is_slow : {false, true}) {
      const Digest digest{1, ++number};
      Problem problem =
          GemmProblem::create({.m = m, .n = 64, .k = 64, .payload = digest}).value().to_problem();
      if (known == Known::kAll || (known == Known::kHalf && m % 2 == 0)) {
        kept.push_back({&gemm_weights_info(), digest, {0, is_slow ? 0.5 : 0.01, 1, -140}});
        problem.set_descriptor(&kept.back());
      }
      for (const std::int32_t mr : {2, 4, 6, 8}) {
        const double factor = is_slow ? mr : 10 - mr;
        add(dataset, problem, rows(mr), static_cast<double>(m) * factor * 100);
      }
    }
  }
  return dataset;
}

TrainOptions few_trees() {
  TrainOptions options = quick_options();
  options.folds = 4;
  options.feature_table = "gemm-cpu";
  options.gbdt.trees = 60;
  options.gbdt.min_rows_per_leaf = 4;
  return options;
}

std::size_t column(std::string_view name) {
  const std::vector<std::string_view> names{name};
  return find_columns(**find_feature_table("gemm-cpu"), names).value()[0];
}

double efficiency(const TrainResult& result) {
  for (const auto& [name, value] : result.metrics) {
    if (name == "mean_efficiency") {
      return value;
    }
  }
  return 0;
}

bool splits_by(const Model& model, std::string_view name) {
  const std::vector<std::uint32_t>& features = forests_of(model)[0].feature;
  return std::find(features.begin(), features.end(), column(name)) != features.end();
}

TEST(PayloadTraining, LearnsFromWhatIsKnownOfWeights) {
  const auto with = train_gbdt(weights_dataset(Known::kAll), few_trees()).value();
  EXPECT_TRUE(splits_by(with.model, "weights_subnormals"));
  EXPECT_GT(efficiency(with), 0.99);
  const auto& range = with.model.problem_range[column("weights_subnormals")];
  EXPECT_EQ(range, std::pair(0.01, 0.5));
  const auto without = train_gbdt(weights_dataset(Known::kNothing), few_trees()).value();
  EXPECT_FALSE(splits_by(without.model, "weights_subnormals"));
  EXPECT_LT(efficiency(without), 0.9);
}

TEST(PayloadTraining, ColumnsThatAreMissingHaveNoLimits) {
  for (const Known known : {Known::kNothing, Known::kHalf}) {
    const Dataset dataset = weights_dataset(known);
    const auto trained = train_gbdt(dataset, few_trees()).value();
    for (const char* name : {"weights_zeros", "weights_subnormals", "weights_log2_largest"}) {
      EXPECT_EQ(trained.model.problem_range[column(name)], kNoLimits);
    }
    // It survives its file, and scores all problems.
    const auto read = parse_model(model_bytes(trained.model));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(forests_of(*read), forests_of(trained.model));
    for (const Problem& problem : dataset.problems()) {
      std::vector<double> row((*find_feature_table("gemm-cpu"))->columns().size());
      feature_row(**find_feature_table("gemm-cpu"), problem, trained.model.fingerprint.hardware,
                  rows(4), row);
      EXPECT_TRUE(std::isfinite(predict_reference(forests_of(*read)[0], row)));
      EXPECT_TRUE(outside_ranges(*read, **find_feature_table("gemm-cpu"), problem).empty());
    }
  }
}

TEST(PayloadTraining, NetworksSeeNoColumnThatSomeProblemsLack) {
  const FeatureTable& table = **find_feature_table("gemm-cpu");
  for (const Known known : {Known::kNothing, Known::kHalf, Known::kAll}) {
    const Dataset dataset = weights_dataset(known);
    const auto set = train_internal::make_training_set(dataset, table, 0).value();
    const Network inputs = train_internal::make_inputs(dataset, table, set, {});
    const bool sees = std::any_of(
        inputs.inputs.begin(), inputs.inputs.end(),
        [](const NetworkInput& input) { return input.column == column("weights_subnormals"); });
    EXPECT_EQ(sees, known == Known::kAll);
  }
  const NetworkInput input{.mean = 3, .inverse_std = 2};
  EXPECT_EQ(input.of(4), 2);
  EXPECT_EQ(input.of(std::nan("")), 0);
}

TEST(PayloadTraining, AFastModelIsRefused) {
  const Dataset dataset = weights_dataset(Known::kAll);
  const auto trained = train_gbdt(dataset, few_trees()).value();
  const auto fast = distill_model(trained.model, dataset.problems(), DistillOptions{});
  ASSERT_FALSE(fast);
  EXPECT_EQ(fast.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretune
