// The blocks of a file: their heads, checksums and torn ends.
#include <algorithm>

#include "foretune/base/hash.h"
#include "foretune/dataset/records.h"

namespace foretune::dataset_internal {

void append_preamble(ByteWriter& out) {
  out.put_bytes(std::as_bytes(std::span(kMagic)));
  out.put(kFormatVersion);
}

void append_block(ByteWriter& out, BlockType type, std::span<const std::byte> payload) {
  ByteWriter head;
  head.put(static_cast<std::uint32_t>(payload.size()));
  head.put(static_cast<std::uint8_t>(type));
  head.put(std::uint8_t{0});
  // The head has its own checksum, so that a damaged length does not look like a torn tail.
  head.put(static_cast<std::uint16_t>(crc32c(head.bytes())));
  head.put(crc32c(payload, crc32c(head.bytes())));
  out.put_bytes(head.bytes());
  out.put_bytes(payload);
}

Result<BlockReader> BlockReader::create(std::span<const std::byte> file) {
  ByteReader reader(file);
  const std::span<const std::byte> magic = reader.get_bytes(kMagic.size());
  if (!reader.ok() ||
      !std::equal(magic.begin(), magic.end(), std::as_bytes(std::span(kMagic)).begin())) {
    return fail(ErrorCode::kCorrupt,
                "this is not a foretune data set (its first bytes are others)");
  }
  const auto version = reader.get<std::uint32_t>();
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "the file ends within its first 12 bytes");
  }
  if (version != kFormatVersion) {
    return fail(ErrorCode::kUnsupported, "data set format version ", version,
                " is not known to this version, which reads version ", kFormatVersion);
  }
  return BlockReader(file, 0, kPreambleSize);
}

BlockReader BlockReader::resume(std::span<const std::byte> rest, std::size_t position) {
  return {rest, position, position};
}

Result<std::optional<Block>> BlockReader::next() {
  const std::span<const std::byte> rest = file_.subspan(position_ - begin_);
  if (rest.size() < kBlockHeadSize) {
    return std::optional<Block>();
  }
  // A file system may leave zeros in place of a lost last write.
  if (std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; })) {
    return std::optional<Block>();
  }
  ByteReader reader(rest);
  const auto length = reader.get<std::uint32_t>();
  const auto type = reader.get<std::uint8_t>();
  static_cast<void>(reader.get<std::uint8_t>());
  const auto head_check = reader.get<std::uint16_t>();
  const auto check = reader.get<std::uint32_t>();
  if (static_cast<std::uint16_t>(crc32c(rest.first(6))) != head_check) {
    return fail(ErrorCode::kCorrupt, "the block at byte ", position_, " is damaged (its head)");
  }
  if (length > reader.remaining()) {
    return std::optional<Block>();
  }
  const std::span<const std::byte> payload = reader.get_bytes(length);
  if (crc32c(payload, crc32c(rest.first(8))) != check) {
    return fail(ErrorCode::kCorrupt, "the block at byte ", position_, " is damaged (its content)");
  }
  if (type < static_cast<std::uint8_t>(BlockType::kHeader) ||
      type > static_cast<std::uint8_t>(BlockType::kNotes)) {
    return fail(ErrorCode::kUnsupported, "the block at byte ", position_, " is of type ", type,
                ", which this version does not know");
  }
  const Block block{static_cast<BlockType>(type), payload, position_};
  position_ += kBlockHeadSize + length;
  return std::optional<Block>(block);
}

}  // namespace foretune::dataset_internal
