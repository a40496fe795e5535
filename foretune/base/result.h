// Results that a caller must handle: a value, or an error with a code and one clear sentence.
//
//   Result<Dataset> load(const std::string& path);
//   FORETUNE_TRY(const Dataset data, load(path));          // returns the error to our caller
//   return fail(ErrorCode::kCorrupt, path, ": checksum of record ", index, " does not match");
//
// Thread safety: plain values. Cost: an Error allocates its message; the success path does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "foretune/base/text.h"

namespace foretune {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument = 1,  // the caller asked for something that makes no sense
  kNotFound = 2,         // a file, name or device does not exist
  kCorrupt = 3,          // data that was damaged, truncated, or never was in this format
  kMismatch = 4,         // valid alone, but not with the rest: other schema, family, machine
  kUnsupported = 5,      // understood, but not possible here
  kIo = 6,               // the operating system refused
  kCancelled = 7,        // stopped on request
  kInternal = 8,         // a defect of ours that could be contained
};

std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// Returns an error whose message is the concatenation of `parts`.
template <class... Parts>
[[nodiscard]] tl::unexpected<Error> fail(ErrorCode code, const Parts&... parts) {
  return tl::unexpected<Error>(Error{code, concat(parts...)});
}

// Passes an error on with `context`, the operation that failed, in front of its message.
template <class... Parts>
[[nodiscard]] tl::unexpected<Error> fail_because(const Error& cause, const Parts&... context) {
  return tl::unexpected<Error>(Error{cause.code, concat(context..., ": ", cause.message)});
}

// Says that something is possible, or the reason why it is not.
class [[nodiscard]] Support {
 public:
  static Support yes() { return Support(); }
  template <class... Parts>
  static Support no(const Parts&... parts) {
    Support support;
    support.refused_ = true;
    support.reason_ = concat(parts...);
    return support;
  }
  explicit operator bool() const { return !refused_; }
  const std::string& reason() const { return reason_; }

 private:
  bool refused_ = false;
  std::string reason_;
};

}  // namespace foretune

#define FORETUNE_CONCAT_INNER(a, b) a##b
#define FORETUNE_CONCAT(a, b) FORETUNE_CONCAT_INNER(a, b)

// Declares or assigns `target` from a Result expression, or returns its error.
#define FORETUNE_TRY(target, expression) \
  FORETUNE_TRY_INNER(FORETUNE_CONCAT(foretune_try_, __LINE__), target, expression)
#define FORETUNE_TRY_INNER(name, target, expression)                            \
  auto name = (expression); /* NOLINT(bugprone-macro-parentheses) */            \
  if (!name) return tl::unexpected<::foretune::Error>(std::move(name).error()); \
  target = *std::move(name) /* NOLINT(bugprone-macro-parentheses) */

// Returns the error of a Status, which holds no value.
#define FORETUNE_TRY_STATUS(expression)                                             \
  do {                                                                              \
    auto foretune_status = (expression);                                            \
    if (!foretune_status) {                                                         \
      return tl::unexpected<::foretune::Error>(std::move(foretune_status).error()); \
    }                                                                               \
  } while (false)
