#include "foretune/dispatch/cublaslt_provider.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/cuda/device_facts.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::dispatch_internal {
namespace {

using cublaslt::Algorithm;
using cublaslt::Api;
using cublaslt::Capability;
using cublaslt::ComputeType;
using cublaslt::CudaType;
using cublaslt::HeuristicResult;
using cublaslt::PreferenceAttribute;

constexpr std::string_view kVersionPrefix = "cublaslt-";
// Adds parts of k to D one after another, which rounds each sum to D's type. This is not the
// requested product, so it is used only where the library's heuristic itself prefers it.
constexpr std::int32_t kInPlace = 1;
constexpr std::uint32_t kDefaultAlignment = 256;

class OwnedPreference {
 public:
  explicit OwnedPreference(const Api& api) : api_(api) {
    status_ = api.preference_create(&preference_);
  }
  ~OwnedPreference() {
    if (preference_ != nullptr) {
      api_.preference_destroy(preference_);
    }
  }
  OwnedPreference(const OwnedPreference&) = delete;
  OwnedPreference& operator=(const OwnedPreference&) = delete;

  template <class T>
  void set(PreferenceAttribute attribute, T value) {
    if (status_ == cublaslt::kSuccess) {
      status_ = api_.preference_set(preference_, attribute, &value, sizeof(value));
    }
  }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] cublaslt::Preference get() const { return preference_; }

 private:
  const Api& api_;
  cublaslt::Preference preference_ = nullptr;
  int status_ = cublaslt::kSuccess;
};

// Tries configs for one call.
class CublasltMaker final : public KernelMaker {
 public:
  CublasltMaker(const Api& api, const CublasltDetails& details)
      : api_(api), call_(*details.call), key_(*details.key) {}

  Result<std::shared_ptr<const void>> make(const Config& config) override {
    FORETUNE_TRY(const CublasltConfig checked, CublasltConfig::from(config));
    if (checked.reduction == kInPlace) {
      return fail(ErrorCode::kUnsupported, "parts of k would be summed in place");
    }
    FORETUNE_TRY(const Algorithm algorithm,
                 checked.heuristic > 0 ? ranked(checked.heuristic) : explicit_config(checked));
    return kernel({.algorithm = algorithm, .rank = checked.heuristic});
  }

  // Returns the answers of the heuristic; last, the library without an algorithm.
  std::vector<Fallback> fallbacks(std::size_t /*wanted*/) override {
    ask();
    std::vector<Fallback> all;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (!is_in_place(answers_[i])) {
        all.push_back({.config = cublaslt::words_of(api_, answers_[i]).to_config(),
                       .kernel = kernel({.algorithm = answers_[i],
                                         .rank = static_cast<std::int32_t>(i) + 1,
                                         .is_librarys = true}),
                       .source = ChoiceSource::kHeuristic});
      }
    }
    all.push_back({.config = {},
                   .kernel = kernel({.is_librarys = true}),
                   .source = ChoiceSource::kHeuristic});
    return all;
  }

  // The model's score of the heuristic's first, as a rank, is an average. So the explicit config
  // behind it for this call is scored instead.
  std::optional<Baseline> baseline() override {
    ask();
    return answers_.empty()
               ? std::nullopt
               : std::optional(
                     Baseline{.config = CublasltConfig::rank(1).to_config(),
                              .scored = cublaslt::words_of(api_, answers_.front()).to_config()});
  }

  [[nodiscard]] bool may_be_kept() const override {
    return status_ == cublaslt::kSuccess || status_ == cublaslt::kNotSupported;
  }

 private:
  static std::shared_ptr<const void> kernel(const CublasltKernel& made) {
    return std::make_shared<const CublasltKernel>(made);
  }

  Result<Algorithm> ranked(std::int32_t rank) {
    ask();
    const auto place = static_cast<std::size_t>(rank);
    if (place > answers_.size()) {
      return fail(ErrorCode::kUnsupported, "the heuristic returns ", answers_.size(),
                  " algorithms");
    }
    if (is_in_place(answers_[place - 1])) {
      return fail(ErrorCode::kUnsupported, "parts of k would be summed in place");
    }
    return answers_[place - 1];
  }

  Result<Algorithm> explicit_config(const CublasltConfig& config) {
    const auto type = [](std::int32_t number) { return static_cast<CudaType>(number); };
    Algorithm algorithm;
    FORETUNE_TRY_STATUS(api_.check(
        api_.algorithm_init(call_.handle, static_cast<ComputeType>(key_.compute), type(key_.scale),
                            type(key_.a.type), type(key_.b.type), type(key_.c.type),
                            type(key_.d.type), config.algorithm, &algorithm),
        "cublasLtMatmulAlgoInit"));
    FORETUNE_TRY_STATUS(cublaslt::set_words(api_, algorithm, config));
    HeuristicResult result;
    FORETUNE_TRY_STATUS(api_.check(
        api_.algorithm_check(call_.handle, call_.descriptor, call_.a_layout, call_.b_layout,
                             call_.c_layout, call_.d_layout, &algorithm, &result),
        "cublasLtMatmulAlgoCheck"));
    if (result.workspace_bytes > key_.workspace_bytes) {
      return fail(ErrorCode::kUnsupported, "it needs ", result.workspace_bytes,
                  " bytes of workspace, and ", key_.workspace_bytes, " may be used");
    }
    FORETUNE_TRY_STATUS(check_alignment(algorithm));
    return algorithm;
  }

  // Checks the alignment, because the library's own check does not get the pointers.
  [[nodiscard]] Status check_alignment(const Algorithm& algorithm) const {
    for (const Capability which : {Capability::kMinAlignmentA, Capability::kMinAlignmentB,
                                   Capability::kMinAlignmentC, Capability::kMinAlignmentD}) {
      std::uint32_t bytes = 0;
      std::size_t written = 0;
      if (api_.capability_get(&algorithm, which, &bytes, sizeof(bytes), &written) ==
              cublaslt::kSuccess &&
          bytes > alignment_bytes()) {
        return fail(ErrorCode::kUnsupported, "it needs operands at multiples of ", bytes, " bytes");
      }
    }
    return {};
  }

  [[nodiscard]] std::uint32_t alignment_bytes() const {
    return std::uint32_t{1} << static_cast<unsigned>(key_.alignment);
  }

  [[nodiscard]] bool is_in_place(const Algorithm& algorithm) const {
    return cublaslt::words_of(api_, algorithm).reduction == kInPlace;
  }

  // Calls the heuristic, once.
  void ask() {
    if (std::exchange(is_asked_, true)) {
      return;
    }
    OwnedPreference preference(api_);
    preference.set(PreferenceAttribute::kMaxWorkspaceBytes, key_.workspace_bytes);
    if (alignment_bytes() < kDefaultAlignment) {
      for (const PreferenceAttribute which :
           {PreferenceAttribute::kMinAlignmentA, PreferenceAttribute::kMinAlignmentB,
            PreferenceAttribute::kMinAlignmentC, PreferenceAttribute::kMinAlignmentD}) {
        preference.set(which, alignment_bytes());
      }
    }
    status_ = preference.status();
    std::array<HeuristicResult, kCublasltHeuristicRanks> results;
    int count = 0;
    if (status_ == cublaslt::kSuccess) {
      status_ = api_.algorithm_heuristic(
          call_.handle, call_.descriptor, call_.a_layout, call_.b_layout, call_.c_layout,
          call_.d_layout, preference.get(), kCublasltHeuristicRanks, results.data(), &count);
    }
    if (status_ != cublaslt::kSuccess) {
      return;
    }
    const auto returned =
        static_cast<std::size_t>(std::clamp(count, 0, std::int32_t{kCublasltHeuristicRanks}));
    for (const HeuristicResult& result : std::span(results).first(returned)) {
      if (result.status == cublaslt::kSuccess) {
        answers_.push_back(result.algorithm);
      }
    }
  }

  const Api& api_;
  const MatmulCall& call_;
  const CallKey& key_;
  bool is_asked_ = false;
  int status_ = cublaslt::kSuccess;
  std::vector<Algorithm> answers_;
};

const CublasltDetails& details_of(const DispatchCall& call) {
  return *static_cast<const CublasltDetails*>(call.details);
}

}  // namespace

Result<std::shared_ptr<CublasltProvider>> CublasltProvider::create(std::shared_ptr<const Api> api,
                                                                   const cuda::DriverApi& driver,
                                                                   std::int32_t device) {
  std::shared_ptr<CublasltProvider> provider(new CublasltProvider());
  const std::size_t version = api->get_version();
  GpuPlace& place = provider->place_;
  place = {.library = "cuBLASLt", .prefix = kVersionPrefix, .version = library_version(version)};
  provider->api_ = std::move(api);
  provider->device_ = device;
  FamilyInfo& info = provider->info_;
  FORETUNE_TRY(info, cublaslt_info());
  if (device != kNoDevice) {
    FORETUNE_TRY(info.fingerprint, cuda::read_device_facts(driver, device));
    info.fingerprint.isa += concat(" ", kVersionPrefix, place.version);
    place.isa = info.fingerprint.isa;
  }
  return provider;
}

std::optional<std::size_t> CublasltProvider::choose_model(const std::vector<Model>& models) {
  no_model_.clear();
  return model_for(place_, models, no_model_);
}

Support CublasltProvider::supports(const DispatchCall& call) const {
  return device_ == kNoDevice || details_of(call).key->device == device_
             ? Support::yes()
             : Support::no("the call is on another device");
}

Support CublasltProvider::follows_model(const DispatchCall& call) const {
  const CublasltDetails& details = details_of(call);
  if (details.unknown != nullptr) {
    return Support::no(*details.unknown);
  }
  if (details.key->alignment < kAlignedForKernels) {
    return Support::no("an operand is not aligned to 16 bytes");
  }
  return no_model_.empty() ? Support::yes() : Support::no(no_model_);
}

std::unique_ptr<KernelMaker> CublasltProvider::maker(const DispatchCall& call) const {
  return std::make_unique<CublasltMaker>(*api_, details_of(call));
}

}  // namespace foretune::dispatch_internal
