// Stands in for onnx_protobuf.cc where ONNX's library is not installed.
#include "foretune/interop/onnx/internal/onnx_model.h"

namespace foretune::onnx_internal {

Result<ModelData> read_model(std::span<const std::byte> /*bytes*/) {
  return fail(ErrorCode::kUnsupported,
              "this build of Foretune reads no ONNX files, since libonnx-dev was not installed");
}

}  // namespace foretune::onnx_internal
