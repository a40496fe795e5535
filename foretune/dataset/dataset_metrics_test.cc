// Metrics by name in data sets: numbering, merging and what is one measurement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/testing/datasets.h"
#include "foretune/dataset/testing/metric_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing_support::contents_of;

DatasetHeader header_with(std::vector<MetricInfo> metrics) {
  DatasetHeader out;
  out.problem_type = kGemmProblem;
  out.family = "test";
  out.config_schema = {.name = "test", .version = 1, .parameters = {{"tile", {}}}};
  out.metrics = std::move(metrics);
  return out;
}

Problem gemm(std::int64_t m) { return GemmProblem::create({.m = m, .n = 8, .k = 8})->to_problem(); }

Measurement row_of(std::int64_t m, std::int32_t tile, std::vector<MetricValue> metrics,
                   Stage stage = Stage::kNone, Outcome outcome = Outcome::kOk) {
  return row_with_metrics(gemm(m), {.schema = header_with({}).config_schema.id(), .words = {tile}},
                          std::move(metrics), stage, outcome);
}

std::vector<MetricValue> time_of(double time_ns) { return {{kTimeNs, time_ns, 0, 3}}; }

double value_in(const Dataset& dataset, RowIndex row, std::string_view name) {
  const std::vector<MetricValue> values = dataset.values(row);
  const MetricValue* const found = find_metric(values, name);
  return found == nullptr ? -1 : found->value;
}

TEST(DatasetMetrics, CommonOnesHaveTheirNumbersEverywhereAndDeclaredOnesFollow) {
  Dataset dataset(header_with({kPsnr, kMisses}));
  const std::vector<std::string_view> names{"time_ns",  "median_ns", "pack_ns", "energy_j", "bytes",
                                            "qos_tune", "qos_test",  "psnr_db", "l2_misses"};
  ASSERT_EQ(dataset.metric_count(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(dataset.metric(static_cast<MetricIndex>(i)).name, names[i]);
    EXPECT_EQ(dataset.find_metric(names[i]), static_cast<MetricIndex>(i));
  }
  EXPECT_EQ(dataset.intern_metric("unheard_of"), names.size());
  EXPECT_EQ(dataset.header().metrics.back(), (MetricInfo{.name = "unheard_of"}));
  EXPECT_FALSE(dataset.find_metric("psnr"));
}

TEST(DatasetMetrics, DeclaringIsAllOrNothing) {
  Dataset dataset(header_with({kPsnr}));
  MetricInfo other = kPsnr;
  other.unit = "%";
  const std::vector<MetricInfo> wrong{kMisses, other};
  const Status refused = dataset.declare_metrics(wrong);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  EXPECT_EQ(refused.error().message,
            "the metric psnr_db:maximise:%:evaluation is psnr_db:maximise:dB:evaluation in the "
            "data set");
  EXPECT_EQ(dataset.header().metrics, std::vector{kPsnr});
  std::vector<MetricInfo> many;
  for (int i = 0; i < 248; ++i) {
    many.push_back({.name = concat("metric", i)});
  }
  EXPECT_EQ(dataset.declare_metrics(many).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(dataset.header().metrics.size(), 1U);
  many.pop_back();
  EXPECT_TRUE(dataset.declare_metrics(many));
  EXPECT_EQ(dataset.metric_count(), kMaxMetrics);
}

TEST(DatasetMetrics, MergingRenumbersMetricsOfRowsAndBaselines) {
  Dataset a(header_with({kPsnr, kMisses}));
  Dataset b(header_with({kMisses, {.name = "joules"}, kPsnr}));
  a.add(row_of(1, 4, {{kTimeNs, 10}, {"psnr_db", 40}, {"l2_misses", 7}}));
  b.add(row_of(1, 8, {{kTimeNs, 20}, {"l2_misses", 9}, {"joules", 3}, {"psnr_db", 30}}));
  for (Dataset* dataset : {&a, &b}) {
    dataset->add_baseline({.problem = dataset->intern_problem(gemm(1)),
                           .name = "vendor",
                           .time_ns = 5,
                           .metrics = {{dataset->intern_metric("psnr_db"), 99},
                                       {dataset->intern_metric("l2_misses"), 1}}});
  }
  ASSERT_TRUE(a.merge(b));
  EXPECT_EQ(a.header().metrics, (std::vector<MetricInfo>{kPsnr, kMisses, {.name = "joules"}}));
  EXPECT_EQ(value_in(a, 0, "psnr_db"), 40);
  EXPECT_EQ(value_in(a, 1, "psnr_db"), 30);
  EXPECT_EQ(value_in(a, 1, "l2_misses"), 9);
  EXPECT_EQ(value_in(a, 1, "joules"), 3);
  EXPECT_EQ(a.baselines().size(), 1U) << "the same baseline under other numbers";
  // A row's values stand in the order of numbers, so that what is written reads back the same.
  const auto read = read_dataset_bytes(*dataset_bytes(a));
  ASSERT_TRUE(read) << read.error().message;
  testing_support::expect_same(a, *read, "merged");
  Dataset anew(a.header());
  for (const Measurement& row : contents_of(a).rows) {
    anew.add(row);
  }
  EXPECT_EQ(contents_of(anew).rows, contents_of(a).rows);
  EXPECT_EQ(anew.fingerprint(), a.fingerprint());
}

TEST(DatasetMetrics, MergingRefusesAContradictionAndLeavesBothAsTheyWere) {
  MetricInfo other = kPsnr;
  other.direction = Direction::kMinimise;
  Dataset a(header_with({kPsnr}));
  Dataset b(header_with({kMisses, other}));
  a.add(row_of(1, 4, time_of(10)));
  b.add(row_of(1, 8, time_of(20)));
  const Status refused = a.merge(b);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(a.header(), header_with({kPsnr}));
  EXPECT_EQ(a.size(), 1U);
  // One that holds nothing insists on nothing.
  EXPECT_TRUE(a.merge(Dataset(b.header())));
  EXPECT_EQ(a.header(), header_with({kPsnr}));
  Dataset empty(a.header());
  EXPECT_TRUE(empty.merge(b));
  EXPECT_EQ(empty.header(), b.header());
  EXPECT_EQ(empty.size(), 1U);
}

TEST(DatasetMetrics, ADataSetMayBeMergedWithItself) {
  Dataset dataset(header_with({kPsnr, kMisses}));
  dataset.add(row_of(1, 4, {{kTimeNs, 10}, {"psnr_db", 40}, {"l2_misses", 7}}));
  dataset.add(row_of(2, 4, {{kTimeNs, 10}, {"l2_misses", 8}}));
  ASSERT_TRUE(dataset.merge(dataset));
  ASSERT_EQ(dataset.size(), 4U);
  EXPECT_EQ(dataset.measurement(2), dataset.measurement(0));
  EXPECT_EQ(dataset.measurement(3), dataset.measurement(1));
}

TEST(DatasetMetrics, TheFingerprintChangesWithAnyMetricAndIsThatOfOldFilesWithout) {
  Dataset dataset(header_with({}));
  dataset.add(row_of(1, 4, time_of(10)));
  dataset.add(row_of(2, 4, {}, Stage::kRun, Outcome::kCrashed));
  // The formula by which models of earlier versions name their data.
  Digest sum{.high = dataset.header().config_schema.id(), .low = hash64(std::string("test"))};
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Measurement row = dataset.measurement(i);
    const std::uint64_t key = resume_key(row.problem, row.config, row.context);
    const std::uint64_t value =
        hash_combine(std::bit_cast<std::uint32_t>(dataset.rows()[i].time_ns),
                     static_cast<std::uint64_t>(row.outcome));
    sum.high += mix64(hash_combine(key, value));
    sum.low += mix64(hash_combine(value, key));
  }
  EXPECT_EQ(dataset.fingerprint(), sum);
  std::set<std::string> seen{sum.hex()};
  for (const MetricValue& value : {MetricValue("psnr_db", 40), MetricValue("psnr_db", 41),
                                   MetricValue("pack_ns", 40), MetricValue("bytes", 40)}) {
    Dataset changed(header_with({kPsnr}));
    changed.add(row_of(1, 4, {{kTimeNs, 10, 0, 3}, value}));
    changed.add(row_of(2, 4, {}, Stage::kRun, Outcome::kCrashed));
    EXPECT_TRUE(seen.insert(changed.fingerprint().hex()).second) << value.metric << value.value;
    // Numbers of metrics do not matter.
    Dataset renumbered(header_with({kMisses, kPsnr}));
    ASSERT_TRUE(renumbered.merge(changed));
    EXPECT_EQ(renumbered.fingerprint(), changed.fingerprint());
  }
}

TEST(Deduplicate, TakesTheMedianOfEachMetric) {
  Dataset dataset(header_with({kPsnr, kMisses}));
  for (const auto& [time_ns, psnr] : {std::pair(100.0, 30.0), {300.0, 50.0}, {120.0, 31.0}}) {
    dataset.add(row_of(1, 4, {{kTimeNs, time_ns, 0, 3}, {"psnr_db", psnr, 0, 1}}));
  }
  dataset.add(row_of(1, 4, {{kTimeNs, 110, 0, 3}, {"l2_misses", 5, 0.25, 2}}));
  EXPECT_EQ(dataset.deduplicate(), 3U);
  ASSERT_EQ(dataset.size(), 1U);
  EXPECT_EQ(dataset.rows()[0].time_ns, 115.0F);
  EXPECT_EQ(value_in(dataset, 0, "psnr_db"), 31);
  EXPECT_EQ(value_in(dataset, 0, "l2_misses"), 5);
  EXPECT_EQ(dataset.extras()[0].samples, 3U);
  EXPECT_EQ(dataset.extras()[1].spread, 0.25);
}

TEST(Deduplicate, EvaluationsJoinTheRowOfTheirConfigWhateverTheOrder) {
  std::vector<Measurement> rows{
      row_of(1, 4, {{kEnergyJ, 2}}, Stage::kEvaluate),
      row_of(1, 4, {{kTimeNs, 100}, {kPackNs, 9}}),
      row_of(1, 4, {{"psnr_db", 40}}, Stage::kEvaluate),
  };
  do {
    Dataset dataset(header_with({kPsnr}));
    for (const Measurement& row : rows) {
      dataset.add(row);
    }
    EXPECT_EQ(dataset.deduplicate(), 2U);
    ASSERT_EQ(dataset.size(), 1U);
    EXPECT_EQ(dataset.rows()[0].stage, Stage::kNone);
    EXPECT_EQ(dataset.rows()[0].time_ns, 100.0F);
    EXPECT_EQ(value_in(dataset, 0, kPackNs), 9);
    EXPECT_EQ(value_in(dataset, 0, "psnr_db"), 40);
    EXPECT_EQ(value_in(dataset, 0, kEnergyJ), 2);
    EXPECT_EQ(dataset.deduplicate(), 0U);
  } while (std::ranges::next_permutation(rows, {}, [](const Measurement& row) {
             return row.metrics.back().metric;
           }).found);
}

TEST(Deduplicate, AFailedEvaluationStaysApartUnlessAnotherOneSucceeded) {
  const auto failed = [](Outcome outcome) { return row_of(1, 4, {}, Stage::kEvaluate, outcome); };
  Dataset dataset(header_with({kPsnr}));
  dataset.add(failed(Outcome::kCrashed));
  dataset.add(row_of(1, 4, time_of(100)));
  dataset.add(failed(Outcome::kTimedOut));
  EXPECT_EQ(dataset.deduplicate(), 1U);
  ASSERT_EQ(dataset.size(), 2U);
  EXPECT_EQ(dataset.rows()[0].outcome, Outcome::kCrashed);
  EXPECT_TRUE(dataset.rows()[1].is_timed());
  EXPECT_EQ(dataset.deduplicate(), 0U);

  Dataset repeated(header_with({kPsnr}));
  repeated.add(row_of(1, 4, time_of(100)));
  repeated.add(failed(Outcome::kCrashed));
  repeated.add(row_of(1, 4, {{"psnr_db", 40}}, Stage::kEvaluate));
  repeated.deduplicate();
  ASSERT_EQ(repeated.size(), 1U);
  EXPECT_EQ(value_in(repeated, 0, "psnr_db"), 40);

  Dataset untimed(header_with({kPsnr}));
  untimed.add(failed(Outcome::kCrashed));
  untimed.add(row_of(1, 4, {{"psnr_db", 40}}, Stage::kEvaluate));
  untimed.deduplicate();
  EXPECT_EQ(untimed.size(), 1U) << "the same without the row of the time";
}

TEST(Deduplicate, ATimeIsNotLostToARowThatHasNone) {
  for (const bool timed_first : {false, true}) {
    Dataset dataset(header_with({kMisses}));
    std::vector<Measurement> rows{row_of(1, 4, {{"l2_misses", 5}}),
                                  row_of(1, 4, {{kTimeNs, 100, 0.125, 3}, {kMedianNs, 110, 0, 3}})};
    if (timed_first) {
      std::swap(rows[0], rows[1]);
    }
    dataset.add(rows[0]);
    dataset.add(rows[1]);
    EXPECT_EQ(dataset.deduplicate(), 1U);
    ASSERT_EQ(dataset.size(), 1U);
    EXPECT_EQ(dataset.rows()[0].time_ns, 100.0F);
    EXPECT_EQ(dataset.rows()[0].samples, 3U);
    EXPECT_GT(dataset.rows()[0].median_ns, 109.0F);
    EXPECT_EQ(value_in(dataset, 0, "l2_misses"), 5);
  }
}

TEST(Deduplicate, ComparisonsWithOtherMetricsAreNoCopies) {
  Dataset dataset(header_with({kMisses}));
  for (const double misses : {5.0, 6.0, 5.0}) {
    Measurement row = row_of(1, 4, {{kTimeNs, 100}, {"l2_misses", misses}});
    row.flags = kFlagReference;
    dataset.add(row);
  }
  EXPECT_EQ(dataset.deduplicate(), 1U);
  ASSERT_EQ(dataset.size(), 2U);
  EXPECT_EQ(value_in(dataset, 1, "l2_misses"), 6);
}

TEST(Deduplicate, BaselinesAreMergedByTheMediansOfTheirMetrics) {
  Dataset dataset(header_with({kPsnr}));
  const std::uint32_t id = dataset.intern_problem(gemm(1));
  const MetricIndex psnr = *dataset.find_metric("psnr_db");
  dataset.add_baseline({.problem = id, .name = "vendor", .time_ns = 10, .metrics = {{psnr, 1}}});
  dataset.add_baseline({.problem = id, .name = "vendor", .metrics = {{psnr, 5}}});
  dataset.add_baseline({.problem = id, .name = "vendor", .time_ns = 20, .metrics = {{psnr, 2}}});
  dataset.add_baseline({.problem = id, .name = "other", .time_ns = 20});
  dataset.deduplicate();
  ASSERT_EQ(dataset.baselines().size(), 2U);
  const Dataset::Baseline& merged = dataset.baselines()[1];
  EXPECT_EQ(merged.time_ns, 15.0F);
  ASSERT_EQ(merged.metrics.size(), 1U);
  EXPECT_EQ(merged.metrics[0].value, 2);
}

// The rules of deduplicate(), by value and without any numbering.
struct Expected {
  double time_ns = 0;
  Outcome outcome = Outcome::kOk;
  bool is_evaluation = false;
  std::map<std::string, double> metrics;
  auto operator<=>(const Expected&) const = default;
};

// Merges rows that say the same of a config; nothing for none.
std::optional<Expected> merged_rows(const std::vector<const Measurement*>& rows) {
  if (rows.empty()) {
    return std::nullopt;
  }
  Expected out{.outcome = (*std::ranges::min_element(rows, {}, &Measurement::outcome))->outcome,
               .is_evaluation = rows.front()->is_evaluation()};
  std::vector<double> times;
  std::map<std::string, std::vector<double>> metrics;
  for (const Measurement* row : rows) {
    out.is_evaluation = out.is_evaluation && row->is_evaluation();
    for (const MetricValue& value : row->metrics) {
      if (row->outcome == out.outcome) {
        (value.metric == kTimeNs ? times : metrics[value.metric]).push_back(value.value);
      }
    }
  }
  if (!times.empty()) {
    out.time_ns = out.outcome == Outcome::kOk ? median(times) : *std::ranges::max_element(times);
  }
  for (const auto& [name, values] : metrics) {
    if (!values.empty()) {
      out.metrics[name] = median(values);
    }
  }
  return out;
}

std::vector<Expected> merged_slowly(const std::vector<Measurement>& rows) {
  std::map<std::string, std::vector<const Measurement*>> groups;
  for (const Measurement& row : rows) {
    groups[concat(row.problem.text(), " ", row.config.words[0])].push_back(&row);
  }
  std::vector<Expected> out;
  for (const auto& [key, group] : groups) {
    std::vector<const Measurement*> timings;
    std::vector<const Measurement*> found;
    std::vector<const Measurement*> failed;
    for (const Measurement* row : group) {
      (!row->is_evaluation()          ? timings
       : row->outcome == Outcome::kOk ? found
                                      : failed)
          .push_back(row);
    }
    const auto is_ok = [](const Measurement* row) { return row->outcome == Outcome::kOk; };
    const bool join = std::ranges::any_of(timings, is_ok);
    if (join) {
      timings.insert(timings.end(), found.begin(), found.end());
    }
    for (const auto& part : {merged_rows(timings), join ? std::nullopt : merged_rows(found),
                             found.empty() ? merged_rows(failed) : std::nullopt}) {
      if (part) {
        out.push_back(*part);
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Deduplicate, AgreesWithASlowReferenceAndIsDoneAfterOnce) {
  constexpr std::uint64_t kSeed = 5;
  for (std::uint64_t round = 0; round < 400; ++round) {
    Rng rng = Rng(kSeed).split(round);
    Dataset dataset(header_with({kPsnr, kMisses}));
    std::vector<Measurement> rows;
    for (std::uint64_t i = rng.below(40); i > 0; --i) {
      const auto m = static_cast<std::int64_t>(1 + rng.below(2));
      const auto tile = static_cast<std::int32_t>(rng.below(3));
      // Failures of one kind, so that which of several is kept does not matter.
      const std::uint64_t kind = rng.below(7);
      Measurement row = row_of(m, tile, {});
      if (kind < 3) {
        row.metrics = {{kTimeNs, 1.0 + static_cast<double>(rng.below(100)), 0, 3}};
        row.outcome = kind == 2 ? Outcome::kCensored : Outcome::kOk;
      } else if (kind == 3) {
        row.outcome = Outcome::kWrongResult;
        row.stage = Stage::kVerify;
      } else if (kind == 4) {
        row.outcome = Outcome::kCrashed;
        row.stage = Stage::kEvaluate;
      } else {
        row.metrics = {{"psnr_db", rng.normal()}};
        row.stage = kind == 5 ? Stage::kEvaluate : Stage::kNone;
      }
      if (row.outcome == Outcome::kOk && rng.below(2) == 0) {
        row.metrics.push_back({"l2_misses", rng.normal()});
      }
      rows.push_back(row);
      dataset.add(row);
    }
    dataset.deduplicate();
    std::vector<Expected> actual;
    for (const Measurement& row : contents_of(dataset).rows) {
      Expected entry{.outcome = row.outcome, .is_evaluation = row.is_evaluation()};
      for (const MetricValue& value : row.metrics) {
        if (value.metric == kTimeNs) {
          entry.time_ns = value.value;
        } else if (value.metric != kMedianNs) {
          entry.metrics[value.metric] = value.value;
        }
      }
      actual.push_back(std::move(entry));
    }
    std::sort(actual.begin(), actual.end());
    ASSERT_TRUE(actual == merged_slowly(rows)) << "seed " << kSeed << " round " << round;
    ASSERT_TRUE(dataset_bytes(dataset)) << "seed " << kSeed << " round " << round;
    EXPECT_EQ(dataset.deduplicate(), 0U);
  }
}

}  // namespace
}  // namespace foretune
