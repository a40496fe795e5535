// foretune-train-network reads rows and writes a trained network
// (foretune/model/train/files/training_files.h). Exit codes: 0 done; 1 it failed; 2 the options
// make no sense; 3 a signal stopped it, or nobody reads its progress any more.
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/text.h"
#include "options.h"
#include "trainer.h"

namespace {

namespace training = foretune::network_training;

// A signal handler can report only through a global variable.
volatile std::sig_atomic_t g_stop_flag = 0;

extern "C" void request_stop(int /*signal*/) { g_stop_flag = 1; }

void install_signal_handlers() {
  std::signal(SIGTERM, &request_stop);
  std::signal(SIGINT, &request_stop);
  // write() then returns an error instead.
  std::signal(SIGPIPE, SIG_IGN);
}

// Makes threads spin for only a few microseconds while they wait. Two pools of threads (OpenMP's
// and OpenBLAS's) that wait by spinning slow each other down, tenfold where other programs want the
// processor, too; threads that sleep at once wake up too late for steps of some milliseconds. A
// spin count of 2000 was the best of 0, 2000, 20000, 200000 and unlimited, over two versions of
// libtorch. OpenMP reads this when it is loaded, so the program starts itself again. Returns when
// it cannot.
void wait_without_spinning(char** arguments) {
  constexpr const char* kPolicy = "OMP_WAIT_POLICY";
  // Nothing else runs yet that could change the environment.
  // NOLINTBEGIN(concurrency-mt-unsafe)
  if (std::getenv(kPolicy) == nullptr && ::setenv(kPolicy, "passive", 0) == 0 &&
      ::setenv("GOMP_SPINCOUNT", "2000", 0) == 0) {
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

int report(std::string_view sentence, int code) {
  std::fprintf(stderr, "foretune-train-network: %.*s\n", static_cast<int>(sentence.size()),
               sentence.data());
  return code;
}

int exit_code(const foretune::Error& error) {
  switch (error.code) {
    case foretune::ErrorCode::kInvalidArgument:
      return 2;
    case foretune::ErrorCode::kCancelled:
      return 3;
    default:
      return 1;
  }
}

int run(char** all_arguments, std::size_t count) {
  const std::span<const char* const> arguments(all_arguments + 1, count);
  const auto options = training::parse_options(arguments);
  if (!options) {
    return report(options.error().message, 2);
  }
  if (options->wants_help) {
    const std::string help = training::help_text();
    std::fwrite(help.data(), 1, help.size(), stdout);
    return 0;
  }
  if (options->threads > 1) {
    wait_without_spinning(all_arguments);
  }
  install_signal_handlers();
  limit_threads(static_cast<int>(options->threads));
  const auto network = training::train_network(*options, g_stop_flag);
  if (!network) {
    return report(network.error().message, exit_code(network.error()));
  }
  if (const auto status = foretune::write_trained_network(*network, options->out); !status) {
    return report(status.error().message, 1);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc > 0 ? run(argv, static_cast<std::size_t>(argc - 1)) : 2;
  } catch (const c10::Error& error) {
    // The lines after the first one are libtorch's stack.
    const std::string_view text = error.what_without_backtrace();
    return report(foretune::concat("libtorch: ", text.substr(0, text.find('\n'))), 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
