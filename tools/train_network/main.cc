// foretune-train-network reads rows and writes a trained network
// (foretune/model/train/files/training_files.h). Exit codes: 0 done; 1 it failed; 2 the options
// make no sense; 3 a signal stopped it, or nobody reads its progress any more.
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "options.h"
#include "torch_process.h"
#include "trainer.h"

namespace {

namespace training = foretune::network_training;
constexpr std::string_view kProgram = "foretune-train-network";

int run(char** all_arguments, std::size_t count) {
  const std::span<const char* const> arguments(all_arguments + 1, count);
  const auto options = training::parse_options(arguments);
  if (!options) {
    return training::report(kProgram, options.error().message, 2);
  }
  if (options->wants_help) {
    const std::string help = training::help_text();
    std::fwrite(help.data(), 1, help.size(), stdout);
    return 0;
  }
  training::restart_with_tuned_libraries(all_arguments);
  training::install_signal_handlers();
  training::limit_threads(static_cast<int>(options->threads));
  const auto network = training::train_network(*options, training::stop_flag());
  if (!network) {
    return training::report(kProgram, network.error().message,
                            training::exit_code(network.error()));
  }
  if (const auto status = foretune::write_trained_network(*network, options->out); !status) {
    return training::report(kProgram, status.error().message, 1);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return training::run_guarded(
      kProgram, [&] { return argc > 0 ? run(argv, static_cast<std::size_t>(argc - 1)) : 2; });
}
