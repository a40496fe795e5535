// Checks for promises of our own code. A caller's mistake is a Result, never a check.
// FORETUNE_CHECK is always on; FORETUNE_DCHECK only where NDEBUG is not defined. Both end the
// program after one line on stderr.
// Thread safety: may be called from any thread.
#pragma once

namespace foretune {

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
