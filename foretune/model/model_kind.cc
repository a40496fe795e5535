#include "foretune/model/model_kind.h"

#include <algorithm>
#include <string_view>

#include "foretune/base/registry.h"
#include "foretune/base/text.h"
#include "foretune/model/internal/model_sections.h"

namespace foretune {

#define FORETUNE_MODEL_KIND(name) const ModelKind& name##_model_kind();
#include "foretune/model/kinds.inc"
#undef FORETUNE_MODEL_KIND

namespace {

Registry<ModelKind>& kind_table() {
#define FORETUNE_MODEL_KIND(name) &name##_model_kind(),
  static Registry<ModelKind> kinds({
#include "foretune/model/kinds.inc"
  });
#undef FORETUNE_MODEL_KIND
  return kinds;
}

bool is_whole(const ModelKind& kind) {
  return !kind.name.empty() && kind.sections.empty() == kind.is_transient &&
         (kind.read == nullptr) == kind.is_transient && kind.check != nullptr &&
         kind.make_scorer != nullptr && kind.prepare != nullptr &&
         kind.reference_score != nullptr && kind.describe != nullptr &&
         (kind.columns == nullptr) == (kind.column_model == nullptr) &&
         std::none_of(kind.sections.begin(), kind.sections.end(),
                      [](const BodySection& section) { return section.put == nullptr; });
}

}  // namespace

std::span<const ModelKind* const> model_kinds() { return kind_table().rows(); }

Result<const ModelKind*> find_model_kind(std::string_view name) {
  for (const ModelKind* const kind : model_kinds()) {
    if (kind->name == name) {
      return kind;
    }
  }
  return fail(ErrorCode::kUnsupported, "models of kind '", name.substr(0, 40),
              "' are not known to this version");
}

Status register_model_kind(ModelKind kind) {
  if (!is_whole(kind)) {
    return fail(ErrorCode::kInvalidArgument, "the kind of models ", quoted(kind.name, 40),
                " lacks one of its functions, or a section");
  }
  for (const BodySection& section : kind.sections) {
    if (find_model_section(section.id) != nullptr) {
      return fail(ErrorCode::kInvalidArgument, "the section '", section.name,
                  "' of the kind of models ", quoted(kind.name, 40),
                  " has the id of one that all models have");
    }
  }
  const std::string name = kind.name;
  return kind_table().add(std::make_unique<ModelKind>(std::move(kind)),
                          [&](const ModelKind& known) { return known.name == name; })
             ? Status()
             : fail(ErrorCode::kInvalidArgument, "there is a kind of models ", quoted(name, 40),
                    " already");
}

Status check_lasting(const Model& model) {
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
  if (kind->is_transient) {
    return fail(
        ErrorCode::kUnsupported, "models of kind '", kind->name,
        "' call back into the program that trained them: they can be evaluated, but neither "
        "stored nor selected with");
  }
  if (kind->columns != nullptr) {
    const std::size_t columns = kind->columns(model).size();
    for (std::size_t i = 0; i < columns; ++i) {
      FORETUNE_TRY_STATUS(check_lasting(kind->column_model(model, i)));
    }
  }
  return {};
}

ModelFacts describe_model(const Model& model) {
  const auto kind = find_model_kind(model.kind);
  return kind && model.body ? (*kind)->describe(model) : ModelFacts();
}

}  // namespace foretune
