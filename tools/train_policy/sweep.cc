#include "sweep.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "trainer.h"

namespace foretune::policy_training {
namespace {

double log_uniform(Rng& rng, double low, double high) {
  return low * std::exp(rng.uniform() * std::log(high / low));
}

TrainPolicyOptions drawn(const TrainPolicyOptions& options, std::uint32_t number) {
  TrainPolicyOptions out = options;
  out.sweep = 0;
  out.seconds = options.seconds / options.sweep;
  if (!options.folder.empty()) {
    out.folder = options.folder / concat("run-", number);
  }
  out.model = concat(options.model.string(), ".", number);
  if (number > 0) {
    constexpr std::array<std::uint32_t, 3> kWidths = {32, 64, 96};
    Rng rng = Rng(options.seed).split(number);
    out.rate = log_uniform(rng, 2e-4, 4e-3);
    out.gamma = 1 - log_uniform(rng, 0.001, 0.1);
    out.entropy = log_uniform(rng, 0.003, 0.1);
    out.final_entropy = out.entropy / 10;
    out.imitation = rng.below(3) == 0 ? 0 : log_uniform(rng, 0.05, 1);
    out.passes = static_cast<std::uint32_t>(1 + rng.below(6));
    out.width = kWidths[rng.below(kWidths.size())];
  }
  return out;
}

std::string row_of(std::uint32_t number, const TrainPolicyOptions& run, double share) {
  return concat(number, ",", run.rate, ",", run.gamma, ",", run.entropy, ",", run.imitation, ",",
                run.passes, ",", run.width, ",", share, "\n");
}

}  // namespace

Status run_sweep(const TrainPolicyOptions& options, const volatile std::sig_atomic_t& stop) {
  if (options.model.empty() || !options.resume.empty() || options.pause_after > 0) {
    return fail(ErrorCode::kInvalidArgument,
                "a sweep needs --model, and neither --resume nor --pause_after");
  }
  std::string table = "run,rate,gamma,entropy,imitation,passes,width,share\n";
  double best_share = -1;
  for (std::uint32_t i = 0; i < options.sweep && stop == 0; ++i) {
    const TrainPolicyOptions run = drawn(options, i);
    std::printf("run %u of %u\n", i + 1, options.sweep);
    FORETUNE_TRY(const double share, train_policy(run, stop));
    table += row_of(i, run, share);
    std::error_code code;
    if (share > best_share) {
      best_share = share;
      std::filesystem::rename(run.model, options.model, code);
    } else {
      std::filesystem::remove(run.model, code);
    }
    if (code) {
      return fail(ErrorCode::kIo, options.model.string(), ": ", code.message());
    }
    if (!options.folder.empty()) {
      FORETUNE_TRY_STATUS(write_text_file_atomically(options.folder / "sweep.csv", table));
    }
  }
  const bool is_written = std::fputs(table.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return is_written ? Status() : fail(ErrorCode::kCancelled, "nobody reads the progress any more");
}

}  // namespace foretune::policy_training
