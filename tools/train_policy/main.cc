// foretune-train-policy plays, learns and writes a model (trainer.h). Exit codes: 0 done; 1 it
// failed; 2 the options make no sense; 3 nobody reads its progress any more.
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "options.h"
#include "sweep.h"
#include "tools/train_network/torch_process.h"
#include "trainer.h"

namespace {

namespace process = foretune::network_training;
namespace training = foretune::policy_training;
constexpr std::string_view kProgram = "foretune-train-policy";

foretune::Status train_once(const training::TrainPolicyOptions& options) {
  FORETUNE_TRY(const double share, training::train_policy(options, process::stop_flag()));
  static_cast<void>(share);
  return {};
}

int run(char** all_arguments, std::size_t count) {
  const std::span<const char* const> arguments(all_arguments + 1, count);
  const auto options = training::parse_policy_options(arguments);
  if (!options) {
    return process::report(kProgram, options.error().message, 2);
  }
  if (options->wants_help) {
    const std::string help = training::policy_help_text();
    std::fwrite(help.data(), 1, help.size(), stdout);
    return 0;
  }
  process::restart_with_tuned_libraries(all_arguments);
  process::install_signal_handlers();
  process::limit_threads(1);
  const foretune::Status status = options->sweep > 0
                                      ? training::run_sweep(*options, process::stop_flag())
                                      : train_once(*options);
  return status ? 0
                : process::report(kProgram, status.error().message,
                                  process::exit_code(status.error()));
}

}  // namespace

int main(int argc, char** argv) {
  return process::run_guarded(
      kProgram, [&] { return argc > 0 ? run(argv, static_cast<std::size_t>(argc - 1)) : 2; });
}
