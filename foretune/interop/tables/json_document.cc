// Parsing JSON and MessagePack documents that nobody vouches for.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/tables/exchange_json.h"
#include "foretune/interop/tables/internal/exchange_io.h"

namespace foretune {

namespace dataset_internal {

namespace {

constexpr std::size_t kMaxDepth = 64;

// One MessagePack token: how many bytes its head and content take, and how many values follow.
struct Token {
  std::uint64_t bytes = 0;
  std::uint64_t children = 0;
};

std::optional<Token> read_token(std::span<const std::byte> rest) {
  const auto tag = static_cast<unsigned>(rest[0]);
  const auto number = [&](std::size_t width) -> std::optional<std::uint64_t> {
    if (rest.size() < 1 + width) {
      return std::nullopt;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value = (value << 8U) | static_cast<std::uint64_t>(rest[1 + i]);
    }
    return value;
  };
  const auto sized = [&](std::size_t width, std::uint64_t extra) -> std::optional<Token> {
    const auto size = number(width);
    return size ? std::optional(Token{1 + width + *size + extra, 0}) : std::nullopt;
  };
  const auto container = [&](std::size_t width, std::uint64_t per_item) -> std::optional<Token> {
    const auto size = number(width);
    return size ? std::optional(Token{1 + width, *size * per_item}) : std::nullopt;
  };
  if (tag <= 0x7f || tag >= 0xe0) {
    return Token{1, 0};
  }
  if (tag <= 0x8f) {
    return Token{1, 2ULL * (tag & 15U)};
  }
  if (tag <= 0x9f) {
    return Token{1, tag & 15U};
  }
  if (tag <= 0xbf) {
    return Token{1ULL + (tag & 31U), 0};
  }
  switch (tag) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
      return Token{1, 0};
    case 0xc4:
    case 0xd9:
      return sized(1, 0);
    case 0xc5:
    case 0xda:
      return sized(2, 0);
    case 0xc6:
    case 0xdb:
      return sized(4, 0);
    case 0xc7:
      return sized(1, 1);
    case 0xc8:
      return sized(2, 1);
    case 0xc9:
      return sized(4, 1);
    case 0xcc:
    case 0xd0:
      return Token{2, 0};
    case 0xcd:
    case 0xd1:
      return Token{3, 0};
    case 0xca:
    case 0xce:
    case 0xd2:
      return Token{5, 0};
    case 0xcb:
    case 0xcf:
    case 0xd3:
      return Token{9, 0};
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return Token{2ULL + (1ULL << (tag - 0xd4U)), 0};
    case 0xdc:
      return container(2, 1);
    case 0xdd:
      return container(4, 1);
    case 0xde:
      return container(2, 2);
    case 0xdf:
      return container(4, 2);
    default:
      return std::nullopt;
  }
}

}  // namespace

// The library's MessagePack reader calls itself for every level, so depth is checked before.
Status check_msgpack(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> left{1};
  std::size_t position = 0;
  while (!left.empty()) {
    if (left.back() == 0) {
      left.pop_back();
      continue;
    }
    --left.back();
    if (position >= bytes.size()) {
      return fail(ErrorCode::kCorrupt, "the MessagePack data ends too early");
    }
    const std::optional<Token> token = read_token(bytes.subspan(position));
    // Every value takes a byte at least: a count beyond the rest is a lie.
    if (!token || token->bytes > bytes.size() - position ||
        token->children > bytes.size() - position) {
      return fail(ErrorCode::kCorrupt, "the MessagePack data is damaged at byte ", position);
    }
    position += token->bytes;
    if (token->children > 0) {
      if (left.size() > kMaxDepth) {
        return fail(ErrorCode::kCorrupt, "the MessagePack data is nested over ", kMaxDepth,
                    " levels deep");
      }
      left.push_back(token->children);
    }
  }
  return position == bytes.size()
             ? Status()
             : Status(fail(ErrorCode::kCorrupt, "bytes follow the MessagePack document"));
}

Result<Json> parse_document(std::span<const std::byte> bytes, bool msgpack) {
  // torch-diode writes JSON into files that are called .msgpack; no MessagePack map begins so.
  const std::string_view text = trim(text_of(bytes));
  if (!msgpack || (!text.empty() && text.front() == '{')) {
    return parse_json(text_of(bytes));
  }
  FORETUNE_TRY_STATUS(check_msgpack(bytes));
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  Json document = Json::from_msgpack(data, data + bytes.size(), true, false);
  if (document.is_discarded()) {
    return fail(ErrorCode::kCorrupt, "this is not MessagePack");
  }
  return document;
}

}  // namespace dataset_internal

}  // namespace foretune
