// Asks a model for the config of one GEMM: pick_cpp MODEL M N K
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/select.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: pick_cpp MODEL M N K\n";
    return 2;
  }
  const auto selector = foretune::Selector::open(argv[1]);
  if (!selector) {
    std::cerr << selector.error().message << '\n';
    return 1;
  }
  const auto gemm = foretune::GemmProblem::create(
      {.m = std::atoll(argv[2]), .n = std::atoll(argv[3]), .k = std::atoll(argv[4])});
  if (!gemm) {
    std::cerr << gemm.error().message << '\n';
    return 1;
  }
  const foretune::Choice choice = (*selector)->select(gemm->to_problem());
  if (!choice.has_candidate) {
    std::cout << "abstained: " << foretune::to_string(choice.reason) << '\n';
    return 3;
  }
  std::cout << (choice.picked() ? "picked: " : "fallback: ")
            << (*selector)->config_text(choice.candidate) << '\n';
  return 0;
}
