// The protocol between a measuring program and its worker: frames of a length, a checksum, a kind
// and a payload over a stream.
//
//   frame    magic u32 | payload bytes u32 | crc32c of kind and payload u32 | kind u8 | payload
//
//   to the worker      hello (version, parent, family, options, protocol, context), measure,
//                      compare, describe
//   from the worker    ready | error; then for each request any number of stage and data-ready
//                      frames and one result, or one description (a fingerprint's text)
//
// Both sides are the same build in practice; the version in hello detects when they are not.
// Thread safety: free functions and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/measure/measure.h"

namespace foretune {

inline constexpr std::uint32_t kWireVersion = 5;
inline constexpr std::size_t kFrameHeaderBytes = 13;
inline constexpr std::uint32_t kMaxFrameBytes = 64U << 20U;

enum class FrameKind : std::uint8_t {
  kHello = 1,
  kMeasure = 2,
  kCompare = 3,
  kDescribe = 4,
  kReady = 16,
  kError = 17,
  kStage = 18,
  kDataReady = 19,
  kResult = 20,
  kDescription = 21,
};

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::vector<std::byte> payload;
};

std::vector<std::byte> encode_frame(FrameKind kind, std::span<const std::byte> payload);
// Takes the first complete frame out of `buffer`; returns nothing while it is incomplete.
// Errors: kCorrupt when the bytes are not a frame.
Result<std::optional<Frame>> take_frame(std::vector<std::byte>& buffer);

struct HelloMessage {
  std::uint32_t version = kWireVersion;
  std::int64_t parent_process = 0;
  std::string family;
  FamilyOptions options;
  Protocol protocol;
  Context context;
};
struct CompareMessage {
  Problem problem;
  std::vector<Config> configs;
  std::int32_t rounds = 1;
};
struct StageMessage {
  std::uint32_t config = 0;
  Stage stage = Stage::kNone;
};

std::vector<std::byte> encode(const HelloMessage& message);
std::vector<std::byte> encode(const Request& request);
std::vector<std::byte> encode(const CompareMessage& message);
std::vector<std::byte> encode(const StageMessage& message);
std::vector<std::byte> encode(const Error& error);
// Encodes the text of a fingerprint, for a description.
std::vector<std::byte> encode_text(std::string_view text);
// Encodes measurements without problem, config and context, which the requesting side knows.
std::vector<std::byte> encode_results(std::span<const Measurement> measurements);

// Errors of all functions below: kCorrupt, kMismatch for another version.
Result<HelloMessage> decode_hello(std::span<const std::byte> payload);
Result<Request> decode_request(std::span<const std::byte> payload);
Result<CompareMessage> decode_compare(std::span<const std::byte> payload);
Result<std::string> decode_text(std::span<const std::byte> payload);
Result<StageMessage> decode_stage(std::span<const std::byte> payload);
// Returns the error that a worker reported, or an error that says that it could not be read.
Error decode_error(std::span<const std::byte> payload);
// Fills `measurements`; their number must be that in the payload.
Status decode_results(std::span<const std::byte> payload, std::span<Measurement> measurements);

}  // namespace foretune
