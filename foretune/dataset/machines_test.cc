// Data sets of several machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/testing/datasets.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Fingerprint machine_named(const std::string& name, double cores) {
  Fingerprint out;
  out.device = name;
  out.hardware.set(HardwareValue::kCores, cores);
  return out;
}

const Fingerprint kSmall = machine_named("small", 2);
const Fingerprint kLarge = machine_named("large", 64);

// One row of each problem, `n` from `first`, that took `time_ns`.
Dataset measured_on(const Fingerprint& machine, int first, int problems, float time_ns) {
  DatasetHeader header = testing_support::golden_header(SchemaKind::kParametric);
  header.fingerprint = machine;
  Dataset out(header);
  const Config config = testing_support::golden_measurements(header).front().config;
  for (int n = first; n < first + problems; ++n) {
    out.add({.problem = GemmProblem::create({.m = 8, .n = n, .k = 8}).value().to_problem(),
             .config = config,
             .context = {.machine = machine.digest(), .device = machine.device},
             .metrics = {{kTimeNs, static_cast<double>(time_ns)}},
             .samples_ns = {}});
  }
  return out;
}

Dataset of_both() {
  Dataset out = measured_on(kSmall, 1, 3, 100);
  EXPECT_TRUE(out.merge(measured_on(kLarge, 2, 4, 10)));
  return out;
}

TEST(Machines, MergingKeepsTheFactsOfTheOtherSide) {
  EXPECT_THAT(measured_on(kSmall, 1, 1, 1).machines().value(), ElementsAre(kSmall));
  EXPECT_THAT(of_both().machines().value(), ElementsAre(kSmall, kLarge));
  // Through a file, too.
  const auto bytes = dataset_bytes(of_both());
  ASSERT_TRUE(bytes);
  EXPECT_THAT(read_dataset_bytes(*bytes).value().machines().value(), ElementsAre(kSmall, kLarge));
}

TEST(Machines, AMachineThatMeasuredNothingDoesNotCount) {
  Dataset out = measured_on(kSmall, 1, 0, 1);
  ASSERT_TRUE(out.merge(measured_on(kLarge, 1, 2, 10)));
  EXPECT_THAT(out.machines().value(), ElementsAre(kLarge));
  Dataset other = measured_on(kSmall, 1, 1, 1);
  ASSERT_TRUE(other.merge(measured_on(kLarge, 1, 0, 10)));
  EXPECT_THAT(other.machines().value(), ElementsAre(kSmall));
}

TEST(Machines, ADamagedNoteIsAnError) {
  Dataset out = of_both();
  for (const auto& [name, text] : Notes(out.notes())) {
    out.set_note(name, "hardware: cores=many\n");
  }
  EXPECT_EQ(out.machines().error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(out.by_machine());
}

TEST(Machines, ViewsTellProblemsApart) {
  const Dataset both = of_both();
  const Dataset view = both.by_machine().value();
  EXPECT_THAT(both.problems(), SizeIs(5));
  EXPECT_THAT(view.problems(), SizeIs(7));  // n = 2 and 3 twice
  EXPECT_EQ(view.size(), both.size());
  EXPECT_THAT(view.told_apart(), SizeIs(2));
  for (RowIndex i = 0; i < view.size(); ++i) {
    const Dataset::Row& row = view.rows()[i];
    const Problem& problem = view.problems()[row.problem];
    EXPECT_EQ(problem.machine(), view.contexts()[row.context].machine);
    EXPECT_EQ(view.machine_of(problem), row.time_ns == 10 ? kLarge : kSmall);
    EXPECT_EQ(problem.text(), both.problems()[both.rows()[i].problem].text());
    EXPECT_EQ(problem.group(), both.problems()[both.rows()[i].problem].group());
  }
  // Parts keep the machines.
  std::vector<bool> keep(view.problems().size(), false);
  keep.back() = true;
  const Dataset part = view.filter_problems(keep);
  EXPECT_EQ(part.machine_of(part.problems().front()), kLarge);
}

TEST(Machines, OneMachineStaysAsItIs) {
  const Dataset one = measured_on(kSmall, 1, 3, 100);
  const Dataset view = one.by_machine().value();
  EXPECT_THAT(view.told_apart(), IsEmpty());
  EXPECT_EQ(view.problems().front().machine(), 0U);
  EXPECT_EQ(view.machine_of(view.problems().front()), kSmall);
  EXPECT_EQ(view.fingerprint(), one.fingerprint());
}

TEST(Machines, PartsOfAMachineHaveItsFacts) {
  Dataset both = of_both();
  both.add_baseline({.problem = 0, .name = "theirs", .time_ns = 5});  // n = 1: small alone
  both.add_baseline({.problem = 1, .name = "theirs", .time_ns = 5});  // n = 2: both
  const Dataset small = both.of_machine(kSmall);
  EXPECT_EQ(small.header().fingerprint, kSmall);
  EXPECT_EQ(small.size(), 3U);
  EXPECT_THAT(small.baselines(), SizeIs(1));
  const Dataset large = both.of_machine(kLarge);
  EXPECT_EQ(large.size(), 4U);
  EXPECT_THAT(large.baselines(), IsEmpty());
  EXPECT_THAT(large.machines().value(), ElementsAre(kLarge));
  EXPECT_THAT(both.by_machine().value().baselines(), SizeIs(1));
}

TEST(Machines, RowsOfAnUnknownMachineCountAsTheHeaders) {
  Dataset both = of_both();
  Measurement row = both.measurement(0);
  row.context.machine = 12345;
  both.add(row);
  const Dataset view = both.by_machine().value();
  EXPECT_EQ(view.problems()[view.rows()[view.size() - 1].problem].machine(), kSmall.digest());
}

}  // namespace
}  // namespace foretune
