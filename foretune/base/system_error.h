// The system's last error in words. Thread safety: that of the calling thread.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace foretune {

// Without the shared buffer of strerror.
inline std::string last_error() { return std::generic_category().message(errno); }

}  // namespace foretune
