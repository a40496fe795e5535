// ONNX models, any bytes: a network that survives being written and read, or a reason.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "foretune/graph/network_file.h"
#include "foretune/interop/onnx/onnx_network.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Small files can ask for many constants.
  const foretune::OnnxOptions options{.max_constants = 1 << 16U};
  const auto network = foretune::import_onnx(std::as_bytes(std::span(data, size)), options);
  if (!network) {
    if (network.error().message.empty()) {
      std::abort();
    }
    return 0;
  }
  if (!foretune::graph::parse_network(foretune::graph::network_bytes(*network))) {
    std::abort();
  }
  return 0;
}
