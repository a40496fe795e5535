// The launch of a kernel that somebody else wrote, as a problem: its sizes, and the number of its
// variant, which stands for everything else that a launch depends on (data types, constants, names
// of the sizes). A note "variant N" of a data set says what the number means.
//
//   kernel variant=1523 size_1=4096 size_2=1024
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretune/problem/problem.h"

namespace foretune {

inline constexpr ProblemType kKernelProblem{10};  // in files: never renumber

// Sizes that a launch lacks are 0.
inline constexpr std::array<std::string_view, 8> kKernelSizes{
    "size_1", "size_2", "size_3", "size_4", "size_5", "size_6", "size_7", "size_8"};
inline constexpr std::int64_t kMaxKernelVariant = 0x7fffffff;
// Any larger number has no exact double.
inline constexpr std::int64_t kMaxKernelSize = std::int64_t{1} << 53U;

}  // namespace foretune
