#include "foretune/base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace foretune {
namespace {
std::atomic<CheckHook>& hook_slot() {
  static std::atomic<CheckHook> hook{nullptr};
  return hook;
}
}  // namespace

CheckHook set_check_hook(CheckHook hook) { return hook_slot().exchange(hook); }

void check_failed(const char* file, int line, const char* condition) {
  if (const CheckHook hook = hook_slot().load(); hook != nullptr) {
    hook(file, line, condition);
  } else {
    std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  }
  std::abort();
}

}  // namespace foretune
