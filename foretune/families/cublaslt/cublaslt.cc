#include "foretune/families/cublaslt/cublaslt.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/cublaslt/matmul_data.h"
#include "foretune/cublaslt/product_family.h"
#include "foretune/cublaslt/product_run.h"
#include "foretune/cublaslt/session.h"
#include "foretune/cuda/measuring/device_session.h"
#include "foretune/families/cublaslt/portfolio.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/listed_space.h"

namespace foretune {
namespace {

using cublaslt::MatmulData;
using cublaslt::Plan;
using cublaslt::ProductFamily;
using cublaslt::Session;
using cublaslt::SessionOptions;

constexpr std::string_view kFileOption = "configs";
// Sizes must be multiples of this in f8 kernels.
constexpr std::int64_t kF8Multiple = 16;

class MatmulArtifact final : public Artifact {
 public:
  MatmulArtifact(std::shared_ptr<Session> session, const CublasltConfig& config)
      : session_(std::move(session)), config_(config) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    FORETUNE_TRY(MatmulData* const product, MatmulData::of(problem, data));
    return cublaslt::make_library_run(session_, *product, config_);
  }

 private:
  std::shared_ptr<Session> session_;
  CublasltConfig config_;
};

class Cublaslt final : public ProductFamily<Session, CublasltFamily> {
 public:
  Cublaslt(FamilyInfo info, SessionOptions options, std::vector<Config> portfolio)
      : ProductFamily(std::move(info)),
        options_(std::move(options)),
        portfolio_(std::move(portfolio)) {}

  Support supports(const Problem& problem) const override {
    const Result<GemmProblem> gemm = GemmProblem::from(problem);
    if (!gemm) {
      return Support::no(gemm.error().message);
    }
    if (problem.has_payload()) {
      return Support::no("cublaslt multiplies random matrices, not weights from a file");
    }
    if (const auto types = cublaslt::types_of(gemm->dtype()); !types) {
      return Support::no(types.error().message);
    }
    if (gemm->has_constant_weights()) {
      return Support::no("cuBLASLt takes B as it is: weights=constant changes nothing here");
    }
    if (gemm->dtype() == DataType::kF8e4m3) {
      if (gemm->layout() != GemmLayout::kRcr) {
        return Support::no("f8e4m3 products need A by rows and B by columns (rcr)");
      }
      if (gemm->m() % kF8Multiple != 0 || gemm->n() % kF8Multiple != 0 ||
          gemm->k() % kF8Multiple != 0) {
        return Support::no("f8e4m3 products need sizes that are multiples of ", kF8Multiple);
      }
    }
    return cuda::fits_memory(gemm->bytes(), bytes_per_element(gemm->dtype()),
                             info().fingerprint.hardware.get(HardwareValue::kMemoryBytes));
  }

  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    std::vector<Config> legal;
    for (const Config& config : portfolio_) {
      if (info().space->is_legal(config.words.view(), problem.fields(),
                                 info().fingerprint.hardware)) {
        legal.push_back(config);
      }
    }
    return std::make_unique<ListedSpace>(info().config_schema, std::move(legal), info().space,
                                         problem, info().fingerprint.hardware, std::string());
  }

  // Returns the choice of cublasLtMatmul without an algorithm.
  std::vector<Config> default_configs(const Problem& problem) const override {
    return supports(problem) ? std::vector<Config>{CublasltConfig::rank(1).to_config()}
                             : std::vector<Config>{};
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& /*problem*/,
                                            const Config& config) const override {
    FORETUNE_TRY(const CublasltConfig checked, CublasltConfig::from(config));
    FORETUNE_TRY(std::shared_ptr<Session> session, this->session());
    return std::make_unique<MatmulArtifact>(std::move(session), checked);
  }

  Result<std::vector<CublasltConfig>> enumerate(
      const Problem& problem, const std::vector<std::int32_t>& splits) const override {
    FORETUNE_TRY(const std::unique_ptr<MatmulData> data, matmul_data(problem, 1));
    return data->matmul().enumerate(splits);
  }

  Result<std::vector<CublasltConfig>> heuristic(const Problem& problem) const override {
    FORETUNE_TRY(const std::unique_ptr<MatmulData> data, matmul_data(problem, 1));
    FORETUNE_TRY(const std::vector<Plan> plans, data->matmul().heuristic());
    std::vector<CublasltConfig> configs;
    for (const Plan& plan : plans) {
      configs.push_back(data->matmul().config_of(plan));
    }
    return configs;
  }

 private:
  Result<std::shared_ptr<Session>> open() const override { return Session::open(options_); }

  SessionOptions options_;
  std::vector<Config> portfolio_;
};

}  // namespace

Support cublaslt_available(const FamilyOptions& options) {
  return cuda::are_available(
      cuda::parse_options<SessionOptions>(options, kCublasltName, kFileOption));
}

Result<std::unique_ptr<CublasltFamily>> create_cublaslt(const FamilyOptions& options) {
  FORETUNE_TRY(SessionOptions parsed,
               cuda::parse_options<SessionOptions>(options, kCublasltName, kFileOption));
  FORETUNE_TRY(FamilyInfo info, cublaslt_info());
  info.fingerprint = options.fingerprint;
  info.metrics = {metric_info(kEnergyJ)};
  info.needs_worker = true;
  std::vector<Config> portfolio;
  if (parsed.file.empty()) {
    portfolio = cublaslt_portfolio(info.fingerprint.isa.substr(0, info.fingerprint.isa.find(' ')));
  } else {
    FORETUNE_TRY(const std::string text, read_text_file(parsed.file));
    auto configs = parse_cublaslt_configs(text);
    if (!configs) {
      return fail_because(configs.error(), parsed.file);
    }
    portfolio = *std::move(configs);
  }
  std::sort(portfolio.begin(), portfolio.end());
  portfolio.erase(std::unique(portfolio.begin(), portfolio.end()), portfolio.end());
  return std::make_unique<Cublaslt>(std::move(info), std::move(parsed), std::move(portfolio));
}

Result<std::unique_ptr<Family>> make_cublaslt(const FamilyOptions& options) {
  FORETUNE_TRY(std::unique_ptr<CublasltFamily> family, create_cublaslt(options));
  return family;
}

const FamilyEntry& cublaslt_family() {
  static const FamilyEntry entry{.name = std::string(kCublasltName),
                                 .description = std::string(kCublasltDescription),
                                 .available = cublaslt_available,
                                 .create = make_cublaslt,
                                 .on_device = true};
  return entry;
}

}  // namespace foretune
