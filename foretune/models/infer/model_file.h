// The model file (.ftm): everything needed to pick a config, in sections with a checksum each,
// read through mmap. Magic, version, section table; unknown sections are skipped, newer major
// versions refused. docs/file-formats.md describes it byte by byte. A model is a header, which is
// the same for all kinds, and a body that its kind alone understands (model_kind.h).
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
#include "foretune/models/infer/fast_model.h"
#include "foretune/models/infer/model_body.h"
#include "foretune/models/infer/training_hull.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

class CompiledSpace;

struct Model {
  std::string kind;    // ModelKind::name (model_kind.h): "gbdt"
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
  SharedBody body;                       // what predicts, as the kind understands it
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
// The same in parts. Everything but the body; returns the space, which is compiled on the way, or
// nullptr where configs are sequences.
Result<std::shared_ptr<const CompiledSpace>> check_header(const Model& model);
// The body; one that `was_just_read` is not looked through for what reading refuses.
Status check_body(const Model& model, bool was_just_read = false);

Status write_model(const Model& model, const std::filesystem::path& path);
std::vector<std::byte> model_bytes(const Model& model);
Result<Model> read_model(const std::filesystem::path& path);
// Whether the file begins as model files do, whatever its name and the rest of it.
bool is_model_file(const std::filesystem::path& path);
Result<Model> parse_model(std::span<const std::byte> bytes);

// A model file whose body, nearly all of it, is still to be read: `model` has none.
struct ModelParts {
  Model model;
  // A copy of the body's sections, in the order of the kind: the file may change or go. None where
  // the model has its body.
  std::vector<std::vector<std::byte>> body;
  // That the body was written with; none: the first columns of the feature table.
  std::vector<std::string> columns;
};
// Errors: as read_model(), but what is wrong with the body beyond its checksums shows later.
Result<ModelParts> read_model_parts(const std::filesystem::path& path);
// Puts the body into the model.
Status read_body(ModelParts& parts);

}  // namespace foretune
