#include "foretune/dispatch/cudnn_provider.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/cuda/device_facts.h"
#include "foretune/cudnn/cudnn_config.h"

namespace foretune::dispatch_internal {
namespace {

using cudnn::Convolution;

constexpr std::string_view kCudnnVersion = "cudnn-";
// The knob of kernels that make textures whenever they run, which no graph can capture.
constexpr std::int32_t kTextures = 3;
// Answers of a heuristic that have a rank in the family's space.
constexpr std::size_t kMostAnswers = 16;
// Kernels that are compiled for one decision, at up to a second each.
constexpr int kMostCompiled = 2;

// Tries configs for one call. Holds the provider's library as long as it lives.
class CudnnMaker final : public KernelMaker {
 public:
  CudnnMaker(PlanLibrary& library, const CudnnDetails& details)
      : turn_(library.take()),
        convolution_(create(turn_, details)),
        compiles_(details.options.compiles),
        librarys_(details.librarys) {
    if (!convolution_) {
      note(convolution_.error());
    }
  }

  Result<std::shared_ptr<const void>> make(const Config& config) override {
    FORETUNE_TRY(const CudnnConfig checked, CudnnConfig::from(config));
    return is_librarys_first(checked) ? kernel_without_us(checked) : kernel(checked, false);
  }

  Support allows(const Config& config) override {
    const auto words = CudnnConfig::from(config);
    return convolution_ && words && !is_librarys_first(*words) ? (*convolution_)->allows(*words)
                                                               : Support::yes();
  }

  // Returns the first answer of A that can run, or else of the library's list for all problems; for
  // trials, also the answers after it.
  std::vector<Fallback> fallbacks(std::size_t wanted) override {
    if (!convolution_) {
      return {};
    }
    std::vector<Fallback> all;
    for (const CudnnHeuristic heuristic : {CudnnHeuristic::kA, CudnnHeuristic::kFallback}) {
      if (all.size() >= wanted) {
        break;
      }
      const auto answers = (*convolution_)->answers(heuristic);
      const std::size_t count = answers ? answers->size() : 0;
      for (std::size_t i = 0; i < count; ++i) {
        const CudnnConfig config = CudnnConfig::ranked(heuristic, static_cast<std::int32_t>(i) + 1);
        Fallback fallback{.config = config.to_config(), .source = ChoiceSource::kHeuristic};
        if (all.empty()) {
          auto made = kernel_without_us(config);
          if (!made) {
            continue;
          }
          fallback.kernel = *std::move(made);
        }
        all.push_back(std::move(fallback));
      }
    }
    return all;
  }

  // The model's score of A's first, as a rank, is an average. So the explicit config behind it for
  // this call is scored instead.
  std::optional<Baseline> baseline() override {
    if (!convolution_) {
      return std::nullopt;
    }
    const auto answers = (*convolution_)->answers(CudnnHeuristic::kA);
    return !answers || answers->empty()
               ? std::nullopt
               : std::optional(
                     Baseline{.config = CudnnConfig::ranked(CudnnHeuristic::kA, 1).to_config(),
                              .scored = answers->front().to_config()});
  }

  std::vector<LibraryAnswer> answers() override {
    std::vector<LibraryAnswer> all;
    if (!convolution_) {
      return all;
    }
    for (const CudnnHeuristic heuristic : {CudnnHeuristic::kA, CudnnHeuristic::kB}) {
      const auto configs = (*convolution_)->answers(heuristic);
      const std::size_t count = configs ? std::min(configs->size(), kMostAnswers) : 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto rank = static_cast<std::int32_t>(i) + 1;
        all.push_back({.name = CudnnConfig::ranked(heuristic, rank).to_config(),
                       .config = (*configs)[i].to_config(),
                       .weight = answer_weight(heuristic)});
      }
    }
    return all;
  }

  [[nodiscard]] bool may_be_kept() const override { return may_be_kept_; }

 private:
  static Result<std::unique_ptr<Convolution>> create(const PlanLibrary::Turn& turn,
                                                     const CudnnDetails& details) {
    FORETUNE_TRY(std::shared_ptr<const cudnn::Library> library, turn.library);
    return Convolution::create(std::move(library), *details.problem, details.options);
  }

  void note(const Error& error) {
    may_be_kept_ = may_be_kept_ && error.code == ErrorCode::kUnsupported;
  }

  static bool is_librarys_first(const CudnnConfig& config) {
    return config.heuristic == CudnnHeuristic::kA && config.rank == 1;
  }

  // Makes what would run without us, even if it has to be compiled.
  Result<std::shared_ptr<const void>> kernel_without_us(const CudnnConfig& config) {
    if (librarys_ != nullptr && librarys_->asked == config) {
      count(*librarys_);
      return librarys_;
    }
    if (convolution_) {
      (*convolution_)->allow_compiling(true);
    }
    auto made = kernel(config, true);
    if (convolution_) {
      (*convolution_)->allow_compiling(compiles_ && compiled_ < kMostCompiled);
    }
    return made;
  }

  Result<std::shared_ptr<const void>> kernel(const CudnnConfig& config, bool is_librarys) {
    if (!convolution_) {
      return fail(convolution_.error().code, convolution_.error().message);
    }
    Convolution& convolution = **convolution_;
    Result<cudnn::Plan> plan = convolution.plan(config);
    if (!plan) {
      note(plan.error());
      return fail(plan.error().code, plan.error().message);
    }
    FORETUNE_TRY(const CudnnConfig words, plan->graph->config_of(*plan->config));
    if (words.knob(kTextures) > 0 && !is_librarys) {
      return fail(ErrorCode::kUnsupported, "it makes textures whenever it runs");
    }
    auto made = std::make_shared<CudnnKernel>();
    made->api = plan->graph->library().api();
    made->asked = config;
    made->config_text = concat(
        config.rank > 0 ? concat("rank ", config.rank, " of ", to_string(config.heuristic), ": ")
                        : std::string(),
        short_text(words));
    made->is_librarys = is_librarys;
    made->plan = *std::move(plan);
    count(*made);
    return made;
  }

  void count(const CudnnKernel& made) {
    compiled_ += made.plan.engine.compiles ? 1 : 0;
    if (compiled_ >= kMostCompiled && convolution_) {
      (*convolution_)->allow_compiling(false);
    }
  }

  PlanLibrary::Turn turn_;
  Result<std::unique_ptr<Convolution>> convolution_;
  bool compiles_;
  std::shared_ptr<const CudnnKernel> librarys_;  // may be null
  int compiled_ = 0;                             // kernels so far
  bool may_be_kept_ = true;
};

const CudnnDetails& cudnn_details_of(const DispatchCall& call) {
  return *static_cast<const CudnnDetails*>(call.details);
}

}  // namespace

std::string short_text(const CudnnConfig& config) {
  std::string text = concat("engine=", config.engine);
  config.for_each_knob([&](std::int32_t type, std::int32_t value) {
    const auto* const named = std::ranges::find(kCudnnKnobs, type, &CudnnKnob::type);
    text += named == kCudnnKnobs.end() ? concat(" knob_", type, "=", value)
                                       : concat(" ", named->name, "=", value);
  });
  return text;
}

double answer_weight(CudnnHeuristic heuristic) {
  constexpr double kOfB = 0.5;
  return heuristic == CudnnHeuristic::kA ? 1 : heuristic == CudnnHeuristic::kB ? kOfB : 0;
}

PlanLibrary::Turn PlanLibrary::take() {
  std::unique_lock lock(mutex_);
  const auto open = [&]() -> Result<std::shared_ptr<const cudnn::Library>> {
    if (library_ == nullptr) {
      FORETUNE_TRY(library_, cudnn::Library::open(api_, nullptr));
    }
    return library_;
  };
  auto library = open();
  return {std::move(lock), std::move(library)};
}

Result<std::shared_ptr<CudnnProvider>> CudnnProvider::create(const cudnn::Api& api,
                                                             const cuda::DriverApi& driver,
                                                             std::int32_t device,
                                                             ConvOperation operation,
                                                             std::shared_ptr<PlanLibrary> library) {
  std::shared_ptr<CudnnProvider> provider(new CudnnProvider());
  FamilyInfo& info = provider->info_;
  FORETUNE_TRY(info, cudnn_info());
  info.feature_table = "conv-cudnn-plain";
  FORETUNE_TRY(info.fingerprint, cuda::read_device_facts(driver, device));
  const std::string version = library_version(api.get_version());
  info.fingerprint.isa += concat(" ", kCudnnVersion, version);
  provider->place_ = {
      .library = "cuDNN", .prefix = kCudnnVersion, .version = version, .isa = info.fingerprint.isa};
  provider->device_ = device;
  provider->operation_ = operation;
  provider->library_ = std::move(library);
  return provider;
}

std::optional<std::size_t> CudnnProvider::choose_model(const std::vector<Model>& models) {
  no_model_.clear();
  return model_for(place_, models, no_model_);
}

Support CudnnProvider::supports(const DispatchCall& call) const {
  const CudnnDetails& details = cudnn_details_of(call);
  if (details.device != device_) {
    return Support::no("the call is on another device");
  }
  return details.problem->operation() == operation_ ? Support::yes()
                                                    : Support::no("it is of another direction");
}

Support CudnnProvider::follows_model(const DispatchCall& /*call*/) const {
  return no_model_.empty() ? Support::yes() : Support::no(no_model_);
}

std::unique_ptr<KernelMaker> CudnnProvider::maker(const DispatchCall& call) const {
  return std::make_unique<CudnnMaker>(*library_, cudnn_details_of(call));
}

}  // namespace foretune::dispatch_internal
