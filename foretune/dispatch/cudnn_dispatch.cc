#include "foretune/dispatch/cudnn_dispatch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/cudnn/cudnn_config.h"
#include "foretune/dispatch/bounded_map.h"
#include "foretune/dispatch/cudnn_provider.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/dispatch/internal/cudnn_handles.h"
#include "foretune/dispatch/internal/gpu_place.h"
#include "foretune/dispatch/internal/gpu_trials.h"
#include "foretune/features/feature_table.h"

namespace foretune {
namespace {

using dispatch_internal::CudnnDetails;
using dispatch_internal::CudnnHandles;
using dispatch_internal::CudnnKernel;
using dispatch_internal::CudnnProvider;
using dispatch_internal::PlanLibrary;

constexpr std::int32_t kNoDevice = -1;
constexpr std::uintptr_t kAlignment = 16;

// Identifies the calls that have the same plan.
struct PlanKey {
  CudnnCall call;
  std::int32_t device = kNoDevice;
  bool operator==(const PlanKey&) const = default;
};

struct PlanHash {
  std::size_t operator()(const PlanKey& key) const {
    const ConvSizes& s = key.call.sizes;
    const std::array<std::int64_t, 25> words{static_cast<std::int64_t>(s.operation),
                                             s.n,
                                             s.c,
                                             s.k,
                                             s.g,
                                             s.di,
                                             s.hi,
                                             s.wi,
                                             s.z,
                                             s.y,
                                             s.x,
                                             s.stride_d,
                                             s.stride_h,
                                             s.stride_w,
                                             s.pad_d,
                                             s.pad_h,
                                             s.pad_w,
                                             s.dilation_d,
                                             s.dilation_h,
                                             s.dilation_w,
                                             static_cast<std::int64_t>(s.dtype),
                                             static_cast<std::int64_t>(s.layout),
                                             static_cast<std::int64_t>(key.call.workspace_bytes),
                                             key.call.deterministic ? 1 : 0,
                                             key.device};
    std::uint64_t hash = 0;
    for (const std::int64_t word : words) {
      hash = hash_combine(hash, static_cast<std::uint64_t>(word));
    }
    return static_cast<std::size_t>(hash);
  }
};

// A call with all that its DispatchCall points to.
class AskedConvolution {
 public:
  AskedConvolution(const CudnnCall& call, const ConvProblem& conv, std::int32_t device,
                   bool compiles, const std::shared_ptr<const void>& librarys = nullptr)
      : conv_(conv),
        problem_(conv.to_problem()),
        variant_{static_cast<std::uint64_t>(device), call.workspace_bytes,
                 call.deterministic ? std::uint64_t{1} : std::uint64_t{0}},
        details_{.problem = &conv_,
                 .options = {.workspace_bytes = call.workspace_bytes,
                             .deterministic = call.deterministic,
                             .compiles = compiles},
                 .device = device,
                 .librarys = std::static_pointer_cast<const CudnnKernel>(librarys)} {
    asked_.problem = &problem_;
    asked_.variant = variant_;
    asked_.details = &details_;
    asked_.is_steady = call.deterministic;
  }
  AskedConvolution(const AskedConvolution&) = delete;
  AskedConvolution& operator=(const AskedConvolution&) = delete;
  [[nodiscard]] const DispatchCall& get() const { return asked_; }

 private:
  ConvProblem conv_;
  Problem problem_;
  std::array<std::uint64_t, 3> variant_;
  CudnnDetails details_;
  DispatchCall asked_;
};

bool is_aligned(const cudnn::ConvOperands& operands) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  return (bits(operands.input) | bits(operands.weights) | bits(operands.output)) % kAlignment == 0;
}

bool is_refusal(int status) {
  return status >= cudnn::kBadParameter && status < cudnn::kExecutionFailed;
}

const CudnnKernel& kernel_of(const void* kernel) {
  return *static_cast<const CudnnKernel*>(kernel);
}

std::size_t workspace_of(const std::shared_ptr<const void>& kernel) {
  return kernel_of(kernel.get()).plan.workspace_bytes;
}

}  // namespace

struct CudnnDispatcher::State {
  // A plan, or the reason why there is none.
  using Known = Result<std::shared_ptr<const CudnnPlan>>;

  State(std::shared_ptr<const cudnn::Api> library, std::shared_ptr<const cuda::DriverApi> loaded,
        const CudnnDispatchOptions& options)
      : api(std::move(library)),
        driver(std::move(loaded)),
        compiles(options.compiles),
        most_trials(options.dispatch.measure_top),
        dispatcher(options.dispatch),
        trials(driver, dispatcher, options.trial_share),
        handles(api),
        plans(options.dispatch.max_problems) {}

  [[nodiscard]] std::int32_t current_device() const {
    int device = kNoDevice;
    return driver->context_device(&device) == cuda::kDriverSuccess ? device : kNoDevice;
  }
  Status add_providers(std::int32_t device, const std::vector<Model>& models);
  Known choose(const PlanKey& key);
  // Returns a plan of the library's own choice, whose engines on trial are made later; null where
  // there is no such choice.
  std::shared_ptr<const CudnnPlan> postpone(const PlanKey& key, const DispatchCall& asked);
  // Takes over what the dispatcher decided about a plan.
  Status adopt(const CudnnPlan& plan, const DispatchCall& asked);
  Known choose_another(const PlanKey& key);
  Known find(const PlanKey& key);
  void keep(const PlanKey& key, const Known& known) {
    const std::unique_lock lock(mutex);
    plans.put(key, known);
  }
  // Fixes the plan's kernel: its trials are over.
  void settle(const CudnnPlan& plan, Decision made);
  // Returns true when engines for another convolution may be made. With few convolutions on trial
  // at a time, trials that get a share of the time end soon. Some of them may never be called
  // again.
  [[nodiscard]] bool may_open() {
    constexpr int kMostOpen = 4;
    constexpr double kForgottenAfter = 1;  // second
    return trials.budget().allows() &&
           (open < kMostOpen || trials.budget().idle_s() > kForgottenAfter);
  }
  int execute(const CudnnKernel& kernel, cudnn::Handle handle, cuda::Stream stream,
              const cudnn::ConvOperands& operands, std::size_t workspace_bytes);
  int run_unsettled(const CudnnPlan& plan, cudnn::Handle handle, cuda::Stream stream,
                    const cudnn::ConvOperands& operands, std::size_t workspace_bytes);
  // Runs the kernel that a plan has beside its trials.
  int run_first(const CudnnPlan& plan, cudnn::Handle handle, cuda::Stream stream,
                const cudnn::ConvOperands& operands, std::size_t workspace_bytes);
  // Makes the engines of a plan's trials where their share of the time allows it.
  void open_trials(const CudnnPlan& plan);

  std::shared_ptr<const cudnn::Api> api;
  std::shared_ptr<const cuda::DriverApi> driver;
  bool compiles;
  int most_trials;           // of one kind of call
  std::atomic<int> open{0};  // postponed convolutions that have begun their trials
  Dispatcher dispatcher;
  dispatch_internal::GpuTrials trials;
  CudnnHandles handles;
  ForkSafeSharedMutex mutex;
  BoundedMap<PlanKey, Known, PlanHash> plans;
};

namespace {

Result<std::vector<Model>> shipped_models() {
  std::vector<Model> models;
  for (const DefaultCudnnModel& shipped : default_cudnn_models()) {
    FORETUNE_TRY(Model model, parse_model(shipped.bytes));
    models.push_back(std::move(model));
  }
  return models;
}

// Returns false for a model that saw no convolutions of this direction in training.
bool knows(const Model& model, ConvOperation operation) {
  const auto table = find_feature_table(model.feature_table);
  if (!table) {
    return true;
  }
  std::size_t column = 0;  // of the problem
  for (const FeatureInfo& info : (*table)->columns()) {
    if (info.kind != FeatureKind::kProblem || column == model.problem_range.size()) {
      continue;
    }
    const auto& [least, most] = model.problem_range[column++];
    if (info.name == "op" || info.name == "operation") {
      const auto number = static_cast<double>(operation);
      return least <= number && number <= most;
    }
  }
  return true;
}

// Returns the problem that the sizes describe. A convolution of depth 1 runs in two dimensions.
Result<ConvProblem> problem_of(const ConvSizes& sizes) {
  FORETUNE_TRY(const ConvProblem problem, ConvProblem::create(sizes));
  if (!problem.is_3d() && problem.depth_out() != 1) {
    return fail(ErrorCode::kUnsupported, "padding in depth needs an input or a filter of depth");
  }
  if (problem.has_constant_weights() || problem.skips() ||
      problem.epilogue() != ConvEpilogue::kNone) {
    return fail(ErrorCode::kUnsupported, "plain convolutions run here, without an epilogue");
  }
  FORETUNE_TRY_STATUS(cudnn::tensor_type(problem.dtype()));
  return problem;
}

}  // namespace

Status CudnnDispatcher::State::add_providers(std::int32_t device,
                                             const std::vector<Model>& models) {
  const auto library = std::make_shared<PlanLibrary>(api);
  if (device == current_device()) {
    // Handles cannot be made while a stream captures. An error shows again at the first call.
    static_cast<void>(library->take());
    static_cast<void>(handles.with(device, nullptr, [](cudnn::Handle) { return 0; }));
  }
  for (const ConvOperation operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    std::vector<Model> knowing;
    std::ranges::copy_if(models, std::back_inserter(knowing),
                         [&](const Model& model) { return knows(model, operation); });
    FORETUNE_TRY(std::shared_ptr<CudnnProvider> provider,
                 CudnnProvider::create(*api, *driver, device, operation, library));
    const std::optional<std::size_t> chosen = provider->choose_model(knowing);
    FORETUNE_TRY_STATUS(dispatcher.add(
        std::move(provider), chosen ? std::optional(std::move(knowing[*chosen])) : std::nullopt));
  }
  return {};
}

void CudnnDispatcher::State::settle(const CudnnPlan& plan, Decision made) {
  const std::lock_guard lock(plan.mutex_);
  if (plan.is_settled()) {
    return;
  }
  plan.kernel_ = std::move(made.kernel);
  plan.source_ = made.source;
  plan.note_ = std::move(made.note);
  plan.workspace_bytes_ = workspace_of(plan.kernel_);
  plan.settled_.store(plan.kernel_.get(), std::memory_order_release);
  open -= plan.is_open_.exchange(false) ? 1 : 0;
}

Status CudnnDispatcher::State::adopt(const CudnnPlan& plan, const DispatchCall& asked) {
  FORETUNE_TRY(Decision made, dispatcher.decision(asked));
  if (made.is_settled) {
    settle(plan, std::move(made));
    return {};
  }
  FORETUNE_TRY(const auto kernels, dispatcher.kernels(asked));
  const std::lock_guard lock(plan.mutex_);
  for (const std::shared_ptr<const void>& kernel : kernels) {
    plan.workspace_bytes_ = std::max(plan.workspace_bytes_, workspace_of(kernel));
  }
  plan.note_ = std::move(made.note);
  if (plan.is_postponed_.exchange(false, std::memory_order_acq_rel)) {
    // The first engine runs on until there are times: the next trial may be far off.
    plan.is_open_.store(true);
    ++open;
  } else if (!plan.is_open_) {
    plan.kernel_ = std::move(made.kernel);
    plan.source_ = made.source;
  }
  return {};
}

std::shared_ptr<const CudnnPlan> CudnnDispatcher::State::postpone(const PlanKey& key,
                                                                  const DispatchCall& asked) {
  auto first = dispatcher.without_model(asked, "trials wait for their share of the time");
  if (!first) {
    return nullptr;
  }
  auto plan = std::make_shared<CudnnPlan>();
  plan->call_ = key.call;
  plan->device_ = key.device;
  plan->workspace_bytes_ = workspace_of(first->kernel);
  plan->kernel_ = std::move(first->kernel);
  plan->source_ = first->source;
  plan->note_ = std::move(first->note);
  plan->is_postponed_.store(true, std::memory_order_relaxed);
  return plan;
}

CudnnDispatcher::State::Known CudnnDispatcher::State::choose(const PlanKey& key) {
  FORETUNE_TRY(const ConvProblem conv, problem_of(key.call.sizes));
  const AskedConvolution asked(key.call, conv, key.device, compiles);
  if (most_trials > 1 && trials.budget().is_limited() && !key.call.deterministic &&
      !dispatcher.remembers(asked.get())) {
    if (auto plan = postpone(key, asked.get())) {
      return plan;
    }
  }
  auto plan = std::make_shared<CudnnPlan>();
  plan->call_ = key.call;
  plan->device_ = key.device;
  FORETUNE_TRY_STATUS(adopt(*plan, asked.get()));
  return plan;
}

// Replaces a plan that the library refused to run.
CudnnDispatcher::State::Known CudnnDispatcher::State::choose_another(const PlanKey& key) {
  FORETUNE_TRY(const ConvProblem conv, problem_of(key.call.sizes));
  const AskedConvolution asked(key.call, conv, key.device, compiles);
  FORETUNE_TRY(const Dispatcher::Turn refused, dispatcher.best(asked.get()));
  FORETUNE_TRY(const Dispatcher::Turn other,
               dispatcher.replace(asked.get(), refused,
                                  "the library refused the model's choice when it ran"));
  Known known = choose(key);  // the dispatcher's new choice
  keep(key, known);
  return known;
}

CudnnDispatcher::State::Known CudnnDispatcher::State::find(const PlanKey& key) {
  {
    const std::shared_lock lock(mutex);
    if (const Known* const known = plans.find(key)) {
      return *known;
    }
  }
  Known chosen = choose(key);
  // An error of another kind, such as a lack of memory, says nothing about later calls.
  if (chosen || chosen.error().code == ErrorCode::kUnsupported) {
    keep(key, chosen);
  }
  return chosen;
}

int CudnnDispatcher::State::execute(const CudnnKernel& kernel, cudnn::Handle handle,
                                    cuda::Stream stream, const cudnn::ConvOperands& operands,
                                    std::size_t workspace_bytes) {
  const std::size_t needed = kernel.plan.workspace_bytes;
  if (needed > 0 && (operands.workspace == nullptr || workspace_bytes < needed)) {
    return cudnn::kBadParameter;
  }
  const auto enqueue = [&](cudnn::Handle with) {
    const std::lock_guard lock(kernel.mutex);
    return cudnn::execute(*api, with, kernel.plan, ConvEpilogue::kNone, operands);
  };
  return handle != nullptr ? enqueue(handle) : handles.with(current_device(), stream, enqueue);
}

int CudnnDispatcher::State::run_unsettled(const CudnnPlan& plan, cudnn::Handle handle,
                                          cuda::Stream stream, const cudnn::ConvOperands& operands,
                                          std::size_t workspace_bytes) {
  if (handle != nullptr && api->get_stream(handle, &stream) != cudnn::kSuccess) {
    return cudnn::kBadParameter;
  }
  if (plan.is_postponed_.load(std::memory_order_acquire)) {
    const int status = run_first(plan, handle, stream, operands, workspace_bytes);
    if (trials.may_time(stream) && may_open()) {
      open_trials(plan);  // from the next run on: this one's workspace is for the first engine
    }
    return status;
  }
  trials.report_ended();
  const auto conv = problem_of(plan.call_.sizes);
  const AskedConvolution asked(plan.call_, *conv, plan.device_, compiles);
  const bool is_captured = !trials.may_time(stream);
  const bool may_try = !is_captured && trials.budget().allows();
  auto turn = may_try ? dispatcher.next(asked.get()) : dispatcher.best(asked.get());
  if (plan.is_open_ && turn && !turn->is_trial() && !turn->is_final() &&
      std::isinf(turn->at_most_ns())) {
    return run_first(plan, handle, stream, operands, workspace_bytes);
  }
  const std::size_t given = operands.workspace == nullptr ? 0 : workspace_bytes;
  for (std::size_t i = 0; turn && workspace_of(turn->shared_kernel()) > given; ++i) {
    if (i == kMostRefusals) {
      return cudnn::kBadParameter;
    }
    turn = dispatcher.replace(asked.get(), *turn, "it needs more workspace than the call has");
  }
  if (!turn) {
    return cudnn::kNotSupported;
  }
  const auto run_on = [&](const Dispatcher::Turn& which, cudnn::Handle with, cuda::Stream on) {
    return execute(kernel_of(which.kernel()), with, on, operands, workspace_bytes);
  };
  const auto run_kernel = [&] { return run_on(*turn, handle, stream); };
  const auto time_kernel = [&](const Dispatcher::Turn& which) {
    return trials.time_often(
        which, stream, [&] { return run_on(which, handle, stream); },
        [&](cuda::Stream on) { return run_on(which, nullptr, on); }, is_refusal);
  };
  int status = turn->is_trial() ? time_kernel(*turn) : run_kernel();
  // Every engine writes the whole result, so a call with little work runs a trial of each.
  for (int i = 1; i < most_trials && status == 0 && trials.may_go_on(*turn); ++i) {
    const auto other = dispatcher.next(asked.get());
    if (!other || !other->is_trial()) {
      break;
    }
    if (workspace_of(other->shared_kernel()) > given || is_refusal(time_kernel(*other))) {
      static_cast<void>(dispatcher.replace(asked.get(), *other, "the library refused it"));
    }
  }
  if (is_refusal(status) && !kernel_of(turn->kernel()).is_librarys) {
    turn = dispatcher.replace(asked.get(), *turn, "the library refused it when it ran");
    status = turn ? run_kernel() : status;
  }
  if (turn && turn->is_final()) {
    if (auto made = dispatcher.decision(asked.get())) {
      settle(plan, *std::move(made));
    }
  }
  if (turn && is_captured) {
    const std::lock_guard lock(plan.mutex_);
    plan.captured_.push_back(turn->shared_kernel());
  }
  return status;
}

int CudnnDispatcher::State::run_first(const CudnnPlan& plan, cudnn::Handle handle,
                                      cuda::Stream stream, const cudnn::ConvOperands& operands,
                                      std::size_t workspace_bytes) {
  const std::shared_ptr<const void> kernel = plan.kernel();
  const int status = execute(kernel_of(kernel.get()), handle, stream, operands, workspace_bytes);
  if (!trials.may_time(stream)) {
    const std::lock_guard lock(plan.mutex_);
    plan.captured_.push_back(kernel);
  }
  return status;
}

void CudnnDispatcher::State::open_trials(const CudnnPlan& plan) {
  const auto conv = problem_of(plan.call_.sizes);
  const std::shared_ptr<const void> first = plan.kernel();
  const AskedConvolution asked(plan.call_, *conv, plan.device_, compiles, first);
  const Status made = trials.budget().spend_on([&] { return adopt(plan, asked.get()); });
  if (!made) {
    settle(plan, {.source = plan.source(), .note = made.error().message, .kernel = first});
  }
}

std::shared_ptr<const void> CudnnPlan::kernel() const {
  const std::lock_guard lock(mutex_);
  return kernel_;
}

std::size_t CudnnPlan::workspace_bytes() const {
  const std::lock_guard lock(mutex_);
  return workspace_bytes_;
}

ChoiceSource CudnnPlan::source() const {
  const std::lock_guard lock(mutex_);
  return source_;
}

std::int32_t CudnnPlan::engine() const { return kernel_of(kernel().get()).plan.engine.index; }

bool CudnnPlan::is_deterministic() const {
  return kernel_of(kernel().get()).plan.engine.is_deterministic();
}

std::string CudnnPlan::text() const {
  const std::lock_guard lock(mutex_);
  return concat(to_string(source_), ": ", kernel_of(kernel_.get()).config_text,
                is_settled() || is_postponed_.load() ? "" : "; trials go on",
                note_.empty() ? "" : "; ", note_);
}

CudnnDispatcher::CudnnDispatcher() = default;
CudnnDispatcher::~CudnnDispatcher() = default;

Result<std::unique_ptr<CudnnDispatcher>> CudnnDispatcher::open(CudnnDispatchOptions options) {
  if (options.cudnn.empty()) {
    options.cudnn = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
  }
  if (options.models.empty()) {
    FORETUNE_TRY(options.models, shipped_models());
  }
  for (const Model& model : options.models) {
    if (model.problem_type != kConvProblem || model.config_schema.id() != cudnn_schema().id()) {
      return fail(ErrorCode::kMismatch, "the model ranks configs of ", model.config_schema.name,
                  " (family ", model.family, "), not of cudnn");
    }
  }
  FORETUNE_TRY(std::shared_ptr<const cudnn::Api> api, cudnn::Api::load_or_share(options.cudnn));
  FORETUNE_TRY(std::shared_ptr<const cuda::DriverApi> driver,
               cuda::DriverApi::load(options.driver));
  std::unique_ptr<CudnnDispatcher> dispatcher(new CudnnDispatcher());
  dispatcher->state_ = std::make_unique<State>(std::move(api), std::move(driver), options);
  State& state = *dispatcher->state_;
  for (const int device : dispatch_internal::devices_of(*state.driver)) {
    FORETUNE_TRY_STATUS(state.add_providers(device, options.models));
  }
  return dispatcher;
}

Result<std::shared_ptr<const CudnnPlan>> CudnnDispatcher::prepare(const CudnnCall& call) {
  return state_->find({call, state_->current_device()});
}

int CudnnDispatcher::run(const CudnnPlan& plan, cudnn::Handle handle, cuda::Stream stream,
                         const cudnn::ConvOperands& operands,
                         std::size_t workspace_bytes) noexcept {
  if (!is_aligned(operands)) {
    return cudnn::kBadParameter;
  }
  try {
    const void* const settled = plan.settled_.load(std::memory_order_acquire);
    return settled != nullptr
               ? state_->execute(kernel_of(settled), handle, stream, operands, workspace_bytes)
               : state_->run_unsettled(plan, handle, stream, operands, workspace_bytes);
  } catch (const std::exception&) {
    return cudnn::kInternalError;  // memory is short
  }
}

Dispatcher& CudnnDispatcher::dispatcher() {
  state_->trials.report_ended();
  return state_->dispatcher;
}

int CudnnDispatcher::convolve(const CudnnCall& call, cudnn::Handle handle,
                              const cudnn::ConvOperands& operands) noexcept {
  const auto status_of = [](const Error& error) {
    return error.code == ErrorCode::kInvalidArgument ? cudnn::kBadParameter
           : error.code == ErrorCode::kUnsupported   ? cudnn::kNotSupported
                                                     : cudnn::kInternalError;
  };
  if (handle == nullptr) {
    return cudnn::kBadParameter;
  }
  try {
    const PlanKey key{call, state_->current_device()};
    const auto plan = state_->find(key);
    if (!plan) {
      return status_of(plan.error());
    }
    const int status = run(**plan, handle, nullptr, operands, call.workspace_bytes);
    if (!is_refusal(status) || status == cudnn::kBadParameter || !(*plan)->is_settled() ||
        kernel_of((*plan)->kernel().get()).is_librarys) {
      return status;
    }
    const auto other = state_->choose_another(key);
    return other ? run(**other, handle, nullptr, operands, call.workspace_bytes) : status;
  } catch (const std::exception&) {
    return cudnn::kInternalError;
  }
}

}  // namespace foretune
