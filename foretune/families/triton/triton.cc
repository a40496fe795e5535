#include "foretune/families/triton/triton.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/cublaslt/matmul_data.h"
#include "foretune/cublaslt/product_family.h"
#include "foretune/cublaslt/product_run.h"
#include "foretune/cublaslt/session.h"
#include "foretune/cuda/kernel_file.h"
#include "foretune/cuda/measuring/device_session.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/listed_space.h"

namespace foretune {
namespace {

using cublaslt::MatmulData;
using cublaslt::Operands;
using cublaslt::ProductFamily;
using cublaslt::SessionOptions;
using cuda::CompiledKernel;
using cuda::KernelFile;

// Offsets in a kernel have 32 bits, the grid's third extent has 16.
constexpr std::int64_t kMaxElements = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxBatches = 65535;
constexpr std::string_view kName = "triton";
constexpr std::string_view kFileOption = "kernels";

// A kernel on the device.
struct LoadedKernel {
  cuda::Function function = nullptr;
  unsigned threads = 0;
  unsigned shared_bytes = 0;
  std::size_t scratch_bytes = 0;  // of every block
};

// The device with the kernels loaded on it; a kernel serves many problems.
class TritonSession : public cublaslt::Session {
 public:
  explicit TritonSession(Session opened) : Session(std::move(opened)) {}
  static Result<std::shared_ptr<TritonSession>> open(const SessionOptions& options,
                                                     std::shared_ptr<const KernelFile> kernels) {
    FORETUNE_TRY(const std::shared_ptr<Session> opened, Session::open(options));
    auto session = std::make_shared<TritonSession>(std::move(*opened));
    session->kernels_ = std::move(kernels);
    if (session->kernels_ != nullptr) {
      const cuda::KernelFileHeader& header = session->kernels_->header();
      if (!session->fingerprint.isa.starts_with(header.target + " ")) {
        return fail(ErrorCode::kMismatch, "the kernels are for ", header.target, ", the device is ",
                    session->fingerprint.isa);
      }
      // Another compiler makes other kernels from the same configs.
      session->fingerprint.isa += " " + header.compiler;
    }
    return session;
  }

  // Errors: kUnsupported when there is no such kernel or the device refuses it.
  Result<LoadedKernel> load(const std::string& key);
  // Returns memory for the blocks of a launch. All launches share it, because they follow each
  // other.
  Result<cuda::DevicePointer> scratch(std::size_t bytes);

 private:
  std::shared_ptr<const KernelFile> kernels_;
  std::unordered_map<std::string, LoadedKernel> loaded_;
  cuda::Buffer scratch_;
};

Result<LoadedKernel> TritonSession::load(const std::string& key) {
  if (const auto found = loaded_.find(key); found != loaded_.end()) {
    return found->second;
  }
  const CompiledKernel* const compiled = kernels_ == nullptr ? nullptr : kernels_->find(key);
  if (compiled == nullptr) {
    return fail(ErrorCode::kUnsupported, "the file has no kernel '", key, "'");
  }
  if (!compiled->error.empty()) {
    return fail(ErrorCode::kUnsupported, "it does not compile: ", compiled->error);
  }
  const cuda::DriverApi& api = device->api();
  const auto must = [&api](int code, std::string_view call) -> Status {
    const Status status = api.check(code, call);
    return status ? status : Status(fail(ErrorCode::kUnsupported, status.error().message));
  };
  cuda::Module module = nullptr;
  LoadedKernel kernel{.threads = compiled->threads,
                      .shared_bytes = compiled->shared_bytes,
                      .scratch_bytes = compiled->scratch_bytes};
  FORETUNE_TRY_STATUS(
      must(api.module_load(&module, kernels_->image(*compiled).data()), "cuModuleLoadData"));
  FORETUNE_TRY_STATUS(
      must(api.module_function(&kernel.function, module, compiled->function.c_str()),
           "cuModuleGetFunction"));
  if (kernel.shared_bytes > cuda::kPlainSharedBytes) {
    FORETUNE_TRY_STATUS(must(api.function_attribute(kernel.function, cuda::kMaxDynamicSharedBytes,
                                                    static_cast<int>(kernel.shared_bytes)),
                             "cuFuncSetAttribute"));
  }
  return loaded_[key] = kernel;
}

Result<cuda::DevicePointer> TritonSession::scratch(std::size_t bytes) {
  if (bytes > scratch_.bytes()) {
    // Enqueued launches may still use the old memory.
    device->synchronize();
    FORETUNE_TRY(scratch_, device->allocate(bytes));
  }
  return scratch_.pointer();
}

// The arguments of a launch, in the order of the templates' parameters (python/foretune/triton/
// _kernels.py); the last two are Triton's own.
struct Arguments {
  cuda::DevicePointer a = 0;
  cuda::DevicePointer b = 0;
  cuda::DevicePointer d = 0;
  cuda::DevicePointer bias = 0;
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  std::int32_t lda = 0;
  std::int32_t ldb = 0;
  std::int32_t ldd = 0;
  std::int64_t batch_a = 0;
  std::int64_t batch_b = 0;
  std::int64_t batch_d = 0;
  cuda::DevicePointer scratch = 0;
  cuda::DevicePointer profile = 0;

  std::array<void*, 15> pointers() {
    return {&a,   &b,   &d,       &bias,    &m,       &n,       &k,      &lda,
            &ldb, &ldd, &batch_a, &batch_b, &batch_d, &scratch, &profile};
  }
};

cuda::DevicePointer device_pointer(const void* address) {
  return reinterpret_cast<cuda::DevicePointer>(address);
}

// One kernel, ready to be launched for one problem.
struct Launch {
  LoadedKernel kernel;
  unsigned grid_x = 1;
  unsigned grid_z = 1;
  Arguments arguments;

  static Result<Launch> make(TritonSession& session, const GemmProblem& problem,
                             const TritonConfig& config, const void* bias);
  Status enqueue(const cuda::DriverApi& api, const Operands& operands, cuda::Stream stream) const;
};

Result<Launch> Launch::make(TritonSession& session, const GemmProblem& problem,
                            const TritonConfig& config, const void* bias) {
  Launch launch;
  FORETUNE_TRY(launch.kernel, session.load(triton_kernel_key(problem, config)));
  const auto blocks = [](std::int64_t size, std::int64_t block) {
    return (size + block - 1) / block;
  };
  std::int64_t tiles = blocks(problem.m(), config.block_m) * blocks(problem.n(), config.block_n);
  if (config.kernel == TritonTemplate::kPersistent) {
    const double cores = session.fingerprint.hardware.get(HardwareValue::kCores);
    tiles = std::min(tiles, std::max<std::int64_t>(1, static_cast<std::int64_t>(cores)));
  }
  launch.grid_x = static_cast<unsigned>(tiles);
  launch.grid_z = static_cast<unsigned>(problem.batch());
  const LeadingDimensions leading = leading_dimensions(problem);
  Arguments& arguments = launch.arguments;
  arguments.bias = device_pointer(bias);
  arguments.m = static_cast<std::int32_t>(problem.m());
  arguments.n = static_cast<std::int32_t>(problem.n());
  arguments.k = static_cast<std::int32_t>(problem.k());
  arguments.lda = static_cast<std::int32_t>(leading.a);
  arguments.ldb = static_cast<std::int32_t>(leading.b);
  arguments.ldd = static_cast<std::int32_t>(leading.d);
  arguments.batch_a = problem.m() * problem.k();
  arguments.batch_b = problem.k() * problem.n();
  arguments.batch_d = problem.m() * problem.n();
  if (launch.kernel.scratch_bytes > 0) {
    FORETUNE_TRY(arguments.scratch,
                 session.scratch(launch.kernel.scratch_bytes * launch.grid_x * launch.grid_z));
  }
  return launch;
}

Status Launch::enqueue(const cuda::DriverApi& api, const Operands& operands,
                       cuda::Stream stream) const {
  Arguments values = arguments;
  values.a = device_pointer(operands.a);
  values.b = device_pointer(operands.b);
  values.d = device_pointer(operands.d);
  std::array<void*, 15> pointers = values.pointers();
  const int code = api.launch_kernel(kernel.function, grid_x, 1, grid_z, kernel.threads, 1, 1,
                                     kernel.shared_bytes, stream, pointers.data(), nullptr);
  Status status = api.check(code, "cuLaunchKernel");
  // The kernel needs more registers or shared memory than the device has; the context stays usable.
  if (!status && (code == cuda::kDriverInvalidValue || code == cuda::kDriverLaunchOutOfResources)) {
    return fail(ErrorCode::kUnsupported, status.error().message);
  }
  return status;
}

class TritonArtifact final : public Artifact {
 public:
  TritonArtifact(std::shared_ptr<TritonSession> session, const TritonConfig& config)
      : session_(std::move(session)), config_(config) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    FORETUNE_TRY(MatmulData* const product, MatmulData::of(problem, data));
    if (config_.kernel == TritonTemplate::kLibrary) {
      return cublaslt::make_library_run(session_, *product, CublasltConfig::rank(1));
    }
    FORETUNE_TRY(const Launch launch,
                 Launch::make(*session_, product->problem(), config_, product->bias()));
    return cublaslt::make_product_run(
        session_, *product,
        [launch, &api = session_->device->api()](const Operands& operands, cuda::Stream stream) {
          return launch.enqueue(api, operands, stream);
        });
  }

 private:
  std::shared_ptr<TritonSession> session_;
  TritonConfig config_;
};

class Triton final : public ProductFamily<TritonSession> {
 public:
  Triton(FamilyInfo info, SessionOptions options, std::shared_ptr<const KernelFile> kernels)
      : ProductFamily(std::move(info)),
        options_(std::move(options)),
        kernels_(std::move(kernels)) {}

  Support supports(const Problem& problem) const override {
    const Result<GemmProblem> gemm = GemmProblem::from(problem);
    if (!gemm) {
      return Support::no(gemm.error().message);
    }
    if (gemm->has_constant_weights()) {
      return Support::no("the templates take B as it is: weights=constant changes nothing here");
    }
    if (problem.has_payload()) {
      return Support::no("triton multiplies random matrices, not weights from a file");
    }
    switch (gemm->dtype()) {
      case DataType::kBf16:
      case DataType::kF16:
      case DataType::kF32:
      case DataType::kTf32:
        break;
      default:
        return Support::no("the templates multiply bf16, f16, f32 and tf32, not ",
                           to_string(gemm->dtype()));
    }
    if (std::max({gemm->m() * gemm->k(), gemm->k() * gemm->n(), gemm->m() * gemm->n()}) >
        kMaxElements) {
      return Support::no("a matrix has more than ", kMaxElements, " elements");
    }
    if (gemm->batch() > kMaxBatches) {
      return Support::no("more than ", kMaxBatches, " products at once");
    }
    return cuda::fits_memory(gemm->bytes(), bytes_per_element(gemm->dtype()),
                             info().fingerprint.hardware.get(HardwareValue::kMemoryBytes));
  }

  // Returns the legal configs; with a file of kernels, only those in the file.
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    FORETUNE_TRY(auto legal,
                 ParametricSpace::bind(info().space, problem, info().fingerprint.hardware));
    if (kernels_ == nullptr) {
      return legal;
    }
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
    std::vector<Config> compiled;
    for (std::uint64_t i = 0; i < legal->count(); ++i) {
      Config config = legal->unrank(i);
      FORETUNE_TRY(const TritonConfig checked, TritonConfig::from(config));
      if (checked.kernel == TritonTemplate::kLibrary ||
          kernels_->find(triton_kernel_key(gemm, checked)) != nullptr) {
        compiled.push_back(std::move(config));
      }
    }
    std::ranges::sort(compiled);
    return std::make_unique<ListedSpace>(info().config_schema, std::move(compiled), info().space,
                                         problem, info().fingerprint.hardware,
                                         "the file of compiled kernels has none for it");
  }

  // Returns the config that a program without tuning would run.
  std::vector<Config> default_configs(const Problem& problem) const override {
    return supports(problem) ? std::vector<Config>{TritonConfig().to_config()}
                             : std::vector<Config>{};
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& /*problem*/,
                                            const Config& config) const override {
    FORETUNE_TRY(const TritonConfig checked, TritonConfig::from(config));
    FORETUNE_TRY(std::shared_ptr<TritonSession> session, this->session());
    return std::make_unique<TritonArtifact>(std::move(session), checked);
  }

 private:
  Result<std::shared_ptr<TritonSession>> open() const override {
    return TritonSession::open(options_, kernels_);
  }

  SessionOptions options_;
  std::shared_ptr<const KernelFile> kernels_;
};

}  // namespace

Support triton_available(const FamilyOptions& options) {
  return cuda::are_available(cuda::parse_options<SessionOptions>(options, kName, kFileOption));
}

Result<std::unique_ptr<Family>> make_triton(const FamilyOptions& options) {
  FORETUNE_TRY(SessionOptions parsed,
               cuda::parse_options<SessionOptions>(options, kName, kFileOption));
  std::shared_ptr<const KernelFile> kernels;
  if (!parsed.file.empty()) {
    FORETUNE_TRY(kernels, KernelFile::open(parsed.file));
  }
  FamilyInfo info;
  info.name = kName;
  info.description = "matrix products by Triton's kernels, or by NVIDIA's library";
  info.problem_type = kGemmProblem;
  info.config_schema = triton_matmul_schema();
  info.space = compiled_triton_matmul_space();
  info.fingerprint = options.fingerprint;
  info.feature_table = "gemm-triton-templates";
  info.metrics = {metric_info(kEnergyJ)};
  info.needs_worker = true;
  return std::make_unique<Triton>(std::move(info), std::move(parsed), std::move(kernels));
}

const FamilyEntry& triton_family() {
  static const FamilyEntry entry{
      .name = "triton",
      .description = "matrix products by Triton's kernels, or by NVIDIA's library",
      .available = triton_available,
      .create = make_triton,
      .on_device = true};
  return entry;
}

}  // namespace foretune
