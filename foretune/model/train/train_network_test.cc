// The parent's side of training networks: inputs, rows, the model made from a trained network, and
// the handling of a program that fails. The program itself has its tests where it is built.
#include "foretune/model/train/train_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/model/train/files/testing/neural_samples.h"
#include "foretune/model/train/files/training_files.h"
#include "foretune/model/train/internal/network_inputs.h"
#include "foretune/model/train/internal/network_predictions.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/model/train/training_set.h"
#include "foretune/report/evaluation_report.h"

namespace foretune {
namespace {

using testing_support::sample_deep;
using testing_support::sample_floats;
using testing_support::sample_standard;
using testing_support::TemporaryFolder;
using train_internal::make_inputs;
using train_internal::make_network;
using train_internal::make_rows;
using train_internal::make_training_set;
using train_internal::network_predictions;
using train_internal::NetworkRows;
using train_internal::TrainingSet;

const FeatureTable& table() { return **find_feature_table("gemm-triton"); }

struct Sample {
  Dataset dataset = dataset_of(12, 3, formula_ns);
  TrainingSet set = *make_training_set(dataset, table(), 0.5);
  std::vector<std::uint32_t> folds;
  Sample() {
    for (std::uint32_t i = 0; i < dataset.problems().size(); ++i) {
      folds.push_back(i % 3);
    }
  }
};

TEST(NetworkInputs, ColumnsThatDoNotVaryAreLeftOutAndFewValuesBecomeInputsEach) {
  const Sample sample;
  const Network chain = make_inputs(sample.dataset, table(), sample.set, {});
  std::size_t block_m_values = 0;
  for (std::size_t i = 0; i < chain.inputs.size(); ++i) {
    const NetworkInput& input = chain.inputs[i];
    const std::string_view name = table().columns()[input.column].name;
    EXPECT_NE(name, "block_k");
    EXPECT_NE(name, "num_stages");
    block_m_values += name == "block_m" && input.transform == InputTransform::kEquals ? 1 : 0;
    const FeatureKind kind = table().columns()[input.column].kind;
    EXPECT_EQ(kind == FeatureKind::kProblem, i < chain.problem_inputs);
    EXPECT_EQ(kind == FeatureKind::kInteraction, i >= chain.problem_inputs + chain.config_inputs);
  }
  EXPECT_EQ(block_m_values, 5U);
  EXPECT_TRUE(chain.field_inputs.empty());
  const Network towers = make_inputs(sample.dataset, table(), sample.set, {.has_towers = true});
  EXPECT_EQ(towers.inputs.size(), towers.problem_inputs + towers.config_inputs);
  EXPECT_FALSE(towers.field_inputs.empty());
}

// Problems with sizes within a factor of 20, and one far outside, with configs of its own.
struct OddFold {
  Dataset ordinary{tile_header()};
  Dataset all{tile_header()};
  std::vector<std::uint32_t> folds;

  OddFold() {
    for (std::int64_t i = 0; i < 12; ++i) {
      const Problem problem = shape(96 + 32 * i, 640 - 32 * i, 256 + 64 * (i % 3));
      for (Dataset* dataset : {&ordinary, &all}) {
        add_tiles(*dataset, problem, 4);
      }
      folds.push_back(0);
    }
    add_tiles(all, shape(50000, 8, 64), 8);
    folds.push_back(1);
  }

  static void add_tiles(Dataset& dataset, const Problem& problem, std::int32_t warps) {
    for (Config config : tiles()) {
      config.words[5] = warps;
      add(dataset, problem, config, formula_ns(problem, config));
    }
  }
};

TEST(NetworkInputs, ProblemsOfAHeldOutFoldDoNotChangeThem) {
  const OddFold sample;
  const TrainingSet ordinary = *make_training_set(sample.ordinary, table(), 0.5);
  const TrainingSet all = *make_training_set(sample.all, table(), 0.5);
  for (const bool has_towers : {false, true}) {
    const Network wanted =
        make_inputs(sample.ordinary, table(), ordinary, {.has_towers = has_towers});
    EXPECT_EQ(make_inputs(
                  sample.all, table(), all,
                  {.has_towers = has_towers, .fold_of_problem = sample.folds, .held_out_fold = 1}),
              wanted);
    EXPECT_NE(make_inputs(sample.all, table(), all, {.has_towers = has_towers}), wanted);
  }
}

TEST(NetworkInputs, TheProblemsTowerSeesSomethingWhereOneProblemIsLeft) {
  const OddFold sample;
  const TrainingSet all = *make_training_set(sample.all, table(), 0.5);
  const Network inputs =
      make_inputs(sample.all, table(), all,
                  {.has_towers = true, .fold_of_problem = sample.folds, .held_out_fold = 0});
  EXPECT_EQ(inputs.problem_width(), 1U);
  EXPECT_GT(inputs.config_inputs, 0U);
}

TEST(NetworkInputs, RowsStandProblemAfterProblemAndHoldWhatTheNetworkSees) {
  const Sample sample;
  for (const bool has_towers : {false, true}) {
    const Network inputs =
        make_inputs(sample.dataset, table(), sample.set, {.has_towers = has_towers});
    const NetworkRows made =
        make_rows(sample.dataset, table(), sample.set, inputs, sample.folds, GroupKey::kProblem);
    const std::size_t columns = made.rows.columns();
    ASSERT_EQ(made.rows.inputs.size(), columns * made.rows.size());
    ASSERT_EQ(made.rows.size(), sample.set.size());
    for (std::size_t i = 0; i < made.rows.size(); ++i) {
      const std::uint32_t example = made.example[i];
      EXPECT_EQ(made.rows.fold[made.rows.problem[i]], sample.folds[sample.set.problem[example]]);
      EXPECT_EQ(made.rows.relative[i], sample.set.relative[example]);
      const double* const values =
          sample.set.matrix.values.data() + example * table().columns().size();
      EXPECT_EQ(made.rows.inputs[i * columns],
                inputs.inputs[0].of(values[inputs.inputs[0].column]));
      EXPECT_EQ(made.rows.inputs[i * columns + columns - 1],
                inputs.inputs.back().of(values[inputs.inputs.back().column]));
    }
  }
}

// Compares inputs, standardisation, layers, scale and offset with the layers of libtorch.
TEST(NetworkInputs, TheNetworkSaysWhatTheTrainedLayersSay) {
  const Sample sample;
  Rng rng(4);
  for (const bool has_towers : {false, true}) {
    const Network inputs =
        make_inputs(sample.dataset, table(), sample.set, {.has_towers = has_towers});
    const NetworkRows made =
        make_rows(sample.dataset, table(), sample.set, inputs, sample.folds, GroupKey::kProblem);
    const auto columns = static_cast<std::uint32_t>(made.rows.columns());
    const auto of_problem = static_cast<std::uint32_t>(inputs.problem_width());
    constexpr std::uint32_t kDot = 3;
    constexpr std::uint32_t kHidden = 4;
    TrainedNetwork trained;
    trained.scale = 0.3;
    trained.offset = -1.5;
    for (std::uint32_t c = 0; c < columns; ++c) {
      trained.mean.push_back(static_cast<double>(made.rows.inputs[c]));
      trained.inverse_std.push_back(0.5);
    }
    if (has_towers) {
      trained.layers = sample_standard(of_problem, {6}, kDot + kHidden, rng);
      trained.config_layers = sample_standard(columns - of_problem, {5}, kDot + kHidden + 1, rng);
      trained.interaction = sample_floats(kHidden, 1, rng);
    } else {
      trained.layers = sample_deep(columns, 8, 2, rng);
    }
    const auto network = make_network(inputs, trained);
    ASSERT_TRUE(network) << network.error().message;
    ASSERT_TRUE(network->validate(table(), sample.dataset.problems()[0].fields().size()));
    const auto scored =
        network_predictions(*network, sample.dataset, table(), sample.set, std::span(made.example));
    ASSERT_TRUE(scored);
    for (std::size_t i = 0; i < made.rows.size(); i += 7) {
      std::vector<double> row;
      for (std::uint32_t c = 0; c < columns; ++c) {
        row.push_back((static_cast<double>(made.rows.inputs[i * columns + c]) - trained.mean[c]) *
                      trained.inverse_std[c]);
      }
      double expected = 0;
      if (has_towers) {
        const std::span all(row);
        const auto p = evaluate_layers(trained.layers, all.first(of_problem));
        const auto c = evaluate_layers(trained.config_layers, all.subspan(of_problem));
        expected = c.back();
        for (std::size_t d = 0; d < kDot; ++d) {
          expected += p[d] * c[d];
        }
        for (std::size_t h = 0; h < kHidden; ++h) {
          expected += static_cast<double>(trained.interaction[h]) *
                      std::max(0.0, p[kDot + h] + c[kDot + h]);
        }
      } else {
        expected = evaluate_layers(trained.layers, row).front();
      }
      expected = expected * trained.scale + trained.offset;
      const std::uint32_t example = made.example[i];
      const std::span<const double> features =
          std::span(sample.set.matrix.values)
              .subspan(example * table().columns().size(), table().columns().size());
      const double found = predict_reference(
          *network, features, sample.dataset.problems()[sample.set.problem[example]].fields());
      EXPECT_NEAR(found, expected, 1e-5 * std::max(1.0, std::fabs(expected)));
      EXPECT_EQ((*scored)[i], found);
    }
    TrainedNetwork other = trained;
    other.mean.pop_back();
    EXPECT_FALSE(make_network(inputs, other));
  }
}

std::string script(const TemporaryFolder& folder, const std::string& text) {
  const std::filesystem::path path = folder / "program";
  EXPECT_TRUE(write_text_file_atomically(path, "#!/bin/sh\n" + text));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

TEST(TrainNetwork, SaysWhatIsWrongWithTheProgramOrTheOptions) {
  const TemporaryFolder folder;
  const Dataset dataset = dataset_of(6, 3, formula_ns);
  TrainOptions options = quick_options();
  const auto reason = [&] {
    const auto result = train_deep(dataset, options);
    return result ? std::string() : result.error().message;
  };
  EXPECT_NE(reason().find("foretune-train-network"), std::string::npos);
  options.network.program = folder / "nowhere";
  EXPECT_NE(reason().find("nowhere"), std::string::npos);
  options.network.program = script(folder, "echo epoch 1 of 2; echo no more memory >&2; exit 3\n");
  EXPECT_NE(reason().find("no more memory"), std::string::npos);
  options.network.program = script(folder, "kill -9 $$\n");
  EXPECT_NE(reason().find("SIGKILL"), std::string::npos);
  options.target = Target::kTflops;
  EXPECT_NE(reason().find("tflops"), std::string::npos);
  options.target = Target::kRelativeLog;
  options.network.int8_weights = true;
  const auto towers = train_two_tower(dataset, options);
  ASSERT_FALSE(towers);
  EXPECT_NE(towers.error().message.find("of 8 bits"), std::string::npos);
}

TEST(TrainNetwork, AProgramThatTakesLongCanBeStoppedAndKeepsItsFolder) {
  const TemporaryFolder folder;
  TrainOptions options = quick_options();
  options.network.program =
      script(folder,
             "echo epoch 1 of 9 train 0.5 stop 0.4 efficiency 0.9 lr 0.1 seconds 2\n"
             "sleep 600\n");
  options.network.work_folder = folder / "work";
  TrainProgress seen;
  const auto result =
      train_standard(dataset_of(6, 3, formula_ns), options, [&](const TrainProgress& progress) {
        seen = progress;
        return progress.trees == 0;
      });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(seen.tree, 1U);
  EXPECT_EQ(seen.trees, 9U);
  EXPECT_EQ(seen.step, "epoch");
  EXPECT_DOUBLE_EQ(seen.loss, 0.4);
  EXPECT_DOUBLE_EQ(seen.efficiency, 0.9);
  EXPECT_DOUBLE_EQ(seen.seconds_left, 16);
  EXPECT_TRUE(std::filesystem::exists(folder / "work" / "rows"));
}

// Returns a result as the program would give it, the same for every fold: it held all rows out.
TrainedNetwork trained_on(const Dataset& dataset, const TrainOptions& options) {
  const TrainingSet set = *make_training_set(dataset, table(), options.weight_decay);
  const auto columns =
      static_cast<std::uint32_t>(make_inputs(dataset, table(), set, {}).inputs.size());
  Rng rng(7);
  TrainedNetwork out;
  out.layers = sample_standard(columns, {4}, 1, rng);
  out.mean.assign(columns, 0);
  out.inverse_std.assign(columns, 1);
  out.predictions.assign(set.size(), 0.5F);
  out.roles.assign(set.size(), static_cast<std::uint8_t>(RowRole::kHeldOut));
  out.best_epoch = 2;
  out.epochs = {{.train_loss = 2, .stop_loss = 3}, {.train_loss = 1, .stop_loss = 1.5}};
  out.samples_per_second = 10;
  return out;
}

TEST(TrainNetwork, TheCardHasTheCurvesOfEveryFoldAndNetwork) {
  const TemporaryFolder folder;
  const Dataset dataset = dataset_of(6, 3, formula_ns);
  TrainOptions options = quick_options();
  options.folds = 2;
  options.network.networks = 2;
  const std::filesystem::path prepared = folder / "prepared";
  ASSERT_TRUE(write_trained_network(trained_on(dataset, options), prepared));
  options.network.program =
      script(folder, concat("while [ $# -gt 0 ]; do\n  [ \"$1\" = --out ] && cp '",
                            prepared.string(), "' \"$2\"\n  shift\ndone\n"));
  const auto result = train_standard(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  std::vector<std::string> names;
  for (const TrainingCurve& curve : training_curves(result->model.card_json).curves) {
    names.push_back(curve.name);
    EXPECT_EQ(training_text(curve), "2 epochs, best 2: training loss 1, stopping loss 1.5");
  }
  EXPECT_THAT(names, testing::ElementsAre("fold 1, network 1", "fold 1, network 2",
                                          "fold 2, network 1", "fold 2, network 2",
                                          "all data, network 1", "all data, network 2"));
  for (const auto& [name, value] : result->metrics) {
    if (name == "samples_per_second") {
      EXPECT_DOUBLE_EQ(value, 10);
    }
  }
}

TEST(TrainNetwork, EachFoldIsTrainedOnInputsThatItsOwnProblemsDidNotChoose) {
  const TemporaryFolder folder;
  const OddFold sample;
  const TrainingSet set = *make_training_set(sample.all, table(), 0.5);
  TrainOptions options = quick_options();
  options.folds = 5;
  const std::filesystem::path prepared = folder / "prepared";
  ASSERT_TRUE(write_trained_network(trained_on(sample.all, options), prepared));
  options.network.program =
      script(folder,
             concat("while [ $# -gt 0 ]; do\n  case \"$1\" in\n    --rows) rows=$2 ;;\n"
                    "    --out) out=$2 ;;\n    --held-out-fold) fold=$2 ;;\n  esac\n  shift\ndone\n"
                    "cp \"$rows\" '",
                    (folder / "rows").string(), "'$fold\ncp '", prepared.string(), "' \"$out\"\n"));
  const auto result = train_standard(sample.all, options);
  ASSERT_TRUE(result) << result.error().message;
  std::set<std::vector<float>> different;
  for (int fold = -1; fold < 5; ++fold) {
    const auto rows = read_training_rows(folder / concat("rows", fold));
    ASSERT_TRUE(rows) << rows.error().message;
    const auto held_out = fold < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(fold));
    const Network inputs =
        make_inputs(sample.all, table(), set,
                    {.fold_of_problem = result->fold_of_problem, .held_out_fold = held_out});
    EXPECT_EQ(rows->inputs, make_rows(sample.all, table(), set, inputs, result->fold_of_problem,
                                      GroupKey::kProblem)
                                .rows.inputs)
        << fold;
    different.insert(rows->inputs);
  }
  EXPECT_GT(different.size(), 1U);
}

}  // namespace
}  // namespace foretune
