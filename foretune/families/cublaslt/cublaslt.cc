#include "foretune/families/cublaslt/cublaslt.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/families/cublaslt/cublaslt_api.h"
#include "foretune/families/cublaslt/matmul.h"
#include "foretune/families/cublaslt/matmul_data.h"
#include "foretune/families/cublaslt/portfolio.h"
#include "foretune/gpu/clock_monitor.h"
#include "foretune/gpu/device.h"
#include "foretune/gpu/stopwatch.h"
#include "foretune/problem/gemm.h"
#include "foretune/space/listed_space.h"

namespace foretune {
namespace {

using cublaslt::Library;
using cublaslt::MatmulData;
using cublaslt::Plan;

// Every GPU that a driver serves has this node.
constexpr std::string_view kDriverNode = "/dev/nvidiactl";
// Of an H100 in PyTorch it is half of this; Hopper's kernels profit from more.
constexpr std::int64_t kDefaultWorkspaceMb = 64;
// Sizes that f8 kernels take.
constexpr std::int64_t kF8Multiple = 16;

struct CublasltOptions {
  int device = 0;
  std::int64_t workspace_mb = kDefaultWorkspaceMb;
  std::string configs;
  std::string clock_log;
  gpu::Libraries libraries;
  std::vector<std::string> cublaslt{"libcublasLt.so.13", "libcublasLt.so.12",
                                    "/usr/local/cuda/lib64/libcublasLt.so"};
  bool system_libraries = true;

  static Result<CublasltOptions> parse(const FamilyOptions& options);
};

Result<std::int64_t> parse_number(std::string_view name, std::string_view value, std::int64_t low,
                                  std::int64_t high) {
  const auto number = parse_int(value);
  if (!number || *number < low || *number > high) {
    return fail(ErrorCode::kInvalidArgument, name, " is a number from ", low, " to ", high,
                ", not ", quoted(value));
  }
  return *number;
}

Result<CublasltOptions> CublasltOptions::parse(const FamilyOptions& options) {
  CublasltOptions parsed;
  for (const auto& [name, value] : options.parameters) {
    if (name == "device") {
      FORETUNE_TRY(const std::int64_t device, parse_number(name, value, 0, 1023));
      parsed.device = static_cast<int>(device);
    } else if (name == "workspace_mb") {
      FORETUNE_TRY(parsed.workspace_mb, parse_number(name, value, 0, 65536));
    } else if (name == "configs") {
      parsed.configs = value;
    } else if (name == "clock_log") {
      parsed.clock_log = value;
    } else if (name == "driver") {
      parsed.libraries.driver = value;
      parsed.system_libraries = false;
    } else if (name == "nvml") {
      parsed.libraries.nvml = value;
    } else if (name == "cublaslt") {
      parsed.cublaslt = {value};
    } else {
      return fail(ErrorCode::kInvalidArgument, "cublaslt has no option '", name,
                  "'; it has: device, workspace_mb, configs, clock_log, driver, nvml, cublaslt");
    }
  }
  return parsed;
}

// An open device with the library on it.
struct Session {
  std::shared_ptr<gpu::Device> device;
  std::shared_ptr<const Library> library;
  std::unique_ptr<gpu::ClockMonitor> monitor;  // none where NVML is missing
  Fingerprint fingerprint;

  static Result<std::shared_ptr<Session>> open(const CublasltOptions& options);
};

Result<std::shared_ptr<Session>> Session::open(const CublasltOptions& options) {
  auto session = std::make_shared<Session>();
  FORETUNE_TRY(session->device, gpu::Device::open(options.libraries, options.device));
  FORETUNE_TRY(std::shared_ptr<const cublaslt::Api> api, cublaslt::Api::load(options.cublaslt));
  const std::size_t version = api->get_version();
  FORETUNE_TRY(session->library, Library::open(std::move(api)));
  auto monitor = gpu::ClockMonitor::start(options.libraries.nvml, session->device->bus_id(),
                                          options.clock_log);
  if (monitor) {
    session->monitor = *std::move(monitor);
  } else if (!options.clock_log.empty()) {
    return fail_because(monitor.error(), "clock_log");
  }
  session->fingerprint = session->device->fingerprint();
  // Another version of the library has other kernels behind the same numbers.
  session->fingerprint.isa += concat(" cublaslt-", version / 10000, ".", version % 10000 / 100);
  return session;
}

class MatmulRun final : public Run, public DeviceClock {
 public:
  MatmulRun(std::shared_ptr<Session> session, const Plan& plan, MatmulData& data)
      : session_(std::move(session)), plan_(plan), data_(data), watch_(*session_->device) {}

  void run() override {
    gpu::Device::must(enqueue(0));
    session_->device->synchronize();
  }
  DeviceClock* device_clock() override { return this; }

  Result<double> first_run() override {
    return watch_.first_run([this](std::int64_t) { return enqueue(0); });
  }

  Status time(std::int64_t runs, std::int32_t windows, bool cold,
              std::vector<double>& windows_ns) override {
    gpu::Stopwatch::Prepare prepare;
    if (cold) {
      FORETUNE_TRY_STATUS(data_.make_sets(static_cast<std::size_t>(runs)));
      prepare = [this] { data_.flush(); };
      runs = std::min(runs, static_cast<std::int64_t>(data_.sets()));
    }
    FORETUNE_TRY_STATUS(watch_.record(
        {.runs = runs, .windows = windows},
        [this, cold](std::int64_t run) {
          return enqueue(cold ? static_cast<std::size_t>(run) : 0);
        },
        prepare));
    watch_.time(windows_ns);
    return {};
  }

 private:
  // What is not about the config has spoilt the context: every later call would fail, too.
  Status enqueue(std::size_t set) {
    const Status enqueued =
        data_.matmul().run(plan_, data_.operands(set), session_->device->stream());
    if (!enqueued && enqueued.error().code != ErrorCode::kUnsupported) {
      gpu::Device::must(enqueued);
    }
    return enqueued;
  }

  std::shared_ptr<Session> session_;
  Plan plan_;
  MatmulData& data_;
  gpu::Stopwatch watch_;
};

class MatmulArtifact final : public Artifact {
 public:
  MatmulArtifact(std::shared_ptr<Session> session, const CublasltConfig& config)
      : session_(std::move(session)), config_(config) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    auto* const matmul_data = dynamic_cast<MatmulData*>(&data);
    if (matmul_data == nullptr || matmul_data->problem().to_problem() != problem) {
      return fail(ErrorCode::kMismatch, "the data are not those of '", problem.text(), "'");
    }
    FORETUNE_TRY(const Plan plan, matmul_data->matmul().plan(config_));
    return std::make_unique<MatmulRun>(session_, plan, *matmul_data);
  }

 private:
  std::shared_ptr<Session> session_;
  CublasltConfig config_;
};

class Cublaslt final : public CublasltFamily {
 public:
  Cublaslt(FamilyInfo info, CublasltOptions options, std::vector<Config> portfolio)
      : info_(std::move(info)), options_(std::move(options)), portfolio_(std::move(portfolio)) {}

  const FamilyInfo& info() const override { return info_; }

  Support supports(const Problem& problem) const override {
    const Result<GemmProblem> gemm = GemmProblem::from(problem);
    if (!gemm) {
      return Support::no(gemm.error().message);
    }
    if (const auto types = cublaslt::types_of(gemm->dtype()); !types) {
      return Support::no(types.error().message);
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
    // The reference and its inputs are f32.
    const double wide = 4.0 * gemm->bytes() / bytes_per_element(gemm->dtype());
    const double memory = info_.fingerprint.hardware.get(HardwareValue::kMemoryBytes);
    if (memory > 0 && gemm->bytes() + wide > 0.8 * memory) {
      return Support::no("the operands and their reference take ",
                         fixed((gemm->bytes() + wide) / 1e9, 1), " GB of the ",
                         fixed(memory / 1e9, 1), " GB of memory");
    }
    return Support::yes();
  }

  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    std::vector<Config> legal;
    for (const Config& config : portfolio_) {
      if (info_.space->is_legal(config.words.view(), problem.fields(),
                                info_.fingerprint.hardware)) {
        legal.push_back(config);
      }
    }
    return std::make_unique<ListedSpace>(info_.config_schema, std::move(legal), info_.space,
                                         problem, info_.fingerprint.hardware, std::string());
  }

  // What cublasLtMatmul does when it is left to itself.
  std::vector<Config> default_configs(const Problem& problem) const override {
    return supports(problem) ? std::vector<Config>{CublasltConfig::rank(1).to_config()}
                             : std::vector<Config>{};
  }

  std::string artifact_key(const Problem& /*problem*/, const Config& config) const override {
    return to_text(info_.config_schema, config);
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& /*problem*/,
                                            const Config& config) const override {
    FORETUNE_TRY(const CublasltConfig checked, CublasltConfig::from(config));
    FORETUNE_TRY(std::shared_ptr<Session> session, this->session());
    return std::make_unique<MatmulArtifact>(std::move(session), checked);
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    FORETUNE_TRY(std::unique_ptr<MatmulData> data, matmul_data(problem, seed));
    return data;
  }

  Result<Fingerprint> read_device() const override {
    FORETUNE_TRY(const std::shared_ptr<Session> session, this->session());
    return session->fingerprint;
  }

  std::optional<DeviceConditions> conditions() const override {
    const std::lock_guard lock(mutex_);
    if (session_ == nullptr || session_->monitor == nullptr) {
      return DeviceConditions{};
    }
    return DeviceConditions{.is_throttled = session_->monitor->take().was_throttled};
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
  Result<std::shared_ptr<Session>> session() const {
    const std::lock_guard lock(mutex_);
    if (session_ == nullptr) {
      FORETUNE_TRY(session_, Session::open(options_));
    }
    return session_;
  }

  Result<std::unique_ptr<MatmulData>> matmul_data(const Problem& problem,
                                                  std::uint64_t seed) const {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
    FORETUNE_TRY(const std::shared_ptr<Session> session, this->session());
    return MatmulData::create(session->device, session->library, gemm,
                              static_cast<std::size_t>(options_.workspace_mb) << 20U, seed);
  }

  FamilyInfo info_;
  CublasltOptions options_;
  std::vector<Config> portfolio_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Session> session_;
};

}  // namespace

Support cublaslt_available(const FamilyOptions& options) {
  const Result<CublasltOptions> parsed = CublasltOptions::parse(options);
  std::error_code error;
  // Wrong options are for create to explain; libraries of the caller's need no driver.
  if (parsed && parsed->system_libraries && !std::filesystem::exists(kDriverNode, error)) {
    return Support::no("there is no NVIDIA GPU here (no ", kDriverNode, ")");
  }
  return Support::yes();
}

Result<std::unique_ptr<CublasltFamily>> create_cublaslt(const FamilyOptions& options) {
  FORETUNE_TRY(CublasltOptions parsed, CublasltOptions::parse(options));
  FamilyInfo info;
  info.name = "cublaslt";
  info.description = "matrix products by NVIDIA's cuBLASLt, with an algorithm of our choice";
  info.problem_type = ProblemType::kGemm;
  info.config_schema = cublaslt_schema();
  FORETUNE_TRY(info.space, CompiledSpace::create(cublaslt_space()));
  info.fingerprint = options.fingerprint;
  info.feature_table = "gemm-cublaslt";
  info.needs_worker = true;
  std::vector<Config> portfolio;
  if (parsed.configs.empty()) {
    portfolio = cublaslt_portfolio(info.fingerprint.isa.substr(0, info.fingerprint.isa.find(' ')));
  } else {
    FORETUNE_TRY(const std::string text, read_text_file(parsed.configs));
    auto configs = parse_cublaslt_configs(text);
    if (!configs) {
      return fail_because(configs.error(), parsed.configs);
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

}  // namespace foretune
