// Trainings that run side by side, each on a thread of its own. Internal.
//
// Trees are grown by one thread each: threads that share a tree wait for each other hundreds of
// times a second, and with one of their cores busy elsewhere they wait most of the time.
// Thread safety: each call is independent. Cost: a thread for each of the first `threads` tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "foretune/base/result.h"
#include "foretune/model/train/trainer.h"

namespace foretune::train_internal {

// Calls task(i, hook) once for each i below `count`, at most `threads` at once, and returns when
// all are done. The order of the results is that of i, so they do not depend on `threads`. Each
// task reports to the hook that it is given; `progress` is only ever called by the thread that
// called this function. Errors: that of the lowest i that failed; tasks that have not begun by then
// are left out. Once `progress` has returned false every hook does.
Status run_side_by_side(std::size_t count, std::uint32_t threads, const ProgressHook& progress,
                        const std::function<Status(std::size_t, const ProgressHook&)>& task);

}  // namespace foretune::train_internal
