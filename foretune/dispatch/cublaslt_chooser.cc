#include "foretune/dispatch/cublaslt_chooser.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/model/model_scorer.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

std::string_view to_string(CublasltSource source) {
  switch (source) {
    case CublasltSource::kModel:
      return "model";
    case CublasltSource::kFastModel:
      return "fast model";
    case CublasltSource::kHeuristic:
      return "heuristic";
  }
  return "unknown";
}

namespace dispatch_internal {
namespace {

using cublaslt::Algorithm;
using cublaslt::Api;
using cublaslt::Capability;
using cublaslt::ComputeType;
using cublaslt::CudaType;
using cublaslt::HeuristicResult;
using cublaslt::PreferenceAttribute;

constexpr std::string_view kDevicePrefix = "sm_";
constexpr std::string_view kVersionPrefix = "cublaslt-";
// Adds parts of k to D one after another, which rounds each sum to D's type. This is not the
// requested product, so it is used only where the library's heuristic itself prefers it.
constexpr std::int32_t kInPlace = 1;
constexpr std::uint32_t kDefaultAlignment = 256;

// Returns the word of a fingerprint's isa that begins with `prefix`, with or without the prefix.
std::string word_of(std::string_view isa, std::string_view prefix, bool with_prefix) {
  for (const std::string_view word : split_words(isa)) {
    if (word.starts_with(prefix)) {
      return std::string(with_prefix ? word : word.substr(prefix.size()));
    }
  }
  return {};
}

std::string device_text(const cuda::DriverApi& driver, std::int32_t device) {
  int major = 0;
  int minor = 0;
  if (device < 0 ||
      driver.device_attribute(&major, cuda::DeviceAttribute::kCapabilityMajor, device) !=
          cuda::kDriverSuccess ||
      driver.device_attribute(&minor, cuda::DeviceAttribute::kCapabilityMinor, device) !=
          cuda::kDriverSuccess) {
    return {};
  }
  return concat(kDevicePrefix, major, minor);
}

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

}  // namespace

// Tries configs for one call.
class CublasltChooser::Attempt {
 public:
  Attempt(const Api& api, const MatmulCall& call, const CallKey& key)
      : api_(api), call_(call), key_(key) {}

  // Returns the algorithm that the config names, if the library accepts it here. Errors:
  // kUnsupported with the reason.
  Result<Algorithm> algorithm(const CublasltConfig& config) {
    if (config.reduction == kInPlace) {
      return fail(ErrorCode::kUnsupported, "parts of k would be summed in place");
    }
    return config.heuristic > 0 ? ranked(config.heuristic) : explicit_config(config);
  }

  // Returns the heuristic's first as a plan.
  CublasltPlan first(std::string reason) {
    ask();
    CublasltPlan plan{.reason = std::move(reason)};
    for (std::size_t i = 0; i < answers_.size() && !plan.algorithm; ++i) {
      if (!is_in_place(answers_[i])) {
        plan.algorithm = answers_[i];
        plan.rank = static_cast<std::int32_t>(i) + 1;
      }
    }
    plan.may_be_kept = may_be_kept();
    return plan;
  }

  // Returns the explicit config of the heuristic's first for this call.
  std::optional<CublasltConfig> first_config() {
    ask();
    return answers_.empty() ? std::nullopt
                            : std::optional(cublaslt::words_of(api_, answers_.front()));
  }

  [[nodiscard]] bool may_be_kept() const {
    return status_ == cublaslt::kSuccess || status_ == cublaslt::kNotSupported;
  }

 private:
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

Result<std::unique_ptr<CublasltChooser>> CublasltChooser::create(
    std::shared_ptr<const Api> api, std::shared_ptr<const cuda::DriverApi> driver,
    std::vector<Model> models, const Options& options) {
  std::unique_ptr<CublasltChooser> chooser(new CublasltChooser());
  const std::size_t version = api->get_version();
  chooser->version_ = concat(version / 10000, ".", version % 10000 / 100);
  chooser->api_ = std::move(api);
  chooser->driver_ = std::move(driver);
  chooser->options_ = options;
  for (Model& model : models) {
    if (model.problem_type != kGemmProblem || model.config_schema.id() != cublaslt_schema().id()) {
      return fail(ErrorCode::kMismatch, "the model ranks configs of ", model.config_schema.name,
                  " (family ", model.family, "), not of cublaslt");
    }
    const std::string isa = model.fingerprint.isa;
    FORETUNE_TRY(std::unique_ptr<Selector> selector, Selector::create(std::move(model)));
    chooser->models_.push_back({.device = word_of(isa, kDevicePrefix, true),
                                .version = word_of(isa, kVersionPrefix, false),
                                .selector = std::move(selector)});
  }
  return chooser;
}

std::int32_t CublasltChooser::current_device() const {
  int device = -1;
  return driver_->context_device(&device) == cuda::kDriverSuccess ? device : -1;
}

Result<const Selector*> CublasltChooser::selector_for(std::int32_t device) const {
  const std::string here = device_text(*driver_, device);
  for (const KnownModel& model : models_) {
    // Another version has other kernels under the same numbers.
    if (model.device == here && model.version == version_ && !here.empty()) {
      return model.selector.get();
    }
  }
  const std::string place =
      concat(here.empty() ? "an unknown device" : here, " with cuBLASLt ", version_);
  if (models_.empty()) {
    return fail(ErrorCode::kUnsupported, "there is no model for ", place);
  }
  const KnownModel& model = models_.front();
  return fail(ErrorCode::kUnsupported, "the model is for ",
              model.device.empty() ? "an unknown device" : model.device, " with cuBLASLt ",
              model.version.empty() ? "of unknown version" : model.version, ", and this is ",
              place);
}

CublasltPlan CublasltChooser::choose(const MatmulCall& call, const CallKey& key) const {
  const Result<GemmProblem> problem = problem_of(key);
  if (!problem) {
    return heuristic(call, key, problem.error().message);
  }
  if (key.alignment < kAlignedForKernels) {
    return heuristic(call, key, "an operand is not aligned to 16 bytes");
  }
  const Result<const Selector*> selector = selector_for(key.device);
  if (!selector) {
    return heuristic(call, key, selector.error().message);
  }
  Attempt attempt(*api_, call, key);
  CublasltPlan plan = by_model(**selector, problem->to_problem(), attempt);
  plan.may_be_kept = plan.may_be_kept && attempt.may_be_kept();
  return plan;
}

CublasltPlan CublasltChooser::heuristic(const MatmulCall& call, const CallKey& key,
                                        std::string reason) const {
  return Attempt(*api_, call, key).first(std::move(reason));
}

CublasltPlan CublasltChooser::by_model(const Selector& selector, const Problem& problem,
                                       Attempt& attempt) const {
  const auto config_of = [&](std::uint32_t candidate) {
    // This cannot fail: the schema was compared, and no space has numbers below 0.
    return CublasltConfig::from(selector.config(candidate)).value_or(CublasltConfig{});
  };
  if (options_.fast) {
    const FastChoice fast = selector.select_fast(problem);
    if (!fast.exact && fast.choice.picked()) {
      const CublasltConfig config = config_of(fast.choice.candidate);
      if (const auto algorithm = attempt.algorithm(config)) {
        return {.source = CublasltSource::kFastModel,
                .algorithm = *algorithm,
                .rank = config.heuristic};
      }
    }
  }
  Choice none{.reason = selector.coverage(problem)};
  std::vector<RankedCandidate> ranking;
  if (none.picked()) {
    ranking = selector.rank(problem);
    none.reason = AbstainReason::kNoLegalConfig;
  }
  if (ranking.empty()) {
    return attempt.first(selector.explain(problem, none));
  }
  std::optional<double> base;
  if (options_.margin > 0) {
    // The model's score of the heuristic's first, as a rank, is an average. So the explicit config
    // behind it for this call is scored instead.
    if (const std::optional<CublasltConfig> answer = attempt.first_config()) {
      if (const auto score = score_config(selector.model(), problem, answer->to_config())) {
        base = *score;
      }
    }
  }
  const std::size_t most = std::min(ranking.size(), kMaxCublasltCandidates);
  std::string reason;
  for (std::size_t i = 0; i < most; ++i) {
    const CublasltConfig config = config_of(ranking[i].candidate);
    if (base && config.heuristic != 1 && *base - ranking[i].score < options_.margin) {
      return attempt.first(concat("the best that the library accepts is predicted to gain less ",
                                  "than the margin of ", options_.margin));
    }
    const auto algorithm = attempt.algorithm(config);
    if (algorithm) {
      return {.source = CublasltSource::kModel,
              .algorithm = *algorithm,
              .rank = config.heuristic,
              .reason = reason};
    }
    if (i == 0) {
      reason = concat("the model's first is refused: ", algorithm.error().message);
    }
  }
  return attempt.first(concat("none of the model's best ", most, " is accepted; ", reason));
}

}  // namespace dispatch_internal
}  // namespace foretune
