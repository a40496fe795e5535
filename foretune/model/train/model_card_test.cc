// Cards as they are written, against what reads their curves again.
#include "foretune/model/train/model_card.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "foretune/evaluate/training_curves.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/problem/kernel/kernel.h"

namespace foretune {
namespace {

using train_internal::network_card;
using train_internal::NetworkCurve;

NetworkCurve curve_of(std::uint32_t epochs, std::uint32_t best_epoch) {
  NetworkCurve curve{.best_epoch = best_epoch};
  for (std::uint32_t epoch = 1; epoch <= epochs; ++epoch) {
    curve.epochs.push_back({.train_loss = 1.0 / epoch, .stop_loss = 0.5 + 1.0 / epoch});
  }
  return curve;
}

TrainingCurves written_and_read(const std::vector<NetworkCurve>& curves) {
  const Dataset dataset = dataset_of(2, 3, formula_ns);
  TrainOptions options = quick_options();
  options.network.loss = "listmle";
  return training_curves(network_card(dataset, **find_feature_table("gemm-triton"),
                                      {.options = options, .curves = curves}));
}

TEST(NetworkCard, KeepsShortCurvesWhole) {
  NetworkCurve fold = curve_of(3, 2);
  fold.held_out_fold = 1;
  const NetworkCurve whole = curve_of(1, 1);
  const TrainingCurves read = written_and_read({fold, whole});
  EXPECT_EQ(read.loss, "listmle");
  ASSERT_EQ(read.curves.size(), 2U);
  EXPECT_EQ(read.curves[0].name, "fold 2");
  EXPECT_EQ(read.curves[0].epochs, 3U);
  EXPECT_EQ(read.curves[0].best, (TrainingCurve::Point{2, 0.5, 1}));
  ASSERT_EQ(read.curves[0].points.size(), 3U);
  EXPECT_EQ(read.curves[0].points[2], (TrainingCurve::Point{3, 0.33333, 0.83333}));
  EXPECT_EQ(read.curves[1].name, "all data");
  EXPECT_EQ(read.curves[1].points.size(), 1U);
}

TEST(NetworkCard, ThinsLongCurvesButForTheFirstTheBestAndTheLastEpoch) {
  for (const std::uint32_t epochs : {100U, 101U, 137U, 1000U}) {
    for (const std::uint32_t best : {1U, 2U, 77U, epochs - 1, epochs}) {
      const TrainingCurves read = written_and_read({curve_of(epochs, best)});
      ASSERT_EQ(read.curves.size(), 1U) << epochs << ", best " << best;
      const TrainingCurve& curve = read.curves[0];
      EXPECT_EQ(curve.epochs, epochs);
      EXPECT_EQ(curve.best.epoch, best);
      EXPECT_GE(curve.points.size(), 100U);
      EXPECT_LE(curve.points.size(), 101U);
      EXPECT_EQ(curve.points.front().epoch, 1U);
      EXPECT_EQ(curve.points.back().epoch, epochs);
      for (std::size_t i = 1; i < curve.points.size(); ++i) {
        EXPECT_LE(curve.points[i].epoch - curve.points[i - 1].epoch, epochs / 90 + 1);
      }
    }
  }
}

TEST(NetworkCard, HasNoStoppingLossesWhereNothingDecidesWhenToStop) {
  NetworkCurve curve = curve_of(4, 4);
  for (TrainedNetwork::Epoch& epoch : curve.epochs) {
    epoch.stop_loss = std::nan("");
  }
  const TrainingCurves read = written_and_read({curve});
  ASSERT_EQ(read.curves.size(), 1U);
  EXPECT_TRUE(std::isnan(read.curves[0].best.stop_loss));
  EXPECT_EQ(read.curves[0].best.train_loss, 0.25);
}

TEST(NetworkCard, WithoutTrainingsHasNoCurves) { EXPECT_TRUE(written_and_read({}).curves.empty()); }

TEST(ModelCard, ListsTheIdentifiersOfTheData) {
  DatasetHeader header = tile_header();
  header.problem_type = kKernelProblem;
  Dataset dataset(header);
  for (const char* problem :
       {"kernel variant=9 size_1=4", "kernel variant=2 size_1=4", "kernel variant=9 size_1=5"}) {
    add(dataset, Problem::parse(problem).value(), tile(16, 16), 100);
  }
  nlohmann::ordered_json data;
  train_internal::add_identifiers(dataset, data);
  EXPECT_EQ(data.dump(), R"({"identifiers":{"variant":[2,9]}})");
  nlohmann::ordered_json of_products;
  train_internal::add_identifiers(dataset_of(2, 3, formula_ns), of_products);
  EXPECT_TRUE(of_products.empty());
}

}  // namespace
}  // namespace foretune
