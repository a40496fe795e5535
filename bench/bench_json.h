// Shared by the programs in bench/: a clock, the command line, main() and the envelope that
// `--json FILE` writes.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"

namespace foretune::bench {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the value after `--name`, or `fallback`.
inline std::string argument(int argc, char** argv, std::string_view name,
                            std::string_view fallback = {}) {
  const std::string flag = concat("--", name);
  for (int i = 1; i + 1 < argc; ++i) {
    if (flag == argv[i]) {
      return argv[i + 1];
    }
  }
  return std::string(fallback);
}

// Returns the number after `--name`; `fallback` when there is none or it cannot be read.
template <std::unsigned_integral Count>
Count count_argument(int argc, char** argv, std::string_view name, Count fallback) {
  return static_cast<Count>(parse_uint(argument(argc, argv, name)).value_or(fallback));
}
inline double number_argument(int argc, char** argv, std::string_view name, double fallback) {
  return parse_double(argument(argc, argv, name)).value_or(fallback);
}

inline Figures make_figures(std::string name, int argc, char** argv) {
  Figures figures;
  figures.name = std::move(name);
  const CpuFacts facts = read_cpu_facts();
  figures.machine = {{"cpu", facts.model},
                     {"isa", std::string(to_string(facts.isa))},
                     {"cores", concat(facts.cores)},
                     {"l2_bytes", concat(facts.l2_bytes)},
                     {"l3_bytes", concat(facts.l3_bytes)},
                     {"hypervisor", facts.hypervisor}};
  for (int i = 0; i < argc; ++i) {
    figures.command += concat(i == 0 ? "" : " ", argv[i]);
  }
  return figures;
}

// Writes the figures to the file of `--json`; returns the exit code.
inline int finish(const Figures& figures, int argc, char** argv) {
  const std::string path = argument(argc, argv, "json");
  if (path.empty()) {
    return 0;
  }
  if (const Status status = figures.write(path); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}

// Implements main(): runs the program, then writes its figures; returns the exit code. With
// `--help` it prints where the options are described instead, since a run takes minutes.
inline int run_program(std::string name, int argc, char** argv,
                       Status (*run)(int argc, char** argv, Figures& figures)) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help" || std::string_view(argv[i]) == "-h") {
      std::printf("The options stand at the top of bench/%s.cc.\n", name.c_str());
      return 0;
    }
  }
  Figures figures = make_figures(std::move(name), argc, argv);
  if (const Status status = run(argc, argv, figures); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return finish(figures, argc, argv);
}

}  // namespace foretune::bench
