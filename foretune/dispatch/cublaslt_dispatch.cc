#include "foretune/dispatch/cublaslt_dispatch.h"

#include <exception>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/dispatch/cublaslt_provider.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/dispatch/internal/gpu_trials.h"
#include "foretune/dispatch/internal/settled_table.h"

namespace foretune {
namespace {

using dispatch_internal::CallKey;
using dispatch_internal::CublasltDetails;
using dispatch_internal::CublasltKernel;
using dispatch_internal::CublasltProvider;

using KernelTable = dispatch_internal::SettledTable<CallKey, CublasltKernel>;

// A call with all that its DispatchCall points to.
class AskedCall {
 public:
  AskedCall(const MatmulCall& call, const CallKey& key) : words_(key.words()) {
    if (const Result<GemmProblem> known = dispatch_internal::problem_of(key)) {
      problem_ = known->to_problem();
    } else {
      unknown_ = known.error().message;
    }
    details_ = {.call = &call, .key = &key, .unknown = problem_ ? nullptr : &unknown_};
    asked_.problem = problem_ ? &*problem_ : nullptr;
    asked_.variant = words_;
    asked_.details = &details_;
  }
  AskedCall(const AskedCall&) = delete;
  AskedCall& operator=(const AskedCall&) = delete;
  [[nodiscard]] const DispatchCall& get() const { return asked_; }

 private:
  CallKey::Words words_;
  std::optional<Problem> problem_;
  std::string unknown_;
  CublasltDetails details_;
  DispatchCall asked_;
};

Result<std::vector<Model>> models_of(std::optional<Model> given) {
  std::vector<Model> models;
  if (given) {
    models.push_back(*std::move(given));
    return models;
  }
  for (const DefaultCublasltModel& shipped : default_cublaslt_models()) {
    FORETUNE_TRY(Model model, parse_model(shipped.bytes));
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace

struct CublasltDispatcher::State {
  State(std::shared_ptr<const cublaslt::Api> library, std::shared_ptr<const cuda::DriverApi> loaded,
        const DispatchOptions& options)
      : api(std::move(library)),
        driver(std::move(loaded)),
        measures(options.measure_top > 1),
        dispatcher(options),
        trials(driver, dispatcher),
        table(options.max_problems) {}

  Status add_provider(std::int32_t device, const std::vector<Model>& models);
  int run(const MatmulCall& call, const cublaslt::Algorithm* algorithm) const noexcept {
    return api->matmul(call.handle, call.descriptor, call.alpha, call.a, call.a_layout, call.b,
                       call.b_layout, call.beta, call.c, call.c_layout, call.d, call.d_layout,
                       algorithm, call.workspace, call.workspace_bytes, call.stream);
  }
  int run(const MatmulCall& call, const CublasltKernel& kernel) const noexcept {
    return run(call, kernel.algorithm ? &*kernel.algorithm : nullptr);
  }
  int run_chosen(const MatmulCall& call, const CallKey& key);
  int run_new(const MatmulCall& call, const CallKey& key, std::uint64_t hash);
  // Runs a call whose kernel the library refused, by another one. Nothing has been enqueued by the
  // refused call. `entry` is its entry in the table, with the kernel `old`, or null.
  int run_again(const MatmulCall& call, const CallKey& key, const Dispatcher::Turn& refused,
                KernelTable::Entry* entry, const CublasltKernel* old);
  [[nodiscard]] std::int32_t current_device() const {
    int device = CublasltProvider::kNoDevice;
    return driver->context_device(&device) == cuda::kDriverSuccess ? device
                                                                   : CublasltProvider::kNoDevice;
  }

  std::shared_ptr<const cublaslt::Api> api;
  std::shared_ptr<const cuda::DriverApi> driver;
  bool measures;
  Dispatcher dispatcher;
  dispatch_internal::GpuTrials trials;
  KernelTable table;
};

namespace {

std::shared_ptr<const CublasltKernel> kernel_of(const Dispatcher::Turn& turn) {
  return std::static_pointer_cast<const CublasltKernel>(turn.shared_kernel());
}

}  // namespace

Status CublasltDispatcher::State::add_provider(std::int32_t device,
                                               const std::vector<Model>& models) {
  FORETUNE_TRY(std::shared_ptr<CublasltProvider> provider,
               CublasltProvider::create(api, *driver, device));
  const std::optional<std::size_t> chosen = provider->choose_model(models);
  return dispatcher.add(std::move(provider),
                        chosen ? std::optional(models[*chosen]) : std::nullopt);
}

int CublasltDispatcher::State::run_again(const MatmulCall& call, const CallKey& key,
                                         const Dispatcher::Turn& refused, KernelTable::Entry* entry,
                                         const CublasltKernel* old) {
  const AskedCall asked(call, key);
  const auto turn = dispatcher.replace(asked.get(), refused,
                                       "the library refused the model's choice when it ran");
  if (!turn) {
    return run(call, nullptr);
  }
  if (entry != nullptr && turn->is_final()) {
    table.replace(*entry, old, kernel_of(*turn));
  }
  return run(call, *kernel_of(*turn));
}

int CublasltDispatcher::State::run_new(const MatmulCall& call, const CallKey& key,
                                       std::uint64_t hash) {
  const AskedCall asked(call, key);
  if (measures) {
    trials.report_ended();
  }
  const auto turn = measures && trials.may_time(call.stream) ? dispatcher.next(asked.get())
                                                             : dispatcher.best(asked.get());
  if (!turn) {
    return run(call, nullptr);
  }
  const std::shared_ptr<const CublasltKernel> kernel = kernel_of(*turn);
  if (turn->is_final()) {
    table.insert(key, hash, kernel);
  }
  const auto run_kernel = [&] { return run(call, *kernel); };
  const auto is_refusal = [](int code) { return code == cublaslt::kNotSupported; };
  const int status =
      turn->is_trial() ? trials.time(*turn, call.stream, run_kernel, is_refusal) : run_kernel();
  return status == cublaslt::kNotSupported && (turn->is_trial() || !kernel->is_librarys)
             ? run_again(call, key, *turn, table.find(key, hash), kernel.get())
             : status;
}

int CublasltDispatcher::State::run_chosen(const MatmulCall& call, const CallKey& key) {
  const std::uint64_t hash = key.hash();
  KernelTable::Entry* const entry = table.find(key, hash);
  if (entry == nullptr) {
    return table.is_full() ? run(call, nullptr) : run_new(call, key, hash);
  }
  const CublasltKernel* const kernel = entry->value.load(std::memory_order_acquire);
  const int status = run(call, *kernel);
  if (status != cublaslt::kNotSupported || kernel->is_librarys) {
    return status;
  }
  const AskedCall asked(call, key);
  const auto turn = dispatcher.best(asked.get());
  return turn ? run_again(call, key, *turn, entry, kernel) : status;
}

CublasltDispatcher::CublasltDispatcher() = default;
CublasltDispatcher::~CublasltDispatcher() = default;

Result<std::unique_ptr<CublasltDispatcher>> CublasltDispatcher::open(
    CublasltDispatchOptions options) {
  if (options.cublaslt.empty()) {
    options.cublaslt = {"libcublasLt.so.13", "libcublasLt.so.12",
                        "/usr/local/cuda/lib64/libcublasLt.so"};
  }
  FORETUNE_TRY(const std::vector<Model> models, models_of(std::move(options.model)));
  for (const Model& model : models) {
    if (model.problem_type != kGemmProblem || model.config_schema.id() != cublaslt_schema().id()) {
      return fail(ErrorCode::kMismatch, "the model ranks configs of ", model.config_schema.name,
                  " (family ", model.family, "), not of cublaslt");
    }
  }
  FORETUNE_TRY(std::shared_ptr<const cublaslt::Api> api,
               cublaslt::Api::load_or_share(options.cublaslt));
  FORETUNE_TRY(std::shared_ptr<const cuda::DriverApi> driver,
               cuda::DriverApi::load(options.driver));
  std::unique_ptr<CublasltDispatcher> dispatcher(new CublasltDispatcher());
  dispatcher->state_ = std::make_unique<State>(std::move(api), std::move(driver), options.dispatch);
  State& state = *dispatcher->state_;
  for (const int device : dispatch_internal::devices_of(*state.driver)) {
    // The heuristic serves a device that does not tell its facts.
    static_cast<void>(state.add_provider(device, models));
  }
  FORETUNE_TRY_STATUS(state.add_provider(CublasltProvider::kNoDevice, models));
  return dispatcher;
}

Dispatcher& CublasltDispatcher::dispatcher() {
  state_->trials.report_ended();
  return state_->dispatcher;
}

int CublasltDispatcher::matmul(const MatmulCall& call) noexcept {
  State& state = *state_;
  if (!call.has_descriptors() || call.alpha == nullptr || call.beta == nullptr) {
    return cublaslt::kInvalidValue;
  }
  if (call.algorithm != nullptr) {
    return state.run(call, call.algorithm);
  }
  CallKey key;
  if (dispatch_internal::read_descriptors(*state.api, call, key) != cublaslt::kSuccess) {
    return state.run(call, nullptr);  // which says what is wrong with them
  }
  key.workspace_bytes = dispatch_internal::usable_workspace(call);
  key.alignment = dispatch_internal::alignment_of(call);
  key.device = state.current_device();
  try {
    return state.run_chosen(call, key);
  } catch (const std::exception&) {
    // Memory is short. Only choosing allocates, so nothing has run.
    return state.run(call, nullptr);
  }
}

Result<CublasltDecision> CublasltDispatcher::decision(const MatmulCall& call) {
  State& state = *state_;
  CallKey key;
  if (!call.has_descriptors()) {
    return fail(ErrorCode::kInvalidArgument, "a handle or a descriptor is missing");
  }
  if (const int status = dispatch_internal::read_descriptors(*state.api, call, key);
      status != cublaslt::kSuccess) {
    return fail(ErrorCode::kInvalidArgument, "the library does not know the descriptors (", status,
                ")");
  }
  key.workspace_bytes =
      call.workspace == nullptr ? call.workspace_bytes : dispatch_internal::usable_workspace(call);
  key.alignment = dispatch_internal::alignment_of(call);
  key.device = state.current_device();
  state.trials.report_ended();
  const AskedCall asked(call, key);
  FORETUNE_TRY(const Decision made, state.dispatcher.decision(asked.get()));
  const auto& kernel = *static_cast<const CublasltKernel*>(made.kernel.get());
  CublasltDecision decision{.source = made.source,
                            .rank = kernel.rank,
                            .reason = made.note,
                            .is_settled = made.is_settled,
                            .measured_ns = made.measured_ns};
  if (kernel.algorithm) {
    decision.config_text =
        to_text(cublaslt_schema(), cublaslt::words_of(*state.api, *kernel.algorithm).to_config());
  }
  return decision;
}

std::string CublasltDecision::text() const {
  return concat(to_string(source),
                rank > 0 && source != ChoiceSource::kHeuristic
                    ? concat(", rank ", rank, " of the heuristic")
                    : std::string(),
                ": ", config_text.empty() ? "left to the library" : config_text,
                reason.empty() ? "" : "; ", reason);
}

}  // namespace foretune
