// The model file (.ftm): everything needed to pick a config, in sections with a checksum each,
// read through mmap. Magic, version, section table; unknown sections are skipped, newer major
// versions refused. docs/file-formats.md describes it byte by byte.
// Thread safety: immutable after loading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/metrics/metric.h"
#include "foretune/metrics/value_scale.h"
#include "foretune/models/infer/fast_model.h"
#include "foretune/models/infer/forest.h"
#include "foretune/models/infer/network.h"
#include "foretune/models/infer/training_hull.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

class CompiledSpace;
struct Model;

// One metric of a model of several: what predicts its z (ValueScale) and thereby its value.
struct MetricModel {
  MetricInfo metric;
  ValueScale scale;
  // A whole model of target "log" for the same configs and problems. Never null in a model that was
  // read.
  std::shared_ptr<const Model> model;
  bool operator==(const MetricModel& other) const;  // of the models themselves
};

struct Model {
  std::string kind;    // "gbdt", "network", "ensemble" of both, or "metrics": `metrics` alone
  std::string family;  // "cpu-gemm"
  ProblemType problem_type{};
  std::uint64_t problem_schema = 0;  // ProblemSchema::id()
  ConfigSchema config_schema;
  std::string space_text;  // SpaceDefinition::text(): what is legal; empty for sequences
  std::string feature_table;
  std::uint64_t feature_table_id = 0;
  Fingerprint fingerprint;               // of the machine measured on
  std::vector<Config> pool;              // the candidates, distinct, in score order of ties
  std::vector<std::uint32_t> portfolio;  // positions in the pool, most useful first
  std::vector<Forest> forests;           // scores are averaged
  std::vector<Network> networks;         // scores are averaged
  // Of an ensemble: score = (1 - share) * score of the forests + share * score of the networks.
  double network_share = 0.5;
  // In the kind "metrics", which has neither forests nor networks of its own: at least one, the
  // one that scores are of first.
  std::vector<MetricModel> metrics;
  // What the model learned: "relative-log", "log", "tflops", "latency" or "bandwidth". Scores are
  // made of it so that lower is better; they are absolute, ln(ns), for "log" alone.
  std::string target;
  double residual_std = 0;  // of the log time on held-out problems; 0 when unknown
  // Range of every problem feature in training (low, high): outside, the selector abstains.
  std::vector<std::pair<double, double>> problem_range;
  // Where the training problems lie, more closely than the ranges: decides instead of them.
  std::optional<TrainingHull> hull;
  // Picks in a microsecond (Selector::select_fast).
  std::optional<FastModel> fast;
  std::uint64_t seed = 0;
  Digest data_fingerprint;
  std::string card_json;  // the model card: metrics, options, counts; for people and tools

  bool operator==(const Model&) const = default;
};

// What a reader checks before a model is used with a family or data set.
Status check_model(const Model& model);
// The same in parts. Everything but the forests, networks included; returns the space, which is
// compiled on the way, or nullptr where configs are sequences.
Result<std::shared_ptr<const CompiledSpace>> check_model_but_forests(const Model& model);
// The forests; and without looking through them, as those that were just read are valid
// (Forest::validate()), whether there are any and they fit the rest.
Status check_forests(const Model& model);
Status check_forests_fit(const Model& model);

Status write_model(const Model& model, const std::filesystem::path& path);
std::vector<std::byte> model_bytes(const Model& model);
Result<Model> read_model(const std::filesystem::path& path);
// Whether the file begins as model files do, whatever its name and the rest of it.
bool is_model_file(const std::filesystem::path& path);
Result<Model> parse_model(std::span<const std::byte> bytes);

// A model file whose forests, nearly all of it where there are any, are still to be parsed: `model`
// has none.
struct ModelParts {
  Model model;
  std::vector<std::byte> forests;    // a copy: the file may change or go
  std::vector<std::string> columns;  // that the forests were written with; none: the table's first
};
// Errors: as read_model(), but what is wrong with the forests beyond their checksum shows later.
Result<ModelParts> read_model_parts(const std::filesystem::path& path);
// Puts the forests into the model.
Status parse_forests(ModelParts& parts);

}  // namespace foretune
