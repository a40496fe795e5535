// Sets a model as the heuristic of a dispatcher of Composable Kernel, and asks it for the kernel of
// each problem. The types of the dispatcher are stand-ins here; with ROCm, include
// ck_tile/dispatcher/dispatcher.hpp and give its Problem to gemm_heuristic().
//
//   example_ck_heuristic --model MODEL [--kernels FOLDER] [M,N,K ...]
//
// MODEL is a model file, a directory of models, or a LightGBM text in such a directory. FOLDER has
// the programs or libraries of the kernels that there are.
#include <charconv>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/interop/ck/dispatcher_heuristic.h"
#include "foretune/workflow/model_source.h"

namespace {

// ck_tile::dispatcher::Problem
struct Problem {
  std::int64_t M = 0;  // NOLINT(readability-identifier-naming): theirs
  std::int64_t N = 0;  // NOLINT(readability-identifier-naming)
  std::int64_t K = 0;  // NOLINT(readability-identifier-naming)
  std::int32_t k_batch = 1;
};

// ck_tile::dispatcher::Dispatcher, with its heuristic alone.
class Dispatcher {
 public:
  using HeuristicFunction = std::function<std::vector<std::string>(const Problem&)>;
  void set_heuristic(HeuristicFunction heuristic) { heuristic_ = std::move(heuristic); }
  [[nodiscard]] std::string select_kernel(const Problem& problem) const {
    const std::vector<std::string> names = heuristic_(problem);
    return names.empty() ? "no kernel" : names.front();
  }

 private:
  HeuristicFunction heuristic_;
};

bool parse(std::string_view text, Problem& problem) {
  const char* next = text.data();
  const char* const end = next + text.size();
  for (std::int64_t* const size : {&problem.M, &problem.N, &problem.K}) {
    const auto [stop, error] = std::from_chars(next, end, *size);
    if (error != std::errc()) {
      return false;
    }
    next = stop < end && *stop == ',' ? stop + 1 : stop;
  }
  return next == end;
}

// The data type that a directory is for; that of most models otherwise.
foretune::DataType dtype_of(const foretune::workflow::OpenedModels& models) {
  const auto label = models.labels.find("dtype");
  return label == models.labels.end()
             ? foretune::DataType::kF16
             : foretune::parse_data_type(label->second).value_or(foretune::DataType::kF16);
}

}  // namespace

int main(int argc, char** argv) {
  foretune::workflow::ModelArguments model;
  std::string folder;
  std::vector<Problem> problems;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    Problem problem;
    if (argument == "--model" && i + 1 < argc) {
      model.path = argv[++i];
    } else if (argument == "--kernels" && i + 1 < argc) {
      folder = argv[++i];
    } else if (parse(argument, problem)) {
      problems.push_back(problem);
    } else {
      std::cerr << "usage: example_ck_heuristic --model MODEL [--kernels FOLDER] [M,N,K ...]\n";
      return 2;
    }
  }
  if (problems.empty()) {
    problems = {{128, 128, 64}, {512, 512, 256}, {1024, 1024, 512}, {2048, 2048, 1024}};
  }
  auto opened = model.open({});
  if (!opened) {
    std::cerr << opened.error().message << '\n';
    return 1;
  }
  foretune::DispatcherOptions options{.dtype = dtype_of(*opened)};
  if (!folder.empty()) {
    options.kernels = foretune::kernels_in(folder);
  }
  auto selector = foretune::Selector::create(std::move(opened->model));
  if (!selector) {
    std::cerr << selector.error().message << '\n';
    return 1;
  }
  Dispatcher dispatcher;
  dispatcher.set_heuristic(foretune::gemm_heuristic<Problem>(std::move(*selector), options));
  for (const Problem& problem : problems) {
    std::cout << problem.M << ',' << problem.N << ',' << problem.K << ' '
              << dispatcher.select_kernel(problem) << '\n';
  }
  return 0;
}
