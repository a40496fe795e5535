#include "foretune/dataset/ftd_format.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"

namespace foretune::ftd {
namespace {

std::span<const std::byte> magic_bytes() { return std::as_bytes(std::span(kMagic)); }

void put_schema(ByteWriter& out, const ConfigSchema& schema) {
  out.put_string(schema.name);
  out.put(schema.version);
  out.put(static_cast<std::uint8_t>(schema.kind));
  out.put_varint(schema.parameters.size());
  for (const Parameter& parameter : schema.parameters) {
    out.put_string(parameter.name);
    out.put_varint(parameter.labels.size());
    for (const std::string& label : parameter.labels) {
      out.put_string(label);
    }
  }
}

ConfigSchema get_schema(ByteReader& in) {
  ConfigSchema schema;
  schema.name = in.get_string(kMaxNameBytes);
  schema.version = in.get<std::uint32_t>();
  schema.kind = static_cast<SchemaKind>(in.get<std::uint8_t>());
  const std::uint64_t parameters = in.get_count(5);
  for (std::uint64_t i = 0; i < parameters && in.ok(); ++i) {
    Parameter parameter;
    parameter.name = in.get_string(kMaxNameBytes);
    const std::uint64_t labels = in.get_count(4);
    for (std::uint64_t j = 0; j < labels && in.ok(); ++j) {
      parameter.labels.push_back(in.get_string(kMaxNameBytes));
    }
    schema.parameters.push_back(std::move(parameter));
  }
  return schema;
}

void put_fingerprint(ByteWriter& out, const Fingerprint& fingerprint) {
  out.put_string(fingerprint.device);
  out.put_string(fingerprint.isa);
  out.put_string(fingerprint.system);
  std::vector<HardwareValue> known;
  for (std::size_t i = 0; i < kHardwareValueCount; ++i) {
    if (fingerprint.hardware.get(static_cast<HardwareValue>(i)) != 0) {
      known.push_back(static_cast<HardwareValue>(i));
    }
  }
  out.put_varint(known.size());
  for (const HardwareValue value : known) {
    out.put_string(to_string(value));
    out.put(fingerprint.hardware.get(value));
  }
}

Fingerprint get_fingerprint(ByteReader& in) {
  Fingerprint fingerprint;
  fingerprint.device = in.get_string(kMaxTextBytes);
  fingerprint.isa = in.get_string(kMaxTextBytes);
  fingerprint.system = in.get_string(kMaxTextBytes);
  const std::uint64_t values = in.get_count(12);
  for (std::uint64_t i = 0; i < values && in.ok(); ++i) {
    const std::string name = in.get_string(kMaxNameBytes);
    const auto number = in.get<double>();
    // Names of later versions are of no use to this one.
    if (const auto value = parse_hardware_value(name)) {
      fingerprint.hardware.set(*value, number);
    }
  }
  return fingerprint;
}

Result<DatasetHeader> decode_header_payload(std::span<const std::byte> payload) {
  ByteReader in(payload);
  DatasetHeader header;
  header.family = in.get_string(kMaxNameBytes);
  const std::string problem_name = in.get_string(kMaxNameBytes);
  const auto problem_id = in.get<std::uint64_t>();
  header.config_schema = get_schema(in);
  header.space_text = in.get_string(kMaxTextBytes);
  header.fingerprint = get_fingerprint(in);
  header.role = static_cast<DatasetRole>(in.get<std::uint8_t>());
  header.seed = in.get<std::uint64_t>();
  header.created_by = in.get_string(kMaxTextBytes);
  if (!in.ok() || !in.at_end()) {
    return fail(ErrorCode::kCorrupt, "the file header cannot be read");
  }
  const ProblemSchema* schema = find_problem_schema(problem_name);
  if (schema == nullptr) {
    return fail(ErrorCode::kUnsupported, "problem type '", problem_name.substr(0, 60),
                "' is not known to this version");
  }
  if (schema->id() != problem_id) {
    return fail(ErrorCode::kMismatch, "the file was written for another version of problem type ",
                schema->name);
  }
  header.problem_type = schema->type;
  if (const Status status = check_header(header); !status) {
    return fail(ErrorCode::kCorrupt, status.error().message);
  }
  return header;
}

}  // namespace

bool has_magic(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), bytes.begin(),
                    [](std::uint8_t a, std::byte b) { return std::byte{a} == b; });
}

Result<std::vector<std::byte>> encode_file_header(const DatasetHeader& header) {
  FORETUNE_TRY_STATUS(check_header(header));
  const ProblemSchema* schema = find_problem_schema(header.problem_type);
  ByteWriter payload;
  payload.put_string(header.family);
  payload.put_string(schema->name);
  payload.put(schema->id());
  put_schema(payload, header.config_schema);
  payload.put_string(header.space_text);
  put_fingerprint(payload, header.fingerprint);
  payload.put(static_cast<std::uint8_t>(header.role));
  payload.put(header.seed);
  payload.put_string(header.created_by);
  if (payload.size() > kMaxHeaderBytes) {
    return fail(ErrorCode::kInvalidArgument, "the header takes ", payload.size(),
                " bytes; at most ", kMaxHeaderBytes, " are allowed");
  }
  ByteWriter out;
  out.put_bytes(magic_bytes());
  out.put(kVersion);
  out.put(static_cast<std::uint32_t>(payload.size()));
  out.put(crc32c(out.bytes()));
  out.put_bytes(payload.bytes());
  out.put(crc32c(payload.bytes()));
  return out.take();
}

Result<FileHeader> decode_file_header(std::span<const std::byte> bytes) {
  const std::size_t start = std::min(bytes.size(), kMagic.size());
  if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(start),
                  magic_bytes().begin())) {
    return fail(ErrorCode::kCorrupt, "this is not a data set file (its first bytes are others)");
  }
  if (bytes.size() < kPrefixBytes) {
    return FileHeader{};
  }
  ByteReader in(bytes.subspan(kMagic.size(), kPrefixBytes - kMagic.size()));
  const auto version = in.get<std::uint32_t>();
  const auto size = in.get<std::uint32_t>();
  if (in.get<std::uint32_t>() != crc32c(bytes.first(kPrefixBytes - 4))) {
    return fail(ErrorCode::kCorrupt, "the checksum of the file's first ", kPrefixBytes,
                " bytes does not match");
  }
  if (version != kVersion) {
    return fail(ErrorCode::kUnsupported, "the file has format version ", version,
                "; this program reads version ", kVersion);
  }
  if (size > kMaxHeaderBytes) {
    return fail(ErrorCode::kCorrupt, "the file header claims ", size, " bytes");
  }
  if (bytes.size() - kPrefixBytes < std::size_t{size} + 4) {
    return FileHeader{};
  }
  const std::span<const std::byte> payload = bytes.subspan(kPrefixBytes, size);
  ByteReader checksum(bytes.subspan(kPrefixBytes + size, 4));
  if (checksum.get<std::uint32_t>() != crc32c(payload)) {
    return fail(ErrorCode::kCorrupt, "the checksum of the file header does not match");
  }
  FileHeader out;
  FORETUNE_TRY(out.header, decode_header_payload(payload));
  out.bytes = kPrefixBytes + size + 4;
  return out;
}

std::vector<std::byte> encode_block(BlockKind kind, std::uint32_t rows,
                                    std::span<const std::byte> payload) {
  FORETUNE_CHECK(payload.size() <= kMaxBlockBytes);
  ByteWriter out;
  out.put(kBlockMark);
  out.put(static_cast<std::uint32_t>(kind));
  out.put(static_cast<std::uint32_t>(payload.size()));
  out.put(rows);
  out.put(crc32c(payload));
  out.put(crc32c(out.bytes()));
  out.put_bytes(payload);
  return out.take();
}

namespace {

bool is_all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// What each kind needs at least for a row, so that a count cannot ask for more than there is.
Status check_block(std::uint32_t kind, std::uint32_t size, std::uint32_t rows) {
  if (kind < static_cast<std::uint32_t>(BlockKind::kRow) ||
      kind > static_cast<std::uint32_t>(BlockKind::kBaselines)) {
    return fail(ErrorCode::kUnsupported, "kind ", kind, " is not known to this version");
  }
  const bool fits = static_cast<BlockKind>(kind) == BlockKind::kRow       ? rows == 1
                    : static_cast<BlockKind>(kind) == BlockKind::kSegment ? rows <= size / 4
                                                                          : rows == 0;
  if (!fits || size > kMaxBlockBytes) {
    return fail(ErrorCode::kCorrupt, "it claims ", rows, " rows in ", size, " bytes");
  }
  return {};
}

}  // namespace

Result<BlockList> list_blocks(std::span<const std::byte> bytes, std::size_t position) {
  BlockList list;
  list.end = position;
  while (bytes.size() - position >= kBlockHeaderBytes) {
    const std::span<const std::byte> raw = bytes.subspan(position, kBlockHeaderBytes);
    ByteReader in(raw);
    const auto mark = in.get<std::uint32_t>();
    const auto kind = in.get<std::uint32_t>();
    const auto size = in.get<std::uint32_t>();
    Block block;
    block.rows = in.get<std::uint32_t>();
    block.checksum = in.get<std::uint32_t>();
    const auto checksum = in.get<std::uint32_t>();
    if (mark != kBlockMark || checksum != crc32c(raw.first(kBlockHeaderBytes - 4))) {
      // A machine that lost power may leave a file that grew but was never filled.
      if (is_all_zero(bytes.subspan(position))) {
        break;
      }
      return fail(ErrorCode::kCorrupt, "the block header at byte ", position, " is damaged");
    }
    if (const Status status = check_block(kind, size, block.rows); !status) {
      return fail_because(status.error(), "block at byte ", position);
    }
    if (bytes.size() - position - kBlockHeaderBytes < size) {
      break;
    }
    block.kind = static_cast<BlockKind>(kind);
    block.position = position;
    block.payload = bytes.subspan(position + kBlockHeaderBytes, size);
    position += kBlockHeaderBytes + size;
    list.rows += block.rows;
    list.end = position;
    list.blocks.push_back(block);
  }
  if (list.rows > kMaxRows) {
    return fail(ErrorCode::kUnsupported, "the file has ", list.rows, " rows; at most ", kMaxRows,
                " can be held");
  }
  return list;
}

Watermark Watermark::of(const Dataset& dataset) {
  return {dataset.problems().size(), dataset.configs().size(), dataset.contexts().size(),
          dataset.reason_count()};
}

}  // namespace foretune::ftd
