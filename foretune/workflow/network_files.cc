#include "foretune/workflow/network_files.h"

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/graph/network_file.h"
#include "foretune/interop/onnx/onnx_network.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

namespace {

Result<std::map<std::string, std::vector<std::int64_t>>> parse_input_shapes(
    const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    std::vector<std::int64_t> shape;
    bool is_shape = equals != std::string::npos && equals > 0;
    if (is_shape) {
      for (const std::string_view extent : split(std::string_view(text).substr(equals + 1), 'x')) {
        const auto number = parse_int(extent);
        is_shape = is_shape && number && *number > 0;
        shape.push_back(number ? *number : 0);
      }
    }
    if (!is_shape) {
      return fail(ErrorCode::kInvalidArgument, "--input-shape: ", foretune::quoted(text),
                  " is not NAME=EXTENTS, such as image=1x3x224x224");
    }
    shapes[text.substr(0, equals)] = std::move(shape);
  }
  return shapes;
}

}  // namespace

bool is_network_path(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == graph::kNetworkExtension || extension == graph::kTaskExtension ||
      extension == kOnnxExtension) {
    return true;
  }
  const auto file = MappedFile::open(path);
  return file && (graph::is_network(file->bytes()) || graph::is_task(file->bytes()));
}

Result<NetworkFile> open_network(const std::filesystem::path& path,
                                 const std::vector<std::string>& input_shapes) {
  if (path.extension() == kOnnxExtension) {
    OnnxOptions options;
    FORETUNE_TRY(options.input_shapes, parse_input_shapes(input_shapes));
    FORETUNE_TRY(graph::Network network, read_onnx(path, options));
    return NetworkFile{"ONNX model", {.network = std::move(network)}};
  }
  if (!input_shapes.empty()) {
    return without_effect({"--input-shape"}, "with ONNX files");
  }
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  if (graph::is_task(file.bytes())) {
    FORETUNE_TRY(graph::Task task, graph::read_task(path));
    return NetworkFile{"task", std::move(task)};
  }
  FORETUNE_TRY(graph::Network network, graph::read_network(path));
  return NetworkFile{"network", {.network = std::move(network)}};
}

}  // namespace foretune::workflow
