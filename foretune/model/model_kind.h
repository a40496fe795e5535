// The kinds of models that there are, a row each. A model is a header, which is the same for all
// kinds (model_file.h), and a body that its kind reads, writes, checks, scores with and describes.
//
//   FORETUNE_TRY(const ModelKind* kind, find_model_kind("gbdt"));
//   FORETUNE_TRY(const auto scorer, kind->make_scorer(model, table));
//
// A new kind: a folder below kinds/ with `const ModelKind& NAME_model_kind()` and one row in
// kinds/kinds.inc; or register_model_kind() in a plug-in. A file NAME_train.cc in the folder trains
// it (model/train/trainer.h).
// Thread safety: rows are constant, and may be added at any time; functions are free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_file.h"
#include "foretune/model/proposer.h"
#include "foretune/model/scorer.h"

namespace foretune {

class ColumnMap;

// The id of a section from its four letters.
constexpr std::uint32_t section_id(const char (&name)[5]) {  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t id = 0;
  for (unsigned i = 0; i < 4; ++i) {
    id |= static_cast<std::uint32_t>(static_cast<unsigned char>(name[i])) << (8 * i);
  }
  return id;
}

// A part of the body in a file. Ids of plug-ins begin with 'X'.
struct BodySection {
  std::uint32_t id = 0;
  std::string name;  // "forests", for people
  void (*put)(ByteWriter& writer, const Model& model) = nullptr;
};

// The facts that a kind states about a model.
struct ModelFacts {
  std::vector<std::pair<std::string, std::string>> lines;  // "forests", "1 with 312 trees ..."
  std::vector<std::pair<std::string, double>> figures;     // "trees", 312
  void add(std::string name, std::string text) {
    lines.emplace_back(std::move(name), std::move(text));
  }
};

// How much each column of a feature table contributes to the score of each explained row.
struct Explained {
  std::span<const double> rows;               // [row][column]
  std::span<const std::size_t> explained;     // positions of rows
  std::vector<std::vector<double>>* columns;  // [explained][column], to which the kind adds
};

struct ModelKind {
  std::string name;  // in files: never changed
  std::string description;
  // In the order in which they are written. A file of the kind has all of them.
  std::vector<BodySection> sections;
  // Makes the body of the sections' bytes, in their order. `header` is read already. Errors:
  // kCorrupt for damage, kMismatch for a column that the feature table does not have. Null where
  // the kind is transient.
  Result<std::shared_ptr<const ModelBody>> (*read)(
      const Model& header, std::span<const std::span<const std::byte>> sections,
      const ColumnMap& columns) = nullptr;
  // Refuses a body that does not belong to the header. One that `was_just_read` need not be looked
  // through again for what read() refuses.
  Status (*check)(const Model& model, const FeatureTable& table, bool was_just_read) = nullptr;
  Result<std::unique_ptr<Scorer>> (*make_scorer)(const Model& model,
                                                 const FeatureTable& table) = nullptr;
  // The same as make_scorer() and its prepare(), of a model that was checked: nothing is looked
  // through again, or copied where that takes long.
  Result<std::unique_ptr<PreparedPool>> (*prepare)(const Model& model, const FeatureTable& table,
                                                   ConfigWords configs) = nullptr;
  // The score of one row of the table's columns by the slow way, to the bit that of the pools.
  double (*reference_score)(const Model& model, std::span<const double> row,
                            const Problem& problem) = nullptr;
  ModelFacts (*describe)(const Model& model) = nullptr;
  // Adds the contributions of every column. Null where nothing can be said.
  void (*attribute)(const Model& model, const Problem& problem, const Explained& out) = nullptr;
  // For kinds that predict several metrics: what their columns are, and the model of each. Null for
  // the others, whose one column is the model's target.
  std::vector<ScoreColumn> (*columns)(const Model& model) = nullptr;
  const Model& (*column_model)(const Model& model, std::size_t column) = nullptr;
  // Makes the body anew for the pool and the portfolio of the header, for kinds whose bodies have
  // them, too. Null for the others.
  std::shared_ptr<const ModelBody> (*with_pool)(const Model& model) = nullptr;
  // Makes what proposes configs of a problem without measuring, for kinds that build them step by
  // step; the model must outlive it. Null for the others.
  Result<std::unique_ptr<ConfigProposer>> (*make_proposer)(const Model& model,
                                                           const Problem& problem,
                                                           const Hardware& hardware) = nullptr;
  // True where a score depends on the problem's fields beside the features, so that problems of
  // other types that the table describes mean nothing.
  bool reads_fields = false;
  // True where the body belongs to this process and no file can hold it: such models have no
  // sections, can be evaluated, and are neither stored nor selected with.
  bool is_transient = false;
};

std::span<const ModelKind* const> model_kinds();
// Errors: kUnsupported for a kind unknown to this version.
Result<const ModelKind*> find_model_kind(std::string_view name);
// Adds a kind for the rest of the process. Errors: kInvalidArgument for a name or a section that is
// taken, and for a row without one of its functions.
Status register_model_kind(ModelKind kind);

// Refuses a model of a transient kind, and one of several metrics with such a part. Errors:
// kUnsupported.
Status check_lasting(const Model& model);

// The model's one line and more for people, by its kind.
ModelFacts describe_model(const Model& model);

}  // namespace foretune
