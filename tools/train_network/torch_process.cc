#include "torch_process.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"

namespace foretune::network_training {
namespace {

// A signal handler can report only through a global variable.
volatile std::sig_atomic_t g_stop_flag = 0;

extern "C" void request_stop(int /*signal*/) { g_stop_flag = 1; }

}  // namespace

const volatile std::sig_atomic_t& stop_flag() { return g_stop_flag; }

void install_signal_handlers() {
  std::signal(SIGTERM, &request_stop);
  std::signal(SIGINT, &request_stop);
  std::signal(SIGPIPE, SIG_IGN);
}

void restart_with_tuned_libraries(char** arguments) {
  constexpr const char* kPolicy = "OMP_WAIT_POLICY";
  const char* const kernels = best_cpu_isa() == CpuIsa::kAvx512 ? "SKYLAKEX"
                              : best_cpu_isa() == CpuIsa::kAvx2 ? "HASWELL"
                                                                : "";
  // Nothing else runs yet that could change the environment.
  // NOLINTBEGIN(concurrency-mt-unsafe)
  if (std::getenv(kPolicy) != nullptr) {
    return;
  }
  if (*kernels != '\0') {
    ::setenv("OPENBLAS_CORETYPE", kernels, 0);
  }
  if (::setenv(kPolicy, "passive", 0) == 0 && ::setenv("GOMP_SPINCOUNT", "2000", 0) == 0) {
    ::execv("/proc/self/exe", arguments);
  }
  // NOLINTEND(concurrency-mt-unsafe)
}

void limit_threads(int threads) {
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
  // A libtorch that multiplies with OpenBLAS does not pass the number of threads on to it.
  using SetThreads = void (*)(int);
  if (void* const symbol = ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<SetThreads>(symbol)(threads);
  }
}

int report(std::string_view program, std::string_view sentence, int code) {
  const std::string line = concat(program, ": ", sentence, "\n");
  std::fputs(line.c_str(), stderr);
  return code;
}

int exit_code(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return 2;
    case ErrorCode::kCancelled:
      return 3;
    default:
      return 1;
  }
}

int run_guarded(std::string_view program, const std::function<int()>& main) {
  try {
    return main();
  } catch (const c10::Error& error) {
    // The lines after the first one are libtorch's stack.
    const std::string_view text = error.what_without_backtrace();
    return report(program, concat("libtorch: ", text.substr(0, text.find('\n'))), 1);
  } catch (const std::exception& error) {
    return report(program, error.what(), 1);
  }
}

}  // namespace foretune::network_training
