// Errors for C callers: a number and a sentence. Thread safety: a free function.
#pragma once

#include <cstddef>
#include <exception>

#include "foretune/base/c_text.h"
#include "foretune/base/result.h"

namespace foretune {

// Does work that returns a Status. Returns 0 or the error's code, whose message, as far as it fits,
// goes to the caller's memory (may be null). Exceptions are errors too.
template <class Work>
int report_errors(char* message, std::size_t size, const Work& work) noexcept {
  copy_text("", message, size);
  try {
    const Status status = work();
    if (status) {
      return 0;
    }
    copy_text(status.error().message, message, size);
    return static_cast<int>(status.error().code);
  } catch (const std::exception& error) {
    copy_text(error.what(), message, size);
  } catch (...) {
    copy_text("an unknown exception", message, size);
  }
  return static_cast<int>(ErrorCode::kInternal);
}

}  // namespace foretune
