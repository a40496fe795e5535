#include "foretune/model/joint_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/metrics/metrics_body.h"
#include "foretune/model/testing/metric_model_samples.h"
#include "foretune/model/testing/model_samples.h"

namespace foretune {
namespace {

Fingerprint cpu_of(const std::string& device, double vector_bytes, double peak) {
  Fingerprint out{.device = device, .isa = "fma", .system = {}, .hardware = {}};
  out.hardware.set(HardwareValue::kVectorBytes, vector_bytes);
  out.hardware.set(HardwareValue::kCores, 1);
  out.hardware.set(HardwareValue::kFmaPeakGflops, peak);
  return out;
}

const Fingerprint kNarrow = cpu_of("One", 32, 90);
const Fingerprint kWide = cpu_of("Two", 64, 180);

Model joint_model() {
  Rng rng(5);
  Model model = sample_model({.candidates = 20}, rng);
  model.fingerprint = kNarrow;
  model.machines = {kNarrow, kWide};
  return model;
}

TEST(JointModel, KeepsItsMachinesInTheFile) {
  const Model model = joint_model();
  const auto again = parse_model(model_bytes(model));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, model);
  EXPECT_TRUE(is_joint(*again));
  EXPECT_TRUE(learned_from(*again, kWide.digest()));
  EXPECT_FALSE(learned_from(*again, cpu_of("Three", 64, 1).digest()));
}

TEST(JointModel, RefusesMachinesWithNumbersOutOfRange) {
  Model model = joint_model();
  model.machines.back().hardware.set(HardwareValue::kCores, -1);
  EXPECT_FALSE(parse_model(model_bytes(model)));
}

TEST(JointModel, TakesTheFactsOfAMachine) {
  Model model = joint_model();
  model.distilled.emplace();
  adapt_to_machine(model, kNarrow);
  EXPECT_TRUE(model.distilled.has_value());
  adapt_to_machine(model, kWide);
  EXPECT_EQ(model.fingerprint, kWide);
  EXPECT_FALSE(model.distilled.has_value());
  EXPECT_THAT(model.machines, testing::SizeIs(2));
}

TEST(JointModel, AdaptsTheModelsOfItsMetrics) {
  Rng rng(7);
  Model model = sample_metrics_model({.candidates = 20}, rng);
  model.machines = {kNarrow, kWide};
  adapt_to_machine(model, kWide);
  ASSERT_FALSE(metrics_of(model).empty());
  for (const MetricModel& part : metrics_of(model)) {
    EXPECT_EQ(part.model->fingerprint, kWide);
  }
}

TEST(JointModel, OfCpusTakesThisMachineWithThePeaksOfTheNearest) {
  const Fingerprint here = this_machine_for(joint_model());
  const Fingerprint read = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
  EXPECT_EQ(here.digest(), read.digest());
  const double peak = here.hardware.get(HardwareValue::kFmaPeakGflops);
  if (read.hardware.get(HardwareValue::kVectorBytes) == 64) {
    EXPECT_EQ(peak, 180);
  } else {
    EXPECT_EQ(peak, 90);
  }
  Model of_gpus = joint_model();
  of_gpus.fingerprint = h200_fingerprint();
  EXPECT_EQ(this_machine_for(of_gpus), h200_fingerprint());
}

}  // namespace
}  // namespace foretune
