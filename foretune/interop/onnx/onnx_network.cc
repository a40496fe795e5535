#include "foretune/interop/onnx/onnx_network.h"

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/interop/onnx/internal/onnx_converter.h"
#include "foretune/interop/onnx/internal/onnx_model.h"

namespace foretune {

Result<graph::Network> import_onnx(std::span<const std::byte> bytes, const OnnxOptions& options) {
  FORETUNE_TRY(onnx_internal::ModelData model, onnx_internal::read_model(bytes));
  return onnx_internal::Converter(std::move(model), options).run();
}

Result<graph::Network> read_onnx(const std::filesystem::path& path, const OnnxOptions& options) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  auto network = import_onnx(file.bytes(), options);
  if (!network) {
    return fail_because(network.error(), path.string());
  }
  return network;
}

}  // namespace foretune
