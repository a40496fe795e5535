#include "foretune/workflow/trainer_program.h"

#include <algorithm>

namespace foretune::workflow {

std::filesystem::path trainer_program(std::string_view name, const std::string& own_path) {
  constexpr std::string_view kPrefix = "foretune-";
  std::string built_folder(name.substr(kPrefix.size()));
  std::replace(built_folder.begin(), built_folder.end(), '-', '_');
  const std::filesystem::path folder = std::filesystem::path(own_path).parent_path();
  const std::filesystem::path beside = folder / name;
  const std::filesystem::path built = folder.parent_path() / built_folder / name;
  return !std::filesystem::exists(beside) && std::filesystem::exists(built) ? built : beside;
}

}  // namespace foretune::workflow
