#include "foretune/dispatch/cudnn_convolution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include "foretune/base/c_errors.h"
#include "foretune/base/c_text.h"
#include "foretune/dispatch/cudnn_dispatch.h"
#include "foretune/dispatch/internal/trials_file.h"
#include "foretune/model/model_file.h"

struct foretune_cudnn {
  std::shared_ptr<foretune::CudnnDispatcher> dispatcher;
  std::size_t workspace_limit = 0;
  std::filesystem::path trials_path;  // empty: none
};

struct foretune_cudnn_plan {
  // Kept by the plan, whose kernels it made.
  std::shared_ptr<foretune::CudnnDispatcher> dispatcher;
  std::shared_ptr<const foretune::CudnnPlan> plan;
};

namespace foretune {
namespace {

static_assert(static_cast<int>(ErrorCode::kInvalidArgument) == FORETUNE_CUDNN_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::kNotFound) == FORETUNE_CUDNN_NOT_FOUND);
static_assert(static_cast<int>(ErrorCode::kCorrupt) == FORETUNE_CUDNN_CORRUPT);
static_assert(static_cast<int>(ErrorCode::kMismatch) == FORETUNE_CUDNN_MISMATCH);
static_assert(static_cast<int>(ErrorCode::kUnsupported) == FORETUNE_CUDNN_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::kIo) == FORETUNE_CUDNN_IO);
static_assert(static_cast<int>(ErrorCode::kInternal) == FORETUNE_CUDNN_INTERNAL);
static_assert(static_cast<int>(ConvOperation::kForward) == FORETUNE_CUDNN_FORWARD);
static_assert(static_cast<int>(ConvOperation::kBackwardData) == FORETUNE_CUDNN_BACKWARD_DATA);
static_assert(static_cast<int>(ConvOperation::kBackwardWeight) == FORETUNE_CUDNN_BACKWARD_WEIGHT);

constexpr std::size_t kDefaultWorkspace = std::size_t{1} << 30U;

Status open(const foretune_cudnn_options& options, foretune_cudnn** out) {
  if (out == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "out must not be NULL");
  }
  *out = nullptr;
  if (!std::isfinite(options.margin) || options.margin < 0) {
    return fail(ErrorCode::kInvalidArgument, "a margin is a number from 0, not ", options.margin);
  }
  if (!(options.trial_share >= 0 && options.trial_share <= 1)) {
    return fail(ErrorCode::kInvalidArgument, "a share is a number from 0 to 1, not ",
                options.trial_share);
  }
  CudnnDispatchOptions cpp;
  cpp.dispatch.margin = options.margin;
  cpp.dispatch.fast = options.fast != 0;
  cpp.dispatch.measure_top = options.measure_top;
  cpp.compiles = options.compiles != 0;
  cpp.trial_share = options.trial_share == 0 ? 1 : options.trial_share;
  if (options.model_path != nullptr) {
    FORETUNE_TRY(Model model, read_model(options.model_path));
    cpp.models.push_back(std::move(model));
  }
  if (options.cudnn_library != nullptr) {
    cpp.cudnn = {options.cudnn_library};
  }
  if (options.driver_library != nullptr) {
    cpp.driver = options.driver_library;
  }
  auto opened = std::make_unique<foretune_cudnn>();
  opened->workspace_limit =
      options.workspace_limit == 0 ? kDefaultWorkspace : options.workspace_limit;
  if (options.trials_path != nullptr) {
    opened->trials_path = options.trials_path;
  }
  FORETUNE_TRY(opened->dispatcher, dispatch_internal::open_with_trials(
                                       CudnnDispatcher::open, std::move(cpp), opened->trials_path));
  *out = opened.release();
  return {};
}

Status save(const foretune_cudnn* opened) {
  if (opened == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "foretune must not be NULL");
  }
  return dispatch_internal::save_trials(opened->dispatcher->dispatcher(), opened->trials_path,
                                        "cudnn");
}

Result<DataType> type_of(const foretune_cudnn_problem& problem) {
  switch (static_cast<cudnn::TensorType>(problem.type)) {
    case cudnn::TensorType::kF32:
      return problem.tf32 != 0 ? DataType::kTf32 : DataType::kF32;
    case cudnn::TensorType::kF16:
      return DataType::kF16;
    case cudnn::TensorType::kBf16:
      return DataType::kBf16;
  }
  return fail(ErrorCode::kInvalidArgument, "a type is 0, 2 or 9, not ", problem.type);
}

Result<CudnnCall> call_of(const foretune_cudnn_problem* given, std::size_t workspace_bytes) {
  if (given == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "problem must not be NULL");
  }
  const foretune_cudnn_problem& problem = *given;
  if (problem.operation < FORETUNE_CUDNN_FORWARD ||
      problem.operation > FORETUNE_CUDNN_BACKWARD_WEIGHT) {
    return fail(ErrorCode::kInvalidArgument, "an operation is 0, 1 or 2, not ", problem.operation);
  }
  if (problem.spatial < 1 || problem.spatial > 3) {
    return fail(ErrorCode::kInvalidArgument, "there are 1 to 3 spatial dimensions, not ",
                problem.spatial);
  }
  CudnnCall call{.workspace_bytes = workspace_bytes, .deterministic = problem.deterministic != 0};
  ConvSizes& sizes = call.sizes;
  sizes.operation = static_cast<ConvOperation>(problem.operation);
  FORETUNE_TRY(sizes.dtype, type_of(problem));
  sizes.layout =
      problem.channels_last != 0 ? ConvLayout::kChannelsLast : ConvLayout::kChannelsFirst;
  sizes.n = problem.batch;
  sizes.c = problem.channels;
  sizes.k = problem.filters;
  sizes.g = problem.groups;
  // The last numbers are those of the width.
  const auto spread = [&](const int64_t(&from)[3], std::array<std::int64_t*, 3> to) {
    const auto count = static_cast<std::size_t>(problem.spatial);
    for (std::size_t i = 0; i < count; ++i) {
      *to[3 - count + i] = from[i];
    }
  };
  spread(problem.input, {&sizes.di, &sizes.hi, &sizes.wi});
  spread(problem.filter, {&sizes.z, &sizes.y, &sizes.x});
  spread(problem.padding, {&sizes.pad_d, &sizes.pad_h, &sizes.pad_w});
  spread(problem.stride, {&sizes.stride_d, &sizes.stride_h, &sizes.stride_w});
  spread(problem.dilation, {&sizes.dilation_d, &sizes.dilation_h, &sizes.dilation_w});
  return call;
}

Result<std::shared_ptr<const CudnnPlan>> plan_of(foretune_cudnn* foretune,
                                                 const foretune_cudnn_problem* problem) {
  if (foretune == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "foretune must not be NULL");
  }
  FORETUNE_TRY(const CudnnCall call, call_of(problem, foretune->workspace_limit));
  return foretune->dispatcher->prepare(call);
}

Status prepare(foretune_cudnn* foretune, const foretune_cudnn_problem* problem,
               foretune_cudnn_plan** out) {
  if (out == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "out must not be NULL");
  }
  *out = nullptr;
  auto made = std::make_unique<foretune_cudnn_plan>();
  FORETUNE_TRY(made->plan, plan_of(foretune, problem));
  made->dispatcher = foretune->dispatcher;
  *out = made.release();
  return {};
}

cudnn::ConvOperands operands_of(const void* x, const void* w, const void* y, void* workspace) {
  return {.input = x, .weights = w, .output = y, .workspace = workspace};
}

}  // namespace
}  // namespace foretune

int foretune_cudnn_open(const char* model_path, foretune_cudnn** out) {
  foretune_cudnn_options options = {};
  options.model_path = model_path;
  return foretune_cudnn_open_with(&options, out, nullptr, 0);
}

int foretune_cudnn_open_with(const foretune_cudnn_options* options, foretune_cudnn** out,
                             char* message, size_t message_size) {
  return foretune::report_errors(message, message_size, [&] {
    return foretune::open(options == nullptr ? foretune_cudnn_options{} : *options, out);
  });
}

void foretune_cudnn_close(foretune_cudnn* foretune) { delete foretune; }

int foretune_cudnn_save(foretune_cudnn* foretune, char* message, size_t message_size) {
  return ::foretune::report_errors(message, message_size,
                                   [&] { return ::foretune::save(foretune); });
}

int foretune_cudnn_workspace(foretune_cudnn* foretune, const foretune_cudnn_problem* problem,
                             size_t* bytes) {
  return ::foretune::report_errors(nullptr, 0, [&]() -> ::foretune::Status {
    if (bytes == nullptr) {
      return ::foretune::fail(::foretune::ErrorCode::kInvalidArgument, "bytes must not be NULL");
    }
    *bytes = 0;
    FORETUNE_TRY(const auto plan, ::foretune::plan_of(foretune, problem));
    *bytes = plan->workspace_bytes();
    return {};
  });
}

int foretune_cudnn_convolution(foretune_cudnn* foretune, void* handle,
                               const foretune_cudnn_problem* problem, const void* x, const void* w,
                               const void* y, void* workspace, size_t workspace_bytes) {
  namespace cudnn = ::foretune::cudnn;
  if (foretune == nullptr || handle == nullptr || x == nullptr || w == nullptr || y == nullptr) {
    return cudnn::kBadParameter;
  }
  try {
    const auto call = ::foretune::call_of(problem, workspace == nullptr ? 0 : workspace_bytes);
    return call ? foretune->dispatcher->convolve(*call, static_cast<cudnn::Handle>(handle),
                                                 ::foretune::operands_of(x, w, y, workspace))
                : cudnn::kBadParameter;
  } catch (const std::exception&) {  // memory is short
    return cudnn::kInternalError;
  }
}

size_t foretune_cudnn_explain(foretune_cudnn* foretune, const foretune_cudnn_problem* problem,
                              char* text, size_t size) {
  ::foretune::copy_text("", text, size);
  try {
    const auto plan = ::foretune::plan_of(foretune, problem);
    return plan ? ::foretune::copy_text((*plan)->text(), text, size) : 0;
  } catch (const std::exception&) {  // memory is short
    return 0;
  }
}

int foretune_cudnn_prepare(foretune_cudnn* foretune, const foretune_cudnn_problem* problem,
                           foretune_cudnn_plan** out, char* message, size_t message_size) {
  return ::foretune::report_errors(message, message_size,
                                   [&] { return ::foretune::prepare(foretune, problem, out); });
}

foretune_cudnn_facts foretune_cudnn_plan_facts(const foretune_cudnn_plan* plan) {
  foretune_cudnn_facts facts = {};
  if (plan != nullptr) {
    const foretune::CudnnPlan& made = *plan->plan;
    facts.workspace_bytes = made.workspace_bytes();
    facts.engine = made.engine();
    facts.deterministic = made.is_deterministic() ? 1 : 0;
    facts.is_models_pick = made.source() == foretune::ChoiceSource::kHeuristic ? 0 : 1;
    facts.is_settled = made.is_settled() ? 1 : 0;
  }
  return facts;
}

size_t foretune_cudnn_plan_text(const foretune_cudnn_plan* plan, char* text, size_t size) {
  foretune::copy_text("", text, size);
  try {
    return plan == nullptr ? 0 : foretune::copy_text(plan->plan->text(), text, size);
  } catch (const std::exception&) {  // memory is short
    return 0;
  }
}

int foretune_cudnn_run(const foretune_cudnn_plan* plan, void* handle, void* stream, const void* x,
                       const void* w, const void* y, void* workspace, size_t workspace_bytes) {
  namespace cudnn = ::foretune::cudnn;
  if (plan == nullptr || x == nullptr || w == nullptr || y == nullptr) {
    return cudnn::kBadParameter;
  }
  return plan->dispatcher->run(*plan->plan, static_cast<cudnn::Handle>(handle),
                               static_cast<::foretune::cuda::Stream>(stream),
                               ::foretune::operands_of(x, w, y, workspace), workspace_bytes);
}

void foretune_cudnn_release(foretune_cudnn_plan* plan) { delete plan; }
