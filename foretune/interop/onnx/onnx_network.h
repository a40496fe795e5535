// Neural networks from ONNX files.
//
//   FORETUNE_TRY(const graph::Network network, read_onnx("resnet50.onnx"));
//
// The first dimension of every input is the batch. It becomes 1, also where a file fixes another
// number; a file whose operations only fit its own batch is refused, and so is one with an input or
// output that has other dimensions before the batch. Weights become f32. Integers and expressions
// of constants are computed while reading. Weights in files of their own, operations on computed
// integers, and control flow are refused.
//
// Reading wants ONNX's library when Foretune is built. Thread safety: free functions. Cost: a file
// is read once and its weights are copied once or twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune {

struct OnnxOptions {
  // The network's name; empty: the one in the file.
  std::string name;
  // Shapes of inputs that a file leaves open, with the first dimension of one image (most often 1).
  // They replace what the file says.
  std::map<std::string, std::vector<std::int64_t>> input_shapes;
  // Numbers that all constants may take together, with those computed of others. A small file may
  // ask for many.
  std::int64_t max_constants = std::int64_t{1} << 29U;
};

// Errors: kUnsupported for operators and types that networks lack, and without ONNX's library;
// kCorrupt for bytes that are not a model; kInvalidArgument for shapes that are open or do not fit.
// Messages name the node.
Result<graph::Network> import_onnx(std::span<const std::byte> bytes,
                                   const OnnxOptions& options = {});
// Errors: as import_onnx(), and kNotFound, kIo for the file.
Result<graph::Network> read_onnx(const std::filesystem::path& path,
                                 const OnnxOptions& options = {});

}  // namespace foretune
