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

}  // namespace foretune
