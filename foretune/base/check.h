// Checks for promises of our own code. A caller's mistake is a Result, never a check.
// FORETUNE_CHECK is always on; FORETUNE_DCHECK only where NDEBUG is not defined. Both end the
// program through a replaceable hook, so that an embedding program can log first.
// Thread safety: the hook may be set from any thread.
#pragma once

namespace foretune {

using CheckHook = void (*)(const char* file, int line, const char* condition);

// Installs `hook` (called before abort) and returns the one before it; nullptr restores ours.
CheckHook set_check_hook(CheckHook hook);

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace foretune

#define FORETUNE_CHECK(condition)                               \
  do {                                                          \
    if (!(condition)) [[unlikely]] {                            \
      ::foretune::check_failed(__FILE__, __LINE__, #condition); \
    }                                                           \
  } while (false)

#ifdef NDEBUG
#define FORETUNE_DCHECK(condition) \
  do {                             \
  } while (false && (condition))
#else
#define FORETUNE_DCHECK(condition) FORETUNE_CHECK(condition)
#endif
