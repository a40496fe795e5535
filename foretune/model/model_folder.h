// Chooses among the model files of a folder the one for a problem on a machine: by the problem's
// type and labels (operation, data type, layout), then by the device that the model was trained on.
//
//   FORETUNE_TRY(const ModelFolder folder, ModelFolder::open("models"));
//   FORETUNE_TRY(const std::filesystem::path path, folder.choose(problem, machine));
//
// Thread safety: immutable after opening.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/problem.h"

namespace foretune {

class ModelFolder {
 public:
  // Reads everything but the bodies of the model files in the folder, not in folders below it;
  // other files do not matter. Errors: kIo, kNotFound for a folder without models, those of
  // read_model_parts().
  static Result<ModelFolder> open(const std::filesystem::path& folder);

  // Returns the file of the best model for the problem: of those that learned from problems of its
  // type with its labels, the one of this machine, else a joint one that learned from it too, else
  // of its device, else of the widest vectors and the same number of cores, else a joint one of
  // other machines; on a GPU a model of one machine has to be of the same device. `family` may be
  // empty. Among equals the first by name is chosen. Errors: kNotFound, with the reason for each
  // model.
  [[nodiscard]] Result<std::filesystem::path> choose(const Problem& problem,
                                                     const Fingerprint& machine,
                                                     std::string_view family = {}) const;

  // Returns the files, by name.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;

 private:
  struct Entry {
    std::filesystem::path path;
    Model model;  // without a body
  };
  ModelFolder() = default;

  std::vector<Entry> entries_;
};

}  // namespace foretune
