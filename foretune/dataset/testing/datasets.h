// Data sets for tests: random ones of every shape that the data model allows, and the fixed one in
// the golden files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::testing_support {

// Returns texts that are hard for formats.
inline std::string random_text(Rng& rng) {
  static const std::vector<std::string> pieces{"plain",
                                               "with blank",
                                               "comma, comma",
                                               "\"quoted\"",
                                               "line\nbreak",
                                               "tab\there",
                                               "back\\slash",
                                               "h\u00e9llo",
                                               "Infinity",
                                               "NaN",
                                               "{}[]:",
                                               "'",
                                               "0",
                                               "=",
                                               "\r\n",
                                               "\"",
                                               "",
                                               "a=b",
                                               " edges "};
  std::string out;
  for (std::uint64_t i = rng.below(3); i > 0; --i) {
    out += pieces[rng.below(pieces.size())];
  }
  return out;
}

inline Problem random_problem(const ProblemSchema& schema, Rng& rng) {
  while (true) {
    Problem::Fields fields;
    for (const ProblemField& field : schema.fields) {
      if (field.default_value && rng.below(2) == 0) {
        fields.push_back(*field.default_value);
        continue;
      }
      const std::int64_t high =
          rng.below(4) == 0 ? field.maximum : std::min<std::int64_t>(field.maximum, 9);
      fields.push_back(rng.between(field.minimum, std::max(field.minimum, high)));
    }
    Digest payload;
    if (schema.payload == PayloadUse::kRequired) {
      payload = {rng.next(), rng.next()};
    }
    // Rules beyond the ranges (a batch needs a batched operation) refuse some problems. That is
    // rare, since half of the other fields have their defaults.
    if (auto problem = Problem::create(schema.type, std::move(fields), payload)) {
      return *std::move(problem);
    }
  }
}

inline ConfigSchema random_schema(SchemaKind kind, Rng& rng) {
  ConfigSchema schema{.name = concat("schema", rng.below(9)),
                      .version = static_cast<std::uint32_t>(rng.below(5)),
                      .kind = kind,
                      .parameters = {}};
  if (kind == SchemaKind::kSequence) {
    return schema;
  }
  // Some names are also those of columns of a table or fields of a problem.
  static const std::vector<std::string> names{"mr",       "threads", "samples", "k",     "order",
                                              "config.x", "stage",   "tile_m",  "batch", "time_ns"};
  const std::uint64_t count = 2 + rng.below(names.size() - 2);
  for (std::uint64_t i = 0; i < count; ++i) {
    Parameter parameter{names[i], {}};
    if (rng.below(3) == 0) {
      parameter.labels = {"no", "yes", "per-hap,s", "\"q\""};
    }
    schema.parameters.push_back(std::move(parameter));
  }
  return schema;
}

inline DatasetHeader random_header(const ProblemSchema& problem, SchemaKind kind, Rng& rng) {
  DatasetHeader header;
  header.family = concat("family ", random_text(rng));
  header.problem_type = problem.type;
  header.config_schema = random_schema(kind, rng);
  header.space_text = random_text(rng);
  header.fingerprint.device = rng.below(3) == 0 ? "" : "Some CPU @ 2.00GHz";
  header.fingerprint.isa = "avx2 fma";
  header.fingerprint.hardware.set(HardwareValue::kCores, static_cast<double>(rng.below(64)));
  header.fingerprint.hardware.set(HardwareValue::kFmaPeakGflops, 100 * rng.uniform());
  header.role = rng.below(2) == 0 ? DatasetRole::kTraining : DatasetRole::kValidation;
  header.seed = rng.next();
  header.created_by = random_text(rng);
  if (rng.below(2) == 0) {
    header.metrics = {{.name = "psnr_db",
                       .unit = "dB",
                       .direction = Direction::kMaximise,
                       .stage = MetricStage::kEvaluation},
                      {.name = "l2_misses", .unit = ""}};
  }
  return header;
}

inline Config random_config(const ConfigSchema& schema, Rng& rng) {
  Config config{.schema = schema.id(), .words = {}};
  if (schema.kind == SchemaKind::kSequence) {
    for (std::uint64_t i = rng.below(rng.below(4) == 0 ? 300 : 20); i > 0; --i) {
      config.words.push_back(static_cast<std::int32_t>(rng.next()));
    }
    return config;
  }
  for (const Parameter& parameter : schema.parameters) {
    config.words.push_back(parameter.labels.empty()
                               ? static_cast<std::int32_t>(rng.between(-2, 70000))
                               : static_cast<std::int32_t>(rng.below(parameter.labels.size())));
  }
  return config;
}

inline void add_random_metrics(Measurement& measurement, Rng& rng) {
  const bool may_have_time =
      measurement.outcome == Outcome::kOk || measurement.outcome == Outcome::kCensored;
  // A row of a later stage has only other metrics.
  const bool is_evaluation = measurement.outcome == Outcome::kOk && rng.below(4) == 0;
  const bool timed = may_have_time && !is_evaluation;
  if (timed) {
    const double time_ns = std::exp(-3 + 40 * rng.uniform());
    const auto samples = static_cast<std::uint32_t>(rng.below(rng.below(9) == 0 ? 90000 : 20));
    measurement.metrics.push_back({kTimeNs, time_ns, 0.2 * rng.uniform(), samples});
    if (rng.below(3) > 0) {
      measurement.metrics.push_back(
          {kMedianNs, time_ns * (0.9 + 3 * rng.uniform()), measurement.metrics[0].spread, samples});
    }
  } else if (is_evaluation) {
    measurement.stage = Stage::kEvaluate;
    measurement.metrics.push_back({"psnr_db", 40 * rng.normal(), 0, 1});
  } else {
    measurement.stage = static_cast<Stage>(rng.below(6));
    measurement.reason = random_text(rng);
  }
  for (const std::string_view id :
       {kPackNs, kEnergyJ, std::string_view("qos_test"), std::string_view("undeclared")}) {
    if (rng.below(5) == 0) {
      measurement.metrics.push_back(
          {id, 1000 * rng.normal(), rng.uniform(), static_cast<std::uint32_t>(rng.below(10))});
    }
  }
  for (std::uint64_t i = timed && rng.below(4) == 0 ? 1 + rng.below(6) : 0; i > 0; --i) {
    measurement.samples_ns.push_back(static_cast<float>(1e4 * rng.uniform()));
  }
}

inline Measurement random_measurement(const DatasetHeader& header, Rng& rng) {
  Measurement out{.problem = random_problem(*find_problem_schema(header.problem_type), rng),
                  .config = random_config(header.config_schema, rng),
                  .context = {.machine = rng.below(2) == 0 ? 0 : ~std::uint64_t{rng.below(2)},
                              .device = rng.below(2) == 0 ? "cpu" : random_text(rng),
                              .threads = static_cast<std::int32_t>(rng.between(1, 2)),
                              .cache = rng.below(3) == 0 ? CacheState::kCold : CacheState::kWarm,
                              .clock_mhz = rng.below(3) == 0 ? 2100 : 0,
                              .fidelity = static_cast<std::int32_t>(rng.between(-1, 1))},
                  .outcome = rng.below(2) == 0 ? Outcome::kOk : static_cast<Outcome>(rng.below(7)),
                  .stage = Stage::kNone,
                  .flags = static_cast<std::uint8_t>(rng.below(rng.below(2) == 0 ? 2 : 256)),
                  .reason = {},
                  .metrics = {},
                  .samples_ns = {}};
  add_random_metrics(out, rng);
  return out;
}

inline Dataset random_dataset(const ProblemSchema& problem, SchemaKind kind, std::size_t rows,
                              Rng& rng) {
  Dataset dataset(random_header(problem, kind, rng));
  std::vector<Measurement> seen;
  for (std::size_t i = 0; i < rows; ++i) {
    Measurement measurement = random_measurement(dataset.header(), rng);
    // Values repeat, as in real data.
    if (!seen.empty() && rng.below(2) == 0) {
      measurement.problem = seen[rng.below(seen.size())].problem;
    }
    if (!seen.empty() && rng.below(2) == 0) {
      measurement.config = seen[rng.below(seen.size())].config;
    }
    dataset.add(measurement);
    seen.push_back(std::move(measurement));
  }
  for (std::uint64_t i = rng.below(3); i > 0; --i) {
    dataset.add_baseline({.problem = dataset.intern_problem(random_problem(problem, rng)),
                          .name = concat("vendor ", i),
                          .time_ns = static_cast<float>(1 + 1e5 * rng.uniform())});
  }
  if (rng.below(2) == 0) {
    dataset.add_baseline({.problem = dataset.intern_problem(random_problem(problem, rng)),
                          .name = "untouched",
                          .metrics = {{dataset.intern_metric("psnr_db"), 90 * rng.uniform()},
                                      {dataset.intern_metric(kEnergyJ), rng.uniform()}}});
  }
  return dataset;
}

// The contents of a data set by value, independent of its ids.
struct Contents {
  std::vector<Measurement> rows;
  std::vector<std::pair<std::string, float>> baselines;
  std::vector<std::pair<std::string, double>> baseline_metrics;
  bool operator==(const Contents&) const = default;
};

inline Contents contents_of(const Dataset& dataset) {
  Contents out;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    out.rows.push_back(dataset.measurement(i));
  }
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    out.baselines.emplace_back(
        concat(dataset.problems()[baseline.problem].text(), " ", baseline.name), baseline.time_ns);
    for (const Dataset::Baseline::Metric& metric : baseline.metrics) {
      out.baseline_metrics.emplace_back(
          concat(out.baselines.back().first, " ", dataset.metric(metric.metric).name),
          metric.value);
    }
  }
  return out;
}

inline void expect_same(const Dataset& expected, const Dataset& actual, const std::string& where) {
  EXPECT_EQ(expected.header(), actual.header()) << where;
  const Contents a = contents_of(expected);
  const Contents b = contents_of(actual);
  ASSERT_EQ(a.rows.size(), b.rows.size()) << where;
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    ASSERT_EQ(a.rows[i], b.rows[i]) << where << ", row " << i;
  }
  EXPECT_EQ(a.baselines, b.baselines) << where;
  EXPECT_EQ(a.baseline_metrics, b.baseline_metrics) << where;
  EXPECT_EQ(expected.fingerprint(), actual.fingerprint()) << where;
}

// The contents of the golden files. Never change them: released versions wrote these files.
inline DatasetHeader golden_header(SchemaKind kind) {
  DatasetHeader header;
  header.family = "golden";
  header.problem_type = kGemmProblem;
  header.config_schema = {.name = "golden", .version = 7, .kind = kind, .parameters = {}};
  if (kind == SchemaKind::kParametric) {
    header.config_schema.parameters = {{"tile", {}}, {"order", {"mnk", "nkm"}}};
  }
  header.space_text = "a space";
  header.fingerprint.device = "a machine";
  header.fingerprint.isa = "avx2 fma";
  header.fingerprint.system = "a system";
  header.fingerprint.hardware.set(HardwareValue::kCores, 2);
  header.fingerprint.hardware.set(HardwareValue::kBandwidthGbs, 12.5);
  header.role = DatasetRole::kValidation;
  header.seed = 18446744073709551615U;
  header.created_by = "foretune collect --seed 1";
  return header;
}

inline std::vector<Measurement> golden_measurements(const DatasetHeader& header) {
  std::vector<Measurement> out;
  for (int i = 0; i < 12; ++i) {
    Measurement row{.problem = *Problem::parse(
                        concat("gemm op=", i % 4 == 3 ? "bmm" : "mm", " m=", 8 + i / 3,
                               " n=7 k=2147483647 batch=", i % 4 == 3 ? 5 : 1, " dtype=bf16")),
                    .config = {.schema = header.config_schema.id(), .words = {}},
                    .context = {.machine = 5, .device = "cpu", .threads = 1 + i % 2},
                    .outcome = static_cast<Outcome>(i % 7),
                    .stage = static_cast<Stage>(i % 7 > 1 ? i % 5 : 0),
                    .flags = static_cast<std::uint8_t>(i == 4 ? kFlagLoaded : 0),
                    .reason = i % 7 > 1 ? concat("reason ", i % 3) : std::string(),
                    .metrics = {},
                    .samples_ns = {}};
    const int words = header.config_schema.kind == SchemaKind::kParametric ? 2 : i;
    for (int w = 0; w < words; ++w) {
      row.config.words.push_back(w == 1 ? i % 2 : 16 * i - 32);
    }
    if (i % 7 < 2) {
      row.metrics = {{kTimeNs, 1000.5 * (i + 1), 0.03125, 9},
                     {kMedianNs, 1250.625 * (i + 1), 0.03125, 9}};
    }
    if (i == 0 || i == 8) {
      row.metrics.push_back({kEnergyJ, 0.1, 0.25, 3});
      row.samples_ns = {1000.5F, 1250.25F};
    }
    out.push_back(std::move(row));
  }
  return out;
}

inline Dataset golden_dataset(SchemaKind kind) {
  Dataset dataset(golden_header(kind));
  for (const Measurement& measurement : golden_measurements(dataset.header())) {
    dataset.add(measurement);
  }
  return dataset;
}

}  // namespace foretune::testing_support
