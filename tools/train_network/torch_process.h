// The beginning and the end of every program that is linked to libtorch.
//
// Thread safety: before other threads start.
#pragma once

#include <csignal>
#include <functional>
#include <string_view>

#include "foretune/base/result.h"

namespace foretune::network_training {

// Set by SIGTERM and SIGINT once install_signal_handlers() was called. SIGPIPE is ignored from then
// on, so that writing returns an error instead.
const volatile std::sig_atomic_t& stop_flag();
void install_signal_handlers();

// Tells the libraries below libtorch what they read only when they are loaded, and starts the
// program again with that; returns when it cannot, or has done so.
//
// OpenBLAS takes its kernels for SSE3 on CPUs that are younger than it is, a tenth as fast: it is
// told to take those for this CPU's instructions, unless the environment says which.
//
// Threads spin for only a few microseconds while they wait. Two pools of threads (OpenMP's
// and OpenBLAS's) that wait by spinning slow each other down, tenfold where other programs want the
// processor, too; threads that sleep at once wake up too late for steps of some milliseconds. A
// spin count of 2000 was the best of 0, 2000, 20000, 200000 and unlimited, over two versions of
// libtorch.
void restart_with_tuned_libraries(char** arguments);
void limit_threads(int threads);

// Prints "program: sentence" to standard error and returns the code.
int report(std::string_view program, std::string_view sentence, int code);
// 1 it failed; 2 the options make no sense; 3 a signal stopped it, or nobody reads its progress.
int exit_code(const Error& error);
// Runs `main` and turns libtorch's exceptions into a sentence.
int run_guarded(std::string_view program, const std::function<int()>& main);

}  // namespace foretune::network_training
