#include "foretune/model/train/files/sealed_file.h"

#include <algorithm>

#include "foretune/base/byte_io.h"
#include "foretune/base/hash.h"

namespace foretune {
namespace {

constexpr std::size_t kCrcOffset = 12;
constexpr std::size_t kAfterCrc = 16;
constexpr std::size_t kHeaderBytes = 24;

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return crc32c(bytes.subspan(kAfterCrc), crc32c(bytes.first(kCrcOffset)));
}

}  // namespace

std::vector<std::byte> seal(const FileSeal& what, std::span<const std::byte> body) {
  ByteWriter after;
  after.put(static_cast<std::uint64_t>(kHeaderBytes + body.size()));
  ByteWriter out;
  out.put_bytes(std::as_bytes(std::span(what.magic)));
  out.put(what.version);
  out.put(crc32c(body, crc32c(after.bytes(), crc32c(out.bytes()))));
  out.put_bytes(after.bytes());
  out.put_bytes(body);
  return out.take();
}

Result<std::span<const std::byte>> unseal(const FileSeal& what, std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const std::span<const std::byte> magic = reader.get_bytes(what.magic.size());
  if (!reader.ok() ||
      !std::equal(magic.begin(), magic.end(), std::as_bytes(std::span(what.magic)).begin())) {
    return fail(ErrorCode::kCorrupt, "it is not ", what.name);
  }
  const auto version = reader.get<std::uint32_t>();
  const auto crc = reader.get<std::uint32_t>();
  const auto length = reader.get<std::uint64_t>();
  if (!reader.ok() || length != bytes.size()) {
    return fail(ErrorCode::kCorrupt, "it has ", bytes.size(), " bytes",
                reader.ok() ? concat(" instead of ", length) : " only");
  }
  if (checksum(bytes) != crc) {
    return fail(ErrorCode::kCorrupt, "its checksum does not match");
  }
  if (version != what.version) {
    return fail(ErrorCode::kUnsupported, "it is ", what.name, " of version ", version,
                ", this version reads ", what.version);
  }
  return bytes.subspan(kHeaderBytes);
}

}  // namespace foretune
