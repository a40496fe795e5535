// Networks in files of every format that is read: our own (`.ftn`), tasks (`.ftt`), ONNX (`.onnx`).
//
//   FORETUNE_TRY(const NetworkFile file, open_network("resnet50.onnx", {}));
//   file.task.network.multiply_adds();
//
// Thread safety: free functions. Cost: a file is read once and its weights are copied.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/task.h"

namespace foretune::workflow {

inline constexpr std::string_view kOnnxExtension = ".onnx";

struct NetworkFile {
  std::string kind;  // "network", "task" or "ONNX model"
  graph::Task task;  // without images unless the file is a task
};

// Returns true for a file that begins as a network or a task does, or is called as one.
[[nodiscard]] bool is_network_path(const std::filesystem::path& path);

// `input_shapes` are those of one image for inputs that an ONNX file leaves open:
// "image=1x3x224x224". Errors: kInvalidArgument for others, and for shapes of files that leave none
// open; those of the readers.
Result<NetworkFile> open_network(const std::filesystem::path& path,
                                 const std::vector<std::string>& input_shapes);

}  // namespace foretune::workflow
