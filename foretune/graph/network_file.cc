#include "foretune/graph/network_file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/graph/ops.h"

namespace foretune::graph {

namespace {

constexpr std::array kMagic{std::byte{'F'}, std::byte{'T'}, std::byte{'N'}, std::byte{'E'},
                            std::byte{'T'}, std::byte{'W'}, std::byte{'K'}, std::byte{'\n'}};
constexpr std::uint32_t kVersion = 1;

// A tensor of the file is an input, a constant, or made by the operation that stands there.
enum class Kind : std::uint8_t { kInput = 0, kConstant = 1, kComputed = 2 };

void put_shape(ByteWriter& writer, const Shape& shape) {
  writer.put_varint(shape.size());
  for (const std::int64_t extent : shape) {
    writer.put_zigzag(extent);
  }
}

Shape get_shape(ByteReader& reader) {
  Shape shape(static_cast<std::size_t>(reader.get_count(1)));
  for (std::int64_t& extent : shape) {
    extent = reader.get_zigzag();
  }
  return shape;
}

void put_node(ByteWriter& writer, const Node& node) {
  writer.put_string(node.op->name);
  writer.put_string(node.name);
  writer.put_varint(node.inputs.size());
  for (const TensorId id : node.inputs) {
    writer.put_varint(static_cast<std::uint64_t>(id));
  }
  put_shape(writer, node.attributes.integers);
  put_array(writer, node.attributes.numbers);
}

Status get_node(ByteReader& reader, NetworkBuilder& builder) {
  const std::string op = reader.get_string(kMaxName);
  std::string name = reader.get_string(kMaxName);
  std::vector<TensorId> inputs(static_cast<std::size_t>(reader.get_count(1)));
  for (TensorId& id : inputs) {
    const std::uint64_t position = reader.get_varint();
    id = position < kMaxTensors ? static_cast<TensorId>(position) : kNoTensor;
  }
  Attributes attributes{.integers = get_shape(reader)};
  attributes.numbers = get_array<double>(reader);
  if (reader.ok() && find_op(op) == nullptr) {
    return fail(ErrorCode::kUnsupported, "this build has no operation ", foretune::quoted(op));
  }
  builder.add(op, std::move(name), std::move(inputs), std::move(attributes));
  return {};
}

Result<Network> parse_body(ByteReader& reader) {
  NetworkBuilder builder(reader.get_string(kMaxName));
  const std::uint64_t tensors = reader.get_count(1);
  if (tensors > kMaxTensors) {
    reader.fail();
  }
  for (std::uint64_t i = 0; i < tensors && reader.ok(); ++i) {
    const auto kind = reader.get<std::uint8_t>();
    if (kind == static_cast<std::uint8_t>(Kind::kComputed)) {
      FORETUNE_TRY_STATUS(get_node(reader, builder));
      continue;
    }
    std::string name = reader.get_string(kMaxName);
    Shape shape = get_shape(reader);
    if (kind == static_cast<std::uint8_t>(Kind::kInput)) {
      builder.input(std::move(name), std::move(shape));
    } else if (kind == static_cast<std::uint8_t>(Kind::kConstant)) {
      builder.constant(std::move(name), std::move(shape), get_array<float>(reader));
    } else {
      reader.fail();
    }
  }
  std::vector<TensorId> outputs(static_cast<std::size_t>(reader.get_count(1)));
  for (TensorId& id : outputs) {
    const std::uint64_t position = reader.get_varint();
    id = position < kMaxTensors ? static_cast<TensorId>(position) : kNoTensor;
  }
  if (!reader.ok() || !reader.at_end()) {
    return fail(ErrorCode::kCorrupt, "the file of the network is damaged");
  }
  Result<Network> network = builder.finish(std::move(outputs));
  if (!network) {
    return fail(ErrorCode::kCorrupt, network.error().message);
  }
  return network;
}

}  // namespace

bool is_network(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

std::vector<std::byte> network_bytes(const Network& network) {
  ByteWriter body;
  body.put_string(network.name());
  body.put_varint(network.tensors().size());
  for (const Tensor& tensor : network.tensors()) {
    if (tensor.node >= 0) {
      body.put(static_cast<std::uint8_t>(Kind::kComputed));
      put_node(body, network.nodes()[static_cast<std::size_t>(tensor.node)]);
      continue;
    }
    const Kind kind = tensor.is_constant() ? Kind::kConstant : Kind::kInput;
    body.put(static_cast<std::uint8_t>(kind));
    body.put_string(tensor.name);
    put_shape(body, tensor.shape);
    if (tensor.is_constant()) {
      put_array(body, *tensor.values);
    }
  }
  body.put_varint(network.outputs().size());
  for (const TensorId id : network.outputs()) {
    body.put_varint(static_cast<std::uint64_t>(id));
  }
  ByteWriter file;
  file.put_bytes(kMagic);
  file.put(kVersion, crc32c(body.bytes()));
  file.put_bytes(body.bytes());
  return file.take();
}

Result<Network> parse_network(std::span<const std::byte> bytes) {
  if (!is_network(bytes)) {
    return fail(ErrorCode::kCorrupt, "this is no file of a network");
  }
  ByteReader reader(bytes.subspan(kMagic.size()));
  const auto version = reader.get<std::uint32_t>();
  const auto checksum = reader.get<std::uint32_t>();
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "the file of the network is damaged");
  }
  if (version != kVersion) {
    return fail(ErrorCode::kUnsupported, "the file of the network has version ", version,
                "; this program reads ", kVersion);
  }
  const std::span<const std::byte> body = reader.get_bytes(reader.remaining());
  if (crc32c(body) != checksum) {
    return fail(ErrorCode::kCorrupt, "the checksum of the network does not match");
  }
  ByteReader inner(body);
  return parse_body(inner);
}

Result<Network> read_network(const std::filesystem::path& path) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  Result<Network> network = parse_network(file.bytes());
  if (!network) {
    return fail_because(network.error(), path.string());
  }
  return network;
}

Status write_network(const Network& network, const std::filesystem::path& path) {
  return write_file_atomically(path, network_bytes(network));
}

}  // namespace foretune::graph
