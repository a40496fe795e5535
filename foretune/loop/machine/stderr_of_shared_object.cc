// Lets a library that is not position-independent be part of a shared object. Debian's AsmJit is
// compiled for programs, where `stderr` is at a fixed distance; nothing else in it is impossible in
// a shared object. Linked with --wrap=stderr, each `stderr` of the shared object's own code is the
// variable below, which is inside.
//
// It is set before all other constructors of the shared object, because those may print. When a
// program assigns to `stderr` later (glibc allows it), the variable here does not change.
#include <cstdio>

// These names come from the linker's --wrap. As identifiers they would be reserved for the
// compiler.
extern "C" {
extern FILE* foretune_real_stderr __asm__("__real_stderr");
extern FILE* foretune_wrapped_stderr __asm__("__wrap_stderr");
__attribute__((visibility("hidden"))) FILE* foretune_wrapped_stderr = nullptr;
}

namespace {

// Below 101 are the compiler's and the C library's own.
[[gnu::constructor(101)]] void take_stderr() { foretune_wrapped_stderr = foretune_real_stderr; }

}  // namespace
