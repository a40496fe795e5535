#include "foretune/space/known_spaces.h"

#include <string>
#include <vector>

#include "foretune/base/text.h"

namespace foretune {

Result<SpaceDefinition> known_space(std::string_view name) {
  std::vector<std::string> names;
  for (const EmbeddedText& file : known_space_texts()) {
    if (file.name == name) {
      return SpaceDefinition::parse(file.text);
    }
    names.emplace_back(file.name);
  }
  return fail(ErrorCode::kNotFound, "there is no space ", quoted(name, 40),
              " in this version (known: ", join(names, ", "), ")");
}

Result<SpaceDefinition> known_space_of(const ConfigSchema& schema, std::string_view isa) {
  const std::string_view arch = isa.substr(0, isa.find(':'));
  const std::string ending = concat("-", arch);
  for (const EmbeddedText& file : known_space_texts()) {
    if (!arch.empty() && file.name.ends_with(ending)) {
      FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(file.text));
      if (definition.schema == schema) {
        return definition;
      }
    }
  }
  return fail(ErrorCode::kNotFound, "there is no space of ", schema.name, " on ", quoted(isa, 40),
              " in this version");
}

std::string known_rules_of(const ConfigSchema& schema, std::string_view isa) {
  auto known = known_space_of(schema, isa);
  if (!known) {
    return {};
  }
  known->domains.clear();
  return known->text();
}

}  // namespace foretune
