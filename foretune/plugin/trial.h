// Runs a function in a forked child first, to find out whether it crashes, hangs or exits.
//
//   FORETUNE_TRY_STATUS(try_in_child(std::chrono::seconds(10), [&] { return open_it(); }));
//   return open_it();
//
// The child has no open file but the report, prints nothing, leaves no core file and dies with its
// parent. Errors: that of `work`; kCorrupt when it does not return, with the way it ended: "it
// crashes (SIGSEGV)"; kIo when there is no child. Thread safety: any thread; the process may have
// other threads, but the child in which `work` runs has none of them. Cost: a fork.
#pragma once

#include <chrono>
#include <functional>

#include "foretune/base/result.h"

namespace foretune {

Status try_in_child(std::chrono::milliseconds time_limit, const std::function<Status()>& work);

}  // namespace foretune
