// The version of library, command line and package; CMake reads it from here.
#pragma once

#include <string_view>

namespace foretune {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace foretune
