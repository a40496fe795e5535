// Products, models and NVIDIA's libraries (as tests/fake_gpu fakes them) for the tests of the
// cuBLASLt dispatcher. Not part of the library.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/dispatch/cublaslt_dispatch.h"
#include "foretune/dispatch/testing/one_tree_model.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

inline constexpr std::size_t kSampleWorkspace = std::size_t{1} << 20U;

// The functions by which tests query and control the fake library, besides those of cuBLASLt.
struct FakeQuestions {
  std::uint64_t (*calls)(const char* symbol) = nullptr;
  void (*last_algorithm)(std::uint64_t* words) = nullptr;
  void (*set_faults)(const char* faults) = nullptr;
};

// The fake library with a context and a handle; the process has one.
class FakeBench {
 public:
  static FakeBench& get() {
    static FakeBench bench;
    return bench;
  }
  // Called by every thread that multiplies.
  void enter_thread() const { EXPECT_EQ(driver->context_set_current(context), 0); }
  void* allocate(std::size_t bytes) const {
    cuda::DevicePointer pointer = 0;
    EXPECT_EQ(driver->memory_allocate(&pointer, bytes), 0);
    return reinterpret_cast<void*>(pointer);  // NOLINT(performance-no-int-to-ptr)
  }
  void free(void* pointer) const {
    driver->memory_free(reinterpret_cast<cuda::DevicePointer>(pointer));
  }
  // Returns the config of the product that was executed last.
  [[nodiscard]] CublasltConfig executed() const {
    cublaslt::Algorithm algorithm;
    fake.last_algorithm(algorithm.data.data());
    return cublaslt::words_of(*api, algorithm);
  }
  // Counts the calls that look for an algorithm.
  [[nodiscard]] std::uint64_t questions() const {
    return fake.calls("cublasLtMatmulAlgoInit") + fake.calls("cublasLtMatmulAlgoCheck") +
           fake.calls("cublasLtMatmulAlgoGetHeuristic");
  }

  std::shared_ptr<const cublaslt::Api> api;
  std::shared_ptr<const cuda::DriverApi> driver;
  FakeQuestions fake;
  cuda::DriverContext context = nullptr;
  cublaslt::Handle handle = nullptr;
  void* workspace = nullptr;

 private:
  FakeBench() {
    api = cublaslt::Api::load({FORETUNE_FAKE_GPU}).value();
    driver = cuda::DriverApi::load(FORETUNE_FAKE_GPU).value();
    const auto library = cuda::SharedLibrary::open(FORETUNE_FAKE_GPU).value();
    EXPECT_TRUE(library.find("foretune_fake_gpu_calls", fake.calls));
    EXPECT_TRUE(library.find("foretune_fake_gpu_last_algorithm", fake.last_algorithm));
    EXPECT_TRUE(library.find("foretune_fake_gpu_set_faults", fake.set_faults));
    EXPECT_EQ(driver->init(0), 0);
    EXPECT_EQ(driver->primary_context_retain(&context, 0), 0);
    enter_thread();
    EXPECT_EQ(api->create(&handle), 0);
    workspace = allocate(kSampleWorkspace);
  }
};

// A product as the library sees it.
struct MatmulShape {
  std::int64_t m = 48;
  std::int64_t n = 40;
  std::int64_t k = 32;
  std::int32_t batch = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  cublaslt::CudaType type = cublaslt::CudaType::kF32;  // or bf16
  cublaslt::ComputeType compute = cublaslt::ComputeType::kF32;
  std::uint32_t epilogue = 1;
  std::int64_t gap = 0;        // added to leading dimensions
  std::int64_t batch_gap = 0;  // added to strides
  std::size_t offset = 0;      // of operands, in bytes
  std::int32_t order = 0;
  float alpha = 1;
  float beta = 0;
};

// Its operands and descriptors, and the result by definition.
class MatmulSample {
 public:
  explicit MatmulSample(const MatmulShape& shape, std::uint64_t seed = 1) : shape_(shape) {
    Rng rng(seed);
    const auto& s = shape_;
    a_ = matrix(s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, rng);
    b_ = matrix(s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, rng);
    c_ = matrix(s.m, s.n, rng);
    d_ = matrix(s.m, s.n, rng);
    const Api& api = *bench().api;
    EXPECT_EQ(api.descriptor_create(&descriptor_, s.compute, cublaslt::CudaType::kF32), 0);
    set(cublaslt::DescriptorAttribute::kTransposeA, std::int32_t{s.transpose_a});
    set(cublaslt::DescriptorAttribute::kTransposeB, std::int32_t{s.transpose_b});
    set(cublaslt::DescriptorAttribute::kEpilogue, s.epilogue);
    if (has_bias()) {
      bias_ = bench().allocate(static_cast<std::size_t>(s.m) * 4);
      for (std::int64_t i = 0; i < s.m; ++i) {
        store(bias_, i, random(rng));
      }
      set(cublaslt::DescriptorAttribute::kBiasPointer, bias_);
    }
  }
  ~MatmulSample() {
    for (Matrix* const matrix : {&a_, &b_, &c_, &d_}) {
      bench().api->layout_destroy(matrix->layout);
      bench().free(matrix->block);
    }
    bench().api->descriptor_destroy(descriptor_);
    if (bias_ != nullptr) {
      bench().free(bias_);
    }
  }
  MatmulSample(const MatmulSample&) = delete;
  MatmulSample& operator=(const MatmulSample&) = delete;

  template <class T>
  void set(cublaslt::DescriptorAttribute attribute, const T& value) const {
    EXPECT_EQ(bench().api->descriptor_set(descriptor_, attribute, &value, sizeof(value)), 0);
  }
  [[nodiscard]] MatmulCall call() const {
    return {.handle = bench().handle,
            .descriptor = descriptor_,
            .alpha = &shape_.alpha,
            .a = a_.start,
            .a_layout = a_.layout,
            .b = b_.start,
            .b_layout = b_.layout,
            .beta = &shape_.beta,
            .c = c_.start,
            .c_layout = c_.layout,
            .d = d_.start,
            .d_layout = d_.layout,
            .workspace = bench().workspace,
            .workspace_bytes = kSampleWorkspace};
  }
  // Forgets the result.
  void poison() const { std::memset(d_.block, 0xff, d_.bytes); }
  void check() const {
    const double precision = shape_.type == cublaslt::CudaType::kF32 ? 0x1p-14 : 0x1p-6;
    for (std::int64_t batch = 0; batch < shape_.batch; ++batch) {
      for (std::int64_t i = 0; i < shape_.m; ++i) {
        for (std::int64_t j = 0; j < shape_.n; ++j) {
          const double wanted = element(batch, i, j);
          const double found = load(d_.start, d_.at(batch, i, j));
          ASSERT_NEAR(found, wanted, precision * (4 + std::fabs(wanted)))
              << "[" << i << ", " << j << "] of batch " << batch;
        }
      }
    }
  }

 private:
  using Api = cublaslt::Api;
  struct Matrix {
    std::int64_t leading = 0;
    std::int64_t stride = 0;
    std::size_t bytes = 0;
    void* block = nullptr;
    void* start = nullptr;
    cublaslt::Layout layout = nullptr;
    [[nodiscard]] std::int64_t at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
      return batch * stride + j * leading + i;
    }
  };

  static FakeBench& bench() { return FakeBench::get(); }
  [[nodiscard]] bool has_bias() const { return (shape_.epilogue & 4U) != 0; }
  [[nodiscard]] bool has_relu() const { return (shape_.epilogue & 2U) != 0; }
  [[nodiscard]] bool has_gelu() const { return (shape_.epilogue & 32U) != 0; }
  // Returns a random number that is exact in bf16.
  static double random(Rng& rng) { return static_cast<double>(rng.between(-16, 16)) / 16; }

  [[nodiscard]] double load(const void* from, std::int64_t i) const {
    if (shape_.type == cublaslt::CudaType::kF32) {
      float value = 0;
      std::memcpy(&value, static_cast<const float*>(from) + i, sizeof(value));
      return static_cast<double>(value);
    }
    std::uint32_t bits = 0;
    std::memcpy(reinterpret_cast<unsigned char*>(&bits) + 2,
                static_cast<const std::uint16_t*>(from) + i, 2);
    return static_cast<double>(std::bit_cast<float>(bits));
  }
  void store(void* to, std::int64_t i, double value) const {
    const auto narrow = static_cast<float>(value);
    if (shape_.type == cublaslt::CudaType::kF32) {
      std::memcpy(static_cast<float*>(to) + i, &narrow, sizeof(narrow));
      return;
    }
    const auto bits = std::bit_cast<std::uint32_t>(narrow);
    std::memcpy(static_cast<std::uint16_t*>(to) + i,
                reinterpret_cast<const unsigned char*>(&bits) + 2, 2);
  }

  Matrix matrix(std::int64_t rows, std::int64_t columns, Rng& rng) const {
    Matrix made;
    made.leading = rows + shape_.gap;
    made.stride = made.leading * columns + shape_.batch_gap;
    made.bytes = static_cast<std::size_t>(made.stride * shape_.batch) * 4 + shape_.offset;
    made.block = bench().allocate(made.bytes);
    made.start = static_cast<unsigned char*>(made.block) + shape_.offset;
    for (std::int64_t i = 0; i < made.stride * shape_.batch; ++i) {
      store(made.start, i, random(rng));
    }
    const Api& api = *bench().api;
    EXPECT_EQ(api.layout_create(&made.layout, shape_.type, static_cast<std::uint64_t>(rows),
                                static_cast<std::uint64_t>(columns), made.leading),
              0);
    const auto set_layout = [&](cublaslt::LayoutAttribute attribute, const auto& value) {
      EXPECT_EQ(api.layout_set(made.layout, attribute, &value, sizeof(value)), 0);
    };
    set_layout(cublaslt::LayoutAttribute::kBatchCount, shape_.batch);
    set_layout(cublaslt::LayoutAttribute::kStridedBatchOffset, made.stride);
    set_layout(cublaslt::LayoutAttribute::kOrder, shape_.order);
    return made;
  }

  [[nodiscard]] double element(std::int64_t batch, std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t p = 0; p < shape_.k; ++p) {
      sum += load(a_.start, shape_.transpose_a ? a_.at(batch, p, i) : a_.at(batch, i, p)) *
             load(b_.start, shape_.transpose_b ? b_.at(batch, j, p) : b_.at(batch, p, j));
    }
    sum *= static_cast<double>(shape_.alpha);
    if (shape_.beta != 0) {
      sum += static_cast<double>(shape_.beta) * load(c_.start, c_.at(batch, i, j));
    }
    if (has_bias()) {
      sum += load(bias_, i);
    }
    return has_relu() ? std::max(sum, 0.0) : has_gelu() ? gelu(sum) : sum;
  }

  MatmulShape shape_;
  Matrix a_;
  Matrix b_;
  Matrix c_;
  Matrix d_;
  cublaslt::Descriptor descriptor_ = nullptr;
  void* bias_ = nullptr;
};

// A candidate and the time that the model predicts for it, ln ns, whatever the problem.
struct Prediction {
  CublasltConfig config;
  double score = 0;
};

struct CublasltModelOptions {
  std::string isa = "sm_90 cublaslt-13.0";
  double most_log2_m = 1e6;  // our rows that were seen in training
};

// Makes a model of one tree that splits on the candidate's tile: candidates with the same tile
// share a score, and so do the heuristic's ranks, whose tile is 0.
inline Model cublaslt_model(const std::vector<Prediction>& predictions,
                            const CublasltModelOptions& options = {}) {
  std::vector<ScoredConfig> candidates;
  for (const Prediction& p : predictions) {
    candidates.push_back({p.config.to_config(), p.config.tile + 0.5, p.score});
  }
  Model model = one_tree_model(kGemmProblem, "gemm-cublaslt", "tile", std::move(candidates));
  model.family = "cublaslt";
  model.config_schema = cublaslt_schema();
  model.space_text = cublaslt_space().text();
  model.fingerprint.isa = options.isa;
  set_problem_range(model, "log2_m", {-1e300, options.most_log2_m});
  return model;
}

// Explicit configs that the fake library knows: for f32 and tf32, and for bf16 and f16.
inline CublasltConfig plain_config(std::int32_t tile) {
  return {.algorithm = 2, .tile = tile, .split_k = 1};
}
inline CublasltConfig tensor_config(std::int32_t tile, std::int32_t custom = 1) {
  return {.algorithm = 66, .tile = tile, .stages = 35, .split_k = 1, .custom = custom};
}

// Prefers algorithm 2 with tile 11 for f32 and algorithm 66 with tile 448 for 16 bits.
inline std::vector<Prediction> sample_predictions() {
  return {{CublasltConfig::rank(1), 9.0},
          {tensor_config(448), 8.0},
          {tensor_config(23), 8.5},
          {plain_config(11), 8.2}};
}

inline std::unique_ptr<CublasltDispatcher> open_dispatcher(CublasltDispatchOptions options) {
  FakeBench::get();
  options.cublaslt = {FORETUNE_FAKE_GPU};
  options.driver = FORETUNE_FAKE_GPU;
  auto opened = CublasltDispatcher::open(std::move(options));
  EXPECT_TRUE(opened) << opened.error().message;
  return *std::move(opened);
}

// Follows the model whatever gain it predicts.
inline std::unique_ptr<CublasltDispatcher> following_dispatcher(Model model) {
  return open_dispatcher({.model = std::move(model), .dispatch = {}});
}

inline std::unique_ptr<CublasltDispatcher> sample_dispatcher() {
  return following_dispatcher(cublaslt_model(sample_predictions()));
}

inline FakeBench& bench() { return FakeBench::get(); }

// Multiplies, checks the result, and returns the decision.
inline CublasltDecision run(CublasltDispatcher& dispatcher, const MatmulSample& sample) {
  sample.poison();
  EXPECT_EQ(dispatcher.matmul(sample.call()), 0);
  sample.check();
  const auto decision = dispatcher.decision(sample.call());
  EXPECT_TRUE(decision);
  return *decision;
}

}  // namespace foretune
