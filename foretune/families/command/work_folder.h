// A folder of its own for a build or a config, removed with all that programs left there.
//
//   FORETUNE_TRY(const WorkFolder folder, WorkFolder::create());
//
// Internal to the module. Thread safety: plain values.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "foretune/base/result.h"

namespace foretune::command_internal {

class WorkFolder {
 public:
  // In the system's folder for temporary files. Errors: kIo.
  static Result<WorkFolder> create();
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkFolder& operator=(WorkFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit WorkFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace foretune::command_internal
