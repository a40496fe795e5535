// Names the CK Tile kernel to launch for each problem, in what would be a dispatcher: links the
// selector alone.
//
//   dispatch MODEL M,N,K ...
#include <charconv>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string_view>

#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/select.h"

namespace {

std::optional<foretune::GemmProblem> parse(std::string_view text) {
  std::int64_t sizes[3] = {};
  const char* next = text.data();
  const char* const end = next + text.size();
  for (std::int64_t& size : sizes) {
    const auto [stop, error] = std::from_chars(next, end, size);
    if (error != std::errc()) {
      return std::nullopt;
    }
    next = stop < end && *stop == ',' ? stop + 1 : stop;
  }
  const auto gemm = foretune::GemmProblem::create({.m = sizes[0],
                                                   .n = sizes[1],
                                                   .k = sizes[2],
                                                   .dtype = foretune::DataType::kF16,
                                                   .layout = foretune::GemmLayout::kRcr});
  return gemm && next == end ? std::optional(*gemm) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: dispatch MODEL M,N,K ...\n";
    return 2;
  }
  const auto selector = foretune::Selector::open(argv[1]);
  if (!selector) {
    std::cerr << selector.error().message << '\n';
    return 1;
  }
  for (int i = 2; i < argc; ++i) {
    const auto gemm = parse(argv[i]);
    if (!gemm) {
      std::cerr << argv[i] << " is not M,N,K\n";
      return 2;
    }
    const foretune::Choice choice = (*selector)->select(gemm->to_problem());
    if (!choice.has_candidate) {
      std::cout << argv[i] << " - " << foretune::to_string(choice.reason) << '\n';
      continue;
    }
    const auto name = foretune::ck_gemm_name({.dtype = gemm->sizes().dtype,
                                              .layout = gemm->sizes().layout,
                                              .config = (*selector)->config(choice.candidate)});
    if (!name) {
      std::cerr << name.error().message << '\n';
      return 1;
    }
    std::cout << argv[i] << ' ' << *name << (choice.picked() ? "" : " (fallback)") << '\n';
  }
  return 0;
}
