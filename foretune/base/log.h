// Where the library's remarks go: to a sink that the program passes in. The library never prints.
// Thread safety: a sink may be called from several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace foretune {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning };
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

}  // namespace foretune
