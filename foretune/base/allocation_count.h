// For tests that show where nothing is allocated: linked into a program, allocation_count.cc
// replaces its operator new. Not part of the library.
// Thread safety: from any thread.
#pragma once

#include <cstdint>

namespace foretune {

// Allocations of this program so far.
std::uint64_t allocation_count();

}  // namespace foretune
