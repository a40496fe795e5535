#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/select_figures.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/model/train/distilled_model.h"
#include "foretune/select/foretune.h"

namespace foretune::bench {
namespace {

constexpr double kNoLimit = 1e9;

// For the time of an answer it does not matter how well the fast model was taught.
void add_distilled_model(const Setup& setup, Model& model) {
  model.domain = ApplicabilityDomain::fit(setup.problems);
  Distillation fast = must(distill_model(
      model, setup.problems, {.calibration_problems = 200, .problems = 500, .epochs = 5}));
  model.distilled = std::move(fast.model);
}

struct ColdStart {
  double open_ms = 0;
  double answer_ms = 0;
};

ColdStart start_process(const std::string& program, const std::string& mode,
                        const std::string& model, const Problem& problem) {
  const std::string command = concat("'", program, "' --cold-start ", mode, " --model '", model,
                                     "' --problem '", problem.text(), "'");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  ColdStart out;
  const int read =
      pipe == nullptr ? 0 : std::fscanf(pipe.get(), "%lf %lf", &out.open_ms, &out.answer_ms);
  if (read != 2) {
    stop(concat("no figures from ", command));
  }
  return out;
}

}  // namespace

int run_cold_start(int argc, char** argv) {
  const bool is_fast = argument(argc, argv, "cold-start") == "fast";
  const std::string path = argument(argc, argv, "model");
  const foretune_gemm gemm = to_c(must(Problem::parse(argument(argc, argv, "problem"))));
  foretune_selector* selector = nullptr;
  foretune_choice choice;
  std::array<char, 400> message{};
  int exact = 0;
  const auto open = is_fast ? &foretune_selector_open_fast : &foretune_selector_open;
  const double open_ms = milliseconds([&] {
    if (open(path.c_str(), &selector, message.data(), message.size()) != FORETUNE_OK) {
      stop(message.data());
    }
  });
  const double answer_ms = milliseconds([&] {
    const int result =
        is_fast ? foretune_select_gemm_fast(selector, &gemm, kNoLimit, &choice, &exact, nullptr)
                : foretune_select_gemm(selector, &gemm, &choice);
    if (result != FORETUNE_OK || choice.words == nullptr || exact != 0) {
      stop("no answer, or not by the fast model");
    }
  });
  std::printf("%.6f %.6f\n", open_ms, answer_ms);
  foretune_selector_close(selector);
  return 0;
}

void report_cold_start(Figures& figures, const char* program, const Setup& setup, Model model,
                       int runs) {
  add_distilled_model(setup, model);
  const std::string path = concat("select_bench_cold_", setup.text.size(), ".ftm");
  if (const Status written = write_model(model, path); !written) {
    stop(written.error().message);
  }
  report(figures, "model_with_fast_bytes", static_cast<double>(model_bytes(model).size()),
         "our whole model file with a fast model");
  const auto measure = [&](const std::string& mode, const char* open_name, const char* open_text,
                           const char* first_name, const char* first_text) {
    std::vector<double> open;
    std::vector<double> first;
    for (int run = 0; run < std::max(runs, 9); ++run) {
      const Problem& problem = setup.problems[static_cast<std::size_t>(run) % kProblems];
      const ColdStart start = start_process(program, mode, path, problem);
      open.push_back(start.open_ms);
      first.push_back(start.open_ms + start.answer_ms);
    }
    report(figures, open_name, median(open), open_text);
    report(figures, first_name, median(first), first_text);
  };
  measure("fast", "open_fast_ms", "opening the file, the exact model left for later",
          "cold_start_ms", "from the file to the first answer, by the fast mode");
  measure("exact", "open_ms", "opening the file, the exact model prepared", "cold_start_exact_ms",
          "from the file to the first answer of the exact model");
  std::remove(path.c_str());
}

}  // namespace foretune::bench
