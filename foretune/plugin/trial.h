// Does something first in a forked child, to learn whether it crashes, hangs or exits.
//
//   FORETUNE_TRY_STATUS(try_in_child(std::chrono::seconds(10), [&] { return open_it(); }));
//   return open_it();
//
// The child has no files but the report, prints nowhere, leaves no core and dies with its parent.
// Errors: that of `work`; kCorrupt where it does not return, with how it ends: "it crashes
// (SIGSEGV)"; kIo where there is no child. Thread safety: any thread; `work` runs in a child of a
// process that may have other threads, of which the child has none. Cost: a fork.
#pragma once

#include <chrono>
#include <functional>

#include "foretune/base/result.h"

namespace foretune {

Status try_in_child(std::chrono::milliseconds time_limit, const std::function<Status()>& work);

}  // namespace foretune
