// The system's last error as text. Thread safety: returns the error of the calling thread.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace foretune {

// Returns the text without the shared buffer of strerror.
inline std::string last_error() { return std::generic_category().message(errno); }

}  // namespace foretune
