// What lets a library that is not position-independent be part of a shared object: Debian's AsmJit
// is compiled for programs, where `stderr` is at a fixed distance, and that is all in it that no
// shared object can have. Linked with --wrap=stderr, each `stderr` of the shared object's own code
// is the variable below, which is inside.
//
// Set before all other constructors of the shared object, because those may print. A program that
// assigns to `stderr` later (glibc allows it) does so for itself alone.
#include <cstdio>

// The names that the linker's --wrap gives them; as identifiers they would be the compiler's.
extern "C" {
extern FILE* foretune_real_stderr __asm__("__real_stderr");
extern FILE* foretune_wrapped_stderr __asm__("__wrap_stderr");
__attribute__((visibility("hidden"))) FILE* foretune_wrapped_stderr = nullptr;
}

namespace {

// Below 101 are the compiler's and the C library's own.
[[gnu::constructor(101)]] void take_stderr() { foretune_wrapped_stderr = foretune_real_stderr; }

}  // namespace
