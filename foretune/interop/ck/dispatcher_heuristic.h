// A selector as the heuristic of Composable Kernel's dispatcher: a function from a problem to the
// names of kernels, best first. No header of ROCm is needed: the type of the problem is a
// parameter.
//
//   FORETUNE_TRY(const std::shared_ptr<const Selector> selector, Selector::open("gemm.ftm"));
//   dispatcher.set_strategy(SelectionStrategy::Heuristic);
//   dispatcher.set_heuristic(gemm_heuristic<ck_tile::dispatcher::Problem>(
//       selector, {.dtype = DataType::kF16, .layout = GemmLayout::kRcr}));
//
//   conv_dispatcher.set_heuristic(conv_heuristic<ck_tile::dispatcher::GroupedConvProblem>(
//       conv_selector, {.dtype = DataType::kBf16, .kernels = kernels_in("build/bin")}));
//
// Thread safety: any number of threads may call a heuristic. Cost: one ranking of the model's pool
// for each call; a problem that comes again is worth remembering.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/select.h"

namespace foretune {

// Facts that a dispatcher's problem leaves open.
struct DispatcherOptions {
  DataType dtype = DataType::kF16;
  GemmLayout layout = GemmLayout::kRcr;  // of a GEMM
  // Kernels that are registered, by their names; empty: those of the model. Kernels of the model
  // that are not among them are left out, and those that the model does not know come last, in
  // their order, so that the dispatcher can always fall back.
  std::vector<std::string> kernels = {};
  std::size_t top = 0;  // number of names to return; 0: all
  // The names of a GEMM's kernels: "fp16_rcr_compv3_...", as the dispatcher's registry has them, or
  // with the operation before it, as in the names of programs.
  bool with_operation = false;
};

// Returns the names of the kernels whose benchmark programs or libraries lie in a folder, sorted;
// empty when there is no such folder.
inline std::vector<std::string> kernels_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().stem().string();
    for (const std::string_view prefix : {"lib", "benchmark_"}) {
      if (name.starts_with(prefix)) {
        name.erase(0, prefix.size());
      }
    }
    if (parse_ck_gemm_name(name) || parse_ck_conv_name(name)) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace dispatcher_internal {

// Puts ranked names and registered ones together.
class NameList {
 public:
  explicit NameList(const DispatcherOptions& options)
      : options_(options), registered_(options.kernels.begin(), options.kernels.end()) {}

  void add(std::string name) {
    if ((registered_.empty() || registered_.contains(name)) && seen_.insert(name).second) {
      names_.push_back(std::move(name));
    }
  }

  std::vector<std::string> finish() {
    for (const std::string& name : options_.kernels) {
      add(name);
    }
    if (options_.top != 0 && names_.size() > options_.top) {
      names_.resize(options_.top);
    }
    return std::move(names_);
  }

 private:
  const DispatcherOptions& options_;
  std::unordered_set<std::string> registered_;
  std::unordered_set<std::string> seen_;
  std::vector<std::string> names_;
};

// A registered kernel under the name that the heuristic returns; as it is when it is none of a
// GEMM.
inline std::string registered_name(const std::string& name, bool with_operation) {
  const auto kernel = parse_ck_gemm_name(name);
  const auto spelt = !kernel          ? Result<std::string>(name)
                     : with_operation ? ck_gemm_name(*kernel)
                                      : ck_gemm_identifier(*kernel);
  return spelt.value_or(name);
}

}  // namespace dispatcher_internal

// For problems with the members M, N, K and k_batch. Kernels that split the depth into k_batch
// parts are taken where the model has such; else its kernels are for any k_batch.
template <class GemmProblemOfTheirs>
std::function<std::vector<std::string>(const GemmProblemOfTheirs&)> gemm_heuristic(
    std::shared_ptr<const Selector> selector, DispatcherOptions options) {
  for (std::string& kernel : options.kernels) {
    kernel = dispatcher_internal::registered_name(kernel, options.with_operation);
  }
  return [selector = std::move(selector),
          options = std::move(options)](const GemmProblemOfTheirs& problem) {
    dispatcher_internal::NameList names(options);
    const auto gemm = GemmProblem::create({.m = problem.M,
                                           .n = problem.N,
                                           .k = problem.K,
                                           .dtype = options.dtype,
                                           .layout = options.layout});
    if (gemm) {
      constexpr auto kSplitK = static_cast<std::size_t>(CkGemmParameter::kSplitK);
      std::vector<Config> ranked;
      for (const RankedCandidate& candidate : selector->rank(gemm->to_problem())) {
        ranked.push_back(selector->config(candidate.candidate));
      }
      const auto splits = [&](const Config& config) {
        return config.words.size() > kSplitK && config.words[kSplitK] == problem.k_batch;
      };
      const bool has_split = std::any_of(ranked.begin(), ranked.end(), splits);
      for (Config& config : ranked) {
        if (has_split && !splits(config)) {
          continue;
        }
        const CkGemmKernel kernel{options.dtype, options.layout, std::move(config)};
        if (auto name =
                options.with_operation ? ck_gemm_name(kernel) : ck_gemm_identifier(kernel)) {
          names.add(*std::move(name));
        }
      }
    }
    return names.finish();
  };
}

// For problems with the members of ck_tile::dispatcher::GroupedConvProblem: N, C, K, G, the arrays
// input_spatial, filter_spatial, stride, padding and dilation of depth, height and width, and op.
template <class ConvProblemOfTheirs>
std::function<std::vector<std::string>(const ConvProblemOfTheirs&)> conv_heuristic(
    std::shared_ptr<const Selector> selector, DispatcherOptions options) {
  return [selector = std::move(selector),
          options = std::move(options)](const ConvProblemOfTheirs& problem) {
    dispatcher_internal::NameList names(options);
    const auto conv = ConvProblem::create({.operation = static_cast<ConvOperation>(problem.op),
                                           .n = problem.N,
                                           .c = problem.C,
                                           .k = problem.K,
                                           .g = problem.G,
                                           .di = problem.input_spatial[0],
                                           .hi = problem.input_spatial[1],
                                           .wi = problem.input_spatial[2],
                                           .z = problem.filter_spatial[0],
                                           .y = problem.filter_spatial[1],
                                           .x = problem.filter_spatial[2],
                                           .stride_d = problem.stride[0],
                                           .stride_h = problem.stride[1],
                                           .stride_w = problem.stride[2],
                                           .pad_d = problem.padding[0],
                                           .pad_h = problem.padding[1],
                                           .pad_w = problem.padding[2],
                                           .dilation_d = problem.dilation[0],
                                           .dilation_h = problem.dilation[1],
                                           .dilation_w = problem.dilation[2],
                                           .dtype = options.dtype});
    if (conv) {
      for (const RankedCandidate& candidate : selector->rank(conv->to_problem())) {
        if (auto name = ck_conv_name({.variant = static_cast<CkConvVariant>(problem.op),
                                      .dtype = options.dtype,
                                      .spatial_dims = conv->is_3d() ? 3 : 2,
                                      .config = selector->config(candidate.candidate)})) {
          names.add(*std::move(name));
        }
      }
    }
    return names.finish();
  };
}

}  // namespace foretune
