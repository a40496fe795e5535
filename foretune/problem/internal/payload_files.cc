#include "foretune/problem/internal/payload_files.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace foretune::problem_internal {
namespace {

constexpr std::string_view kIndexHead = "foretune payload index 1";
constexpr std::string_view kDescriptorHead = "foretune payload descriptor 1";
constexpr std::string_view kChecksum = "crc32c ";

tl::unexpected<Error> damaged_payload_file(std::string_view what) {
  return fail(ErrorCode::kCorrupt, "the ", what, " is damaged");
}

// Returns a folder within that of the payloads, which never holds a payload.
std::filesystem::path store_folder(const std::filesystem::path& folder) {
  return folder / ".foretune";
}

std::string checksum_text(std::string_view text) {
  const std::uint32_t crc = crc32c(bytes_of(text));
  return Digest{0, crc}.hex().substr(24);
}

std::string sealed(std::string_view text) {
  const std::string checksum = checksum_text(text);
  return concat(text, kChecksum, checksum, "\n");
}

// Returns the lines between the first, which is `head`, and that of the checksum.
Result<std::vector<std::string_view>> unsealed(std::string_view text, std::string_view head,
                                               std::string_view what) {
  constexpr std::size_t kLastLine = kChecksum.size() + 8 + 1;
  if (text.size() < head.size() + 1 + kLastLine || text.back() != '\n') {
    return damaged_payload_file(what);
  }
  const std::string_view body = text.substr(0, text.size() - kLastLine);
  const std::string_view last = text.substr(body.size());
  if (body.back() != '\n' || !last.starts_with(kChecksum) ||
      last.substr(kChecksum.size(), 8) != checksum_text(body)) {
    return damaged_payload_file(what);
  }
  std::vector<std::string_view> lines = split(body.substr(0, body.size() - 1), '\n');
  if (lines.front() != head) {
    return fail(ErrorCode::kUnsupported, "the ", what, " is of another version");
  }
  lines.erase(lines.begin());
  return lines;
}

// Takes the text up to the next blank off the front.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<IndexedPayload> parse_index_line(std::string_view line) {
  const std::optional<Digest> digest = Digest::from_hex(take_word(line));
  const std::optional<std::uint64_t> size = parse_uint(take_word(line));
  const std::optional<std::int64_t> modified_ns = parse_int(take_word(line));
  const std::optional<std::int64_t> changed_ns = parse_int(take_word(line));
  if (!digest || !size || !modified_ns || !changed_ns || line.empty() ||
      line.find('/') != std::string_view::npos) {
    return std::nullopt;
  }
  return IndexedPayload{std::string(line), {*size, *modified_ns, *changed_ns}, *digest};
}

}  // namespace

std::filesystem::path payload_index_path(const std::filesystem::path& folder) {
  return store_folder(folder) / "index";
}

std::string payload_index_text(const std::vector<IndexedPayload>& payloads) {
  std::string out = concat(kIndexHead, "\n");
  for (const IndexedPayload& payload : payloads) {
    out += concat(payload.digest.hex(), " ", payload.stamp.size, " ", payload.stamp.modified_ns,
                  " ", payload.stamp.changed_ns, " ", payload.name, "\n");
  }
  return sealed(out);
}

Result<std::vector<IndexedPayload>> parse_payload_index(std::string_view text) {
  constexpr std::string_view kWhat = "index of payloads";
  FORETUNE_TRY(const std::vector<std::string_view> lines, unsealed(text, kIndexHead, kWhat));
  std::vector<IndexedPayload> out;
  out.reserve(lines.size());
  for (const std::string_view line : lines) {
    std::optional<IndexedPayload> payload = parse_index_line(line);
    if (!payload) {
      return damaged_payload_file(kWhat);
    }
    out.push_back(*std::move(payload));
  }
  return out;
}

std::filesystem::path payload_descriptor_path(const std::filesystem::path& folder,
                                              const PayloadInfo& info, const Digest& payload) {
  return store_folder(folder) / concat(payload.hex(), ".", info.name);
}

std::string payload_descriptor_text(const PayloadDescriptor& descriptor) {
  const PayloadInfo& info = *descriptor.info;
  std::string out = concat(kDescriptorHead, "\n", info.name, " ", info.version, " ",
                           descriptor.payload.hex(), "\n");
  for (std::size_t i = 0; i < info.values.size(); ++i) {
    out += concat(info.values[i], " ", descriptor.values[i], "\n");
  }
  return sealed(out);
}

Result<PayloadDescriptor> parse_payload_descriptor(std::string_view text, const PayloadInfo& info,
                                                   const Digest& payload) {
  constexpr std::string_view kWhat = "descriptor of a payload";
  FORETUNE_TRY(std::vector<std::string_view> lines, unsealed(text, kDescriptorHead, kWhat));
  if (lines.empty()) {
    return damaged_payload_file(kWhat);
  }
  std::string_view line = lines.front();
  const std::string_view name = take_word(line);
  const std::optional<std::uint64_t> version = parse_uint(take_word(line));
  const std::optional<Digest> described = Digest::from_hex(take_word(line));
  if (!version || !described) {
    return damaged_payload_file(kWhat);
  }
  if (name != info.name || *version != info.version) {
    return fail(ErrorCode::kUnsupported, "the ", kWhat, " holds the numbers of ", quoted(name, 40),
                " ", *version, ", not of ", info.name, " ", info.version);
  }
  if (*described != payload) {
    return fail(ErrorCode::kMismatch, "the ", kWhat, " is that of ", described->hex());
  }
  if (lines.size() != info.values.size() + 1) {
    return damaged_payload_file(kWhat);
  }
  PayloadDescriptor out{&info, payload, {}};
  for (std::size_t i = 0; i < info.values.size(); ++i) {
    std::string_view entry = lines[i + 1];
    const std::string_view value_name = take_word(entry);
    const std::optional<double> value = parse_double(entry);
    if (value_name != info.values[i] || !value || !std::isfinite(*value)) {
      return damaged_payload_file(kWhat);
    }
    out.values.push_back(*value);
  }
  return out;
}

}  // namespace foretune::problem_internal
