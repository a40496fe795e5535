// The problems whose schedules bench/loop_search enumerates. No policy learns from them.
#pragma once

#include <array>

namespace foretune::bench {

inline constexpr std::array kEnumeratedNests = {
    "mm m=64 n=96 k=240",  "mm m=112 n=240 k=128", "mm m=192 n=176 k=80",
    "mm m=240 n=128 k=96", "mm m=127 n=129 k=131", "conv c=32 h=14 w=14 o=32 r=3 s=3 pad=1 nhwc"};

}  // namespace foretune::bench
