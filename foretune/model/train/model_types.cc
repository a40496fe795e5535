#include <memory>
#include <utility>
#include <vector>

#include "foretune/base/registry.h"
#include "foretune/base/text.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

#define FORETUNE_MODEL_KIND(name) std::span<const ModelTypeEntry> name##_trainers();
#include "foretune/model/kinds.inc"
#undef FORETUNE_MODEL_KIND

namespace {

std::vector<const ModelTypeEntry*> built_in_types() {
  std::vector<const ModelTypeEntry*> out;
#define FORETUNE_MODEL_KIND(name)                         \
  for (const ModelTypeEntry& entry : name##_trainers()) { \
    out.push_back(&entry);                                \
  }
#include "foretune/model/kinds.inc"
#undef FORETUNE_MODEL_KIND
  return out;
}

Registry<ModelTypeEntry>& type_table() {
  static Registry<ModelTypeEntry> types(built_in_types());
  return types;
}

}  // namespace

std::span<const ModelTypeEntry* const> model_types() { return type_table().rows(); }

Status register_model_type(ModelTypeEntry entry) {
  const std::string name = entry.name;
  return type_table().add(std::make_unique<ModelTypeEntry>(std::move(entry)),
                          [&](const ModelTypeEntry& known) { return known.name == name; })
             ? Status()
             : fail(ErrorCode::kInvalidArgument, "there is a type of models ", quoted(name, 40),
                    " already");
}

}  // namespace foretune
