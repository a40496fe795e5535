#include "foretune/dispatch/cublaslt_dispatch.h"

#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/dispatch/default_models.h"

namespace foretune {
namespace {

using dispatch_internal::CallKey;
using dispatch_internal::CublasltChooser;
using dispatch_internal::CublasltPlan;

// Plans by key. Readers follow pointers to what never changes or goes away.
class PlanTable {
 public:
  struct Entry {
    CallKey key;
    std::atomic<const CublasltPlan*> plan{nullptr};
    Entry* next = nullptr;
  };

  explicit PlanTable(std::size_t most) : most_(most), buckets_(kBuckets) {}

  [[nodiscard]] Entry* find(const CallKey& key, std::uint64_t hash) const noexcept {
    Entry* entry = buckets_[hash % kBuckets].load(std::memory_order_acquire);
    while (entry != nullptr && !(entry->key == key)) {
      entry = entry->next;
    }
    return entry;
  }

  // The first plan of a key stays. Nothing when the table is full.
  Entry* insert(const CallKey& key, std::uint64_t hash, const CublasltPlan& plan) {
    const std::lock_guard lock(mutex_);
    if (Entry* const known = find(key, hash)) {
      return known;
    }
    if (entries_.size() >= most_) {
      return nullptr;
    }
    const CublasltPlan* const kept = &plans_.emplace_back(plan);
    std::atomic<Entry*>& bucket = buckets_[hash % kBuckets];
    Entry& entry = entries_.emplace_back();
    entry.key = key;
    entry.plan.store(kept, std::memory_order_relaxed);
    entry.next = bucket.load(std::memory_order_relaxed);
    bucket.store(&entry, std::memory_order_release);
    return &entry;
  }

  [[nodiscard]] bool is_full() {
    const std::lock_guard lock(mutex_);
    return entries_.size() >= most_;
  }

  // Unless somebody else has replaced `old` already.
  void replace(Entry& entry, const CublasltPlan* old, const CublasltPlan& plan) {
    const std::lock_guard lock(mutex_);
    if (entry.plan.load(std::memory_order_relaxed) == old) {
      entry.plan.store(&plans_.emplace_back(plan), std::memory_order_release);
    }
  }

 private:
  static constexpr std::size_t kBuckets = std::size_t{1} << 14U;

  std::mutex mutex_;
  std::size_t most_;
  // Neither moves its elements.
  std::deque<Entry> entries_;
  std::deque<CublasltPlan> plans_;
  std::vector<std::atomic<Entry*>> buckets_;
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
  State(std::shared_ptr<const cublaslt::Api> library, std::unique_ptr<CublasltChooser> made,
        std::size_t most)
      : api(std::move(library)), chooser(std::move(made)), table(most) {}

  int run(const MatmulCall& call, const cublaslt::Algorithm* algorithm) const noexcept {
    return api->matmul(call.handle, call.descriptor, call.alpha, call.a, call.a_layout, call.b,
                       call.b_layout, call.beta, call.c, call.c_layout, call.d, call.d_layout,
                       algorithm, call.workspace, call.workspace_bytes, call.stream);
  }
  int run(const MatmulCall& call, const CublasltPlan& plan) const noexcept {
    return run(call, plan.algorithm ? &*plan.algorithm : nullptr);
  }
  int run_chosen(const MatmulCall& call, const CallKey& key);
  int run_again(const MatmulCall& call, PlanTable::Entry& entry, const CublasltPlan* refused);

  std::shared_ptr<const cublaslt::Api> api;
  std::unique_ptr<CublasltChooser> chooser;
  PlanTable table;
};

// Nothing has been enqueued by a call that was refused.
int CublasltDispatcher::State::run_again(const MatmulCall& call, PlanTable::Entry& entry,
                                         const CublasltPlan* refused) {
  const CublasltPlan other =
      chooser->heuristic(call, entry.key, "the library refused the model's choice when it ran");
  if (other.may_be_kept) {
    table.replace(entry, refused, other);
  }
  return run(call, other);
}

int CublasltDispatcher::State::run_chosen(const MatmulCall& call, const CallKey& key) {
  const std::uint64_t hash = key.hash();
  PlanTable::Entry* entry = table.find(key, hash);
  if (entry == nullptr) {
    if (table.is_full()) {
      return run(call, nullptr);
    }
    const CublasltPlan plan = chooser->choose(call, key);
    entry = plan.may_be_kept ? table.insert(key, hash, plan) : nullptr;
    if (entry == nullptr) {
      return run(call, plan);
    }
  }
  const CublasltPlan* const plan = entry->plan.load(std::memory_order_acquire);
  const int status = run(call, *plan);
  return status == cublaslt::kNotSupported && plan->source != CublasltSource::kHeuristic
             ? run_again(call, *entry, plan)
             : status;
}

CublasltDispatcher::CublasltDispatcher() = default;
CublasltDispatcher::~CublasltDispatcher() = default;

Result<std::unique_ptr<CublasltDispatcher>> CublasltDispatcher::open(
    CublasltDispatchOptions options) {
  if (options.cublaslt.empty()) {
    options.cublaslt = {"libcublasLt.so.13", "libcublasLt.so.12",
                        "/usr/local/cuda/lib64/libcublasLt.so"};
  }
  FORETUNE_TRY(std::vector<Model> models, models_of(std::move(options.model)));
  FORETUNE_TRY(std::shared_ptr<const cublaslt::Api> api,
               cublaslt::Api::load_or_share(options.cublaslt));
  FORETUNE_TRY(std::shared_ptr<const cuda::DriverApi> driver,
               cuda::DriverApi::load(options.driver));
  FORETUNE_TRY(std::unique_ptr<CublasltChooser> chooser,
               CublasltChooser::create(api, std::move(driver), std::move(models),
                                       {.margin = options.margin, .fast = options.fast}));
  std::unique_ptr<CublasltDispatcher> dispatcher(new CublasltDispatcher());
  dispatcher->state_ =
      std::make_unique<State>(std::move(api), std::move(chooser), options.max_problems);
  return dispatcher;
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
  key.device = state.chooser->current_device();
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
  key.device = state.chooser->current_device();
  const std::uint64_t hash = key.hash();
  const PlanTable::Entry* entry = state.table.find(key, hash);
  CublasltPlan plan;
  if (entry == nullptr) {
    plan = state.chooser->choose(call, key);
    entry = plan.may_be_kept ? state.table.insert(key, hash, plan) : nullptr;
  }
  if (entry != nullptr) {
    plan = *entry->plan.load(std::memory_order_acquire);
  }
  CublasltDecision decision{.source = plan.source, .rank = plan.rank, .reason = plan.reason};
  if (plan.algorithm) {
    decision.config_text =
        to_text(cublaslt_schema(), cublaslt::words_of(*state.api, *plan.algorithm).to_config());
  }
  return decision;
}

std::string CublasltDecision::text() const {
  return concat(to_string(source),
                rank > 0 && source != CublasltSource::kHeuristic
                    ? concat(", rank ", rank, " of the heuristic")
                    : std::string(),
                ": ", config_text.empty() ? "left to the library" : config_text,
                reason.empty() ? "" : "; ", reason);
}

}  // namespace foretune
