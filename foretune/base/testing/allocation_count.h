// For tests that show that code does not allocate: linked into a program, allocation_count.cc
// replaces its operator new. Not part of the library.
// Thread safety: may be called from any thread.
#pragma once

#include <cstdint>

namespace foretune {

// Returns the number of allocations of this program so far.
std::uint64_t allocation_count();

}  // namespace foretune
