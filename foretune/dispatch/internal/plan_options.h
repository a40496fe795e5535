// Options that plans of the C interface share, and the dispatchers that were made for them.
// Internal to the module.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/base/fork.h"
#include "foretune/base/result.h"
#include "foretune/dispatch/gemm_dispatch.h"
#include "foretune/dispatch/internal/trials_file.h"
#include "foretune/model/model_file.h"

namespace foretune::internal {

// The fields of foretune_conv_options and its like, owned.
struct PlanOptions {
  int threads = 0;
  int measure_top = 0;
  std::string model_path;
  std::string choices_path;
  auto operator<=>(const PlanOptions&) const = default;
};

// `options` is a C struct with these fields, or null.
template <class COptions>
Result<PlanOptions> plan_options(const COptions* options) {
  if (options == nullptr) {
    return PlanOptions{};
  }
  if (options->threads < 0 || options->measure_top < 0) {
    return fail(ErrorCode::kInvalidArgument, "threads and measure_top must not be negative");
  }
  const auto text = [](const char* given) { return given == nullptr ? "" : given; };
  return PlanOptions{.threads = options->threads,
                     .measure_top = options->measure_top,
                     .model_path = text(options->model_path),
                     .choices_path = text(options->choices_path)};
}

template <class FrontEnd>
Result<std::unique_ptr<FrontEnd>> open_front_end(const PlanOptions& options) {
  CpuDispatchOptions opened;
  opened.threads = options.threads;
  opened.dispatch.measure_top = options.measure_top;
  if (!options.model_path.empty()) {
    FORETUNE_TRY(opened.model, read_model(options.model_path));
  }
  return dispatch_internal::open_with_trials(FrontEnd::for_this_cpu, std::move(opened),
                                             options.choices_path);
}

// Returns the front end (ConvDispatcher, SparseDispatcher) for the options, which is made when it
// is first needed, and kept: threads of the program may still run plans while it exits.
template <class FrontEnd>
Result<FrontEnd*> front_end_of(const PlanOptions& options) {
  static ForkSafeMutex mutex;
  static auto* const known = new std::map<PlanOptions, std::unique_ptr<FrontEnd>>();
  const std::lock_guard lock(mutex);
  const auto place = known->find(options);
  if (place != known->end()) {
    return place->second.get();
  }
  FORETUNE_TRY(std::unique_ptr<FrontEnd> made, open_front_end<FrontEnd>(options));
  return known->emplace(options, std::move(made)).first->second.get();
}

// Appends what the trials of all plans with these options measured since the last call.
template <class FrontEnd>
Status save_trials(FrontEnd& front_end, const PlanOptions& options, std::string_view family) {
  return dispatch_internal::save_trials(front_end.dispatcher(), options.choices_path, family);
}

}  // namespace foretune::internal
