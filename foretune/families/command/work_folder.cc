#include "foretune/families/command/work_folder.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <system_error>

#include "foretune/base/system_error.h"

namespace foretune::command_internal {

Result<WorkFolder> WorkFolder::create() {
  std::error_code error;
  std::string pattern =
      (std::filesystem::temp_directory_path(error) / "foretune-command-XXXXXX").string();
  if (error || ::mkdtemp(pattern.data()) == nullptr) {
    return fail(ErrorCode::kIo, "no temporary folder can be made like ", pattern, ": ",
                error ? error.message() : last_error());
  }
  return WorkFolder(pattern);
}

WorkFolder::~WorkFolder() {
  if (!path_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace foretune::command_internal
