// The model file (.ftm) holds everything needed to pick a config, in sections with a checksum each,
// and is read through mmap. It begins with a magic number, a version and a table of sections.
// Readers skip unknown sections and refuse newer major versions.
// docs/reference/file-formats/model.md has the bytes. A model is a header, the same for all kinds,
// and a body that only its kind understands (model_kind.h). Thread safety: immutable after loading.
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
#include "foretune/model/applicability_domain.h"
#include "foretune/model/distilled/distilled_model.h"
#include "foretune/model/model_body.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

class CompiledSpace;
class FeatureTable;

struct Model {
  std::string kind;    // ModelKind::name (model_kind.h): "gbdt"
  std::string family;  // "cpu-gemm"
  ProblemType problem_type{};
  std::uint64_t problem_schema = 0;  // ProblemSchema::id()
  ConfigSchema config_schema;
  std::string space_text;  // SpaceDefinition::text(): the legal configs; empty for sequences
  std::string feature_table;
  std::uint64_t feature_table_id = 0;
  std::string feature_text;  // FeatureTable::definition()
  Fingerprint fingerprint;   // of the machine that ran the measurements
  // A joint model learned from several machines, which are all here; it picks for any machine by
  // the facts in `fingerprint` (adapt_to_machine()). Empty for models of one machine.
  std::vector<Fingerprint> machines;
  std::vector<Config> pool;              // distinct candidates; the earlier of equal scores wins
  std::vector<std::uint32_t> portfolio;  // positions in the pool, most useful first
  SharedBody body;                       // the predictor, in the form that its kind understands
  // The quantity that the model learned: "relative-log", "log", "tflops", "latency" or "bandwidth".
  // Scores are derived from it so that lower is better. Only "log" has absolute scores, in ln(ns).
  std::string target;
  double residual_std = 0;  // of the log time on held-out problems; 0 when unknown
  // The range (low, high) of every problem feature in training. The selector abstains outside of
  // it.
  std::vector<std::pair<double, double>> problem_range;
  // The applicability domain: follows the training problems more closely than the ranges do, and
  // replaces them where it is set.
  std::optional<ApplicabilityDomain> domain;
  // The distilled model, which picks in a microsecond (Selector::select_fast).
  std::optional<DistilledModel> distilled;
  std::uint64_t seed = 0;
  Digest data_fingerprint;
  std::string card_json;  // the model card for people and tools: metrics, options, counts

  bool operator==(const Model&) const = default;
};

// Returns the table that the model was trained with: its own where the model carries the text, else
// the one of that name. Errors: kNotFound, kMismatch for a table of another id, and those of
// kept_expression_table().
Result<const FeatureTable*> feature_table_of(const Model& model);

// Checks everything that must hold before a model is used with a family or data set.
Status check_model(const Model& model);
// Checks everything but the body. Returns the space, which it compiles on the way, or nullptr where
// configs are sequences.
Result<std::shared_ptr<const CompiledSpace>> check_header(const Model& model);
// Checks the body. A body that `was_just_read` is not checked again for errors that reading
// refuses.
Status check_body(const Model& model, bool was_just_read = false);

// Errors: those of check_model() and check_lasting() (model_kind.h), and of writing files.
Status write_model(const Model& model, const std::filesystem::path& path);
// Returns the bytes of a file; readers refuse those of a model that does not pass check_lasting().
std::vector<std::byte> model_bytes(const Model& model);
Result<Model> read_model(const std::filesystem::path& path);
// Returns true when the file begins as model files do. Neither its name nor the rest matters.
bool is_model_file(const std::filesystem::path& path);
Result<Model> parse_model(std::span<const std::byte> bytes);

// A model file whose body is still to be parsed: `model` has none. The body is nearly all of a
// file.
struct ModelParts {
  Model model;
  // A copy of the body's sections, in the order of the kind, since the file may change or vanish.
  // Empty once the model has its body.
  std::vector<std::vector<std::byte>> body;
  // The columns that the body was written with; empty: the first columns of the feature table.
  std::vector<std::string> columns;
};
// Errors: those of read_model(), except that read_body() finds the errors of the body beyond its
// checksums.
Result<ModelParts> read_model_parts(const std::filesystem::path& path);
// Parses the body into the model.
Status read_body(ModelParts& parts);

}  // namespace foretune
