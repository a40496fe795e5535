#include "foretune/families/cudnn/cudnn.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/cuda/measuring/device_family.h"
#include "foretune/cuda/measuring/device_run.h"
#include "foretune/cuda/measuring/device_session.h"
#include "foretune/cudnn/conv_data.h"
#include "foretune/cudnn/convolution.h"
#include "foretune/cudnn/session.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/listed_space.h"

namespace foretune {
namespace {

using cudnn::ConvData;
using cudnn::Convolution;
using cudnn::Plan;
using cudnn::Session;
using cudnn::SessionOptions;

constexpr std::string_view kFileOption = "configs";

// The ranks that the space has without a file.
struct Ranks {
  CudnnHeuristic heuristic;
  std::int32_t count;
};
constexpr std::array<Ranks, 3> kRanks{
    {{CudnnHeuristic::kA, 16}, {CudnnHeuristic::kB, 16}, {CudnnHeuristic::kFallback, 4}}};

class ConvolutionArtifact final : public Artifact {
 public:
  ConvolutionArtifact(std::shared_ptr<Session> session, const CudnnConfig& config)
      : session_(std::move(session)), config_(config) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    FORETUNE_TRY(ConvData* const conv, ConvData::of(problem, data));
    FORETUNE_TRY(std::shared_ptr<Convolution> convolution, session_->convolution(problem));
    FORETUNE_TRY(const Plan plan, convolution->plan(config_));
    cuda::DeviceRun::Options options{
        .metrics = {{kWorkspaceBytes, static_cast<double>(plan.workspace_bytes), 0, 1},
                    {kDeterministic, plan.engine.is_deterministic() ? 1.0 : 0.0, 0, 1}},
        .checks_capture = true};
    return std::make_unique<cuda::DeviceRun>(
        session_, *conv,
        [convolution = std::move(convolution), plan, conv](std::size_t set,
                                                           cuda::Stream /*stream*/) {
          conv->expect_transformed(plan.engine.is_transformed());
          return convolution->run(plan, conv->operands(set));
        },
        std::move(options));
  }

 private:
  std::shared_ptr<Session> session_;
  CudnnConfig config_;
};

class Cudnn final : public cuda::DeviceFamily<Session, CudnnFamily> {
 public:
  Cudnn(FamilyInfo info, SessionOptions options, std::vector<Config> portfolio)
      : DeviceFamily(std::move(info)),
        options_(std::move(options)),
        portfolio_(std::move(portfolio)) {}

  Support supports(const Problem& problem) const override {
    const Result<ConvProblem> conv = ConvProblem::from(problem);
    if (!conv) {
      return Support::no(conv.error().message);
    }
    if (problem.has_payload()) {
      return Support::no("cudnn convolves random tensors, not weights from a file");
    }
    if (const auto type = cudnn::tensor_type(conv->dtype()); !type) {
      return Support::no(type.error().message);
    }
    if (conv->has_constant_weights()) {
      return Support::no("cuDNN takes the weights as they are: weights=constant changes nothing");
    }
    if (conv->skips()) {
      return Support::no("cuDNN leaves out no rows, columns or points of filters");
    }
    if (Support possible = cudnn::has_reference(*conv); !possible) {
      return possible;
    }
    return cuda::fits_memory(conv->bytes(), bytes_per_element(conv->dtype()),
                             info().fingerprint.hardware.get(HardwareValue::kMemoryBytes));
  }

  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    return std::make_unique<ListedSpace>(info().config_schema, portfolio_, info().space, problem,
                                         info().fingerprint.hardware, std::string());
  }

  // Returns the choice of programs that ask the library once.
  std::vector<Config> default_configs(const Problem& problem) const override {
    return supports(problem)
               ? std::vector<Config>{CudnnConfig::ranked(CudnnHeuristic::kA, 1).to_config()}
               : std::vector<Config>{};
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    FORETUNE_TRY(const std::shared_ptr<Session> session, supported_session(problem));
    FORETUNE_TRY(std::unique_ptr<ConvData> data, session->make_data(problem, seed));
    return data;
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& /*problem*/,
                                            const Config& config) const override {
    FORETUNE_TRY(const CudnnConfig checked, CudnnConfig::from(config));
    FORETUNE_TRY(std::shared_ptr<Session> session, this->session());
    return std::make_unique<ConvolutionArtifact>(std::move(session), checked);
  }

  Result<cudnn::Listed> enumerate(const Problem& problem, const cudnn::Enumeration& options,
                                  std::size_t threads) const override {
    FORETUNE_TRY(const std::shared_ptr<Session> session, supported_session(problem));
    FORETUNE_TRY(const auto convolution, session->convolution(problem));
    FORETUNE_TRY(const auto libraries, session->libraries(threads));
    return cudnn::enumerate(*convolution, libraries, options,
                            [&device = *session->device] { device.make_current(); });
  }

  Result<std::vector<CudnnConfig>> answers(const Problem& problem,
                                           CudnnHeuristic heuristic) const override {
    FORETUNE_TRY(const std::shared_ptr<Session> session, supported_session(problem));
    FORETUNE_TRY(const auto convolution, session->convolution(problem));
    return convolution->answers(heuristic);
  }

  Result<std::vector<CudnnConfig>> build(const Problem& problem,
                                         std::span<const CudnnConfig> configs, std::size_t threads,
                                         double seconds) const override {
    FORETUNE_TRY(const std::shared_ptr<Session> session, supported_session(problem));
    FORETUNE_TRY(const auto convolution, session->convolution(problem));
    FORETUNE_TRY(const auto libraries, session->libraries(threads));
    return convolution->build_all(configs, libraries, seconds,
                                  [&device = *session->device] { device.make_current(); });
  }

 private:
  Result<std::shared_ptr<Session>> open() const override { return Session::open(options_); }

  Result<std::shared_ptr<Session>> supported_session(const Problem& problem) const {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    return session();
  }

  SessionOptions options_;
  std::vector<Config> portfolio_;
};

}  // namespace

Support cudnn_available(const FamilyOptions& options) {
  return cuda::are_available(cuda::parse_options<SessionOptions>(options, kCudnnName, kFileOption));
}

Result<std::unique_ptr<CudnnFamily>> create_cudnn(const FamilyOptions& options) {
  FORETUNE_TRY(SessionOptions parsed,
               cuda::parse_options<SessionOptions>(options, kCudnnName, kFileOption));
  FORETUNE_TRY(FamilyInfo info, cudnn_info());
  info.fingerprint = options.fingerprint;
  info.feature_table = "conv-cudnn";
  info.metrics = {metric_info(kWorkspaceBytes),
                  {.name = std::string(kDeterministic), .direction = Direction::kMaximise},
                  metric_info(kEnergyJ)};
  info.needs_worker = true;
  std::vector<Config> portfolio;
  for (const Ranks& ranks : kRanks) {
    for (std::int32_t rank = 1; rank <= ranks.count; ++rank) {
      portfolio.push_back(CudnnConfig::ranked(ranks.heuristic, rank).to_config());
    }
  }
  if (!parsed.file.empty()) {
    FORETUNE_TRY(const std::string text, read_text_file(parsed.file));
    const auto configs = parse_cudnn_configs(text);
    if (!configs) {
      return fail_because(configs.error(), parsed.file);
    }
    portfolio.insert(portfolio.end(), configs->begin(), configs->end());
  }
  std::sort(portfolio.begin(), portfolio.end());
  portfolio.erase(std::unique(portfolio.begin(), portfolio.end()), portfolio.end());
  return std::make_unique<Cudnn>(std::move(info), std::move(parsed), std::move(portfolio));
}

Result<std::unique_ptr<Family>> make_cudnn(const FamilyOptions& options) {
  FORETUNE_TRY(std::unique_ptr<CudnnFamily> family, create_cudnn(options));
  return family;
}

const FamilyEntry& cudnn_family() {
  static const FamilyEntry entry{.name = std::string(kCudnnName),
                                 .description = std::string(kCudnnDescription),
                                 .available = cudnn_available,
                                 .create = make_cudnn,
                                 .on_device = true};
  return entry;
}

}  // namespace foretune
