// One product as cuBLASLt sees it: its descriptors, and the algorithm that a config names.
//
// Our problems are row-major, C[m x n] = A[m x k] * B[k x n] with A or B stored by rows or columns
// (GemmLayout). cuBLASLt's matrices are column-major, so it computes the transpose, C' = B' * A':
// its first operand is our B, its rows are our n.
//
//   FORETUNE_TRY(const auto library, Library::open(api));
//   FORETUNE_TRY(const Matmul matmul, Matmul::create(library, problem, options));
//   FORETUNE_TRY(const Plan plan, matmul.plan(config));
//   FORETUNE_TRY_STATUS(matmul.run(plan, operands, stream));
//
// Thread safety: a Matmul may be run from several threads at once; plan() from one at a time. The
// context of the device has to be current.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cuda/cublaslt_api.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::cublaslt {

// The loaded library with one of its handles.
class Library {
 public:
  static Result<std::shared_ptr<const Library>> open(std::shared_ptr<const Api> api);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  [[nodiscard]] const Api& api() const { return *api_; }
  [[nodiscard]] Handle handle() const { return handle_; }

 private:
  explicit Library(std::shared_ptr<const Api> api) : api_(std::move(api)) {}
  std::shared_ptr<const Api> api_;
  Handle handle_ = nullptr;
};

// The library's types for the data type of a problem.
struct Types {
  CudaType ab = CudaType::kF32;
  CudaType cd = CudaType::kF32;
  CudaType scale = CudaType::kF32;
  ComputeType compute = ComputeType::kF32;
};
// Errors: kUnsupported for types whose products are not supported here.
Result<Types> types_of(DataType type);
// Returns kDefault for operations that leave the sums as they are.
Epilogue epilogue_of(GemmOperation operation);
// Returns the type of the result and the bias: bf16 for f8e4m3, else that of the operands.
DataType result_type(DataType type);

// Leading dimensions in elements: distances between rows, or between columns where stored by
// columns. 0: without gaps.
struct Strides {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
};

struct MatmulOptions {
  std::size_t workspace_bytes = std::size_t{64} << 20U;  // at most
  Strides strides;
  // f32 without any shortcut: for references.
  bool pedantic = false;
};

// All operands are on the device, stored as the problem's layout says. D is also the C that `beta`
// scales.
struct Operands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  float alpha = 1;
  float beta = 0;
  void* workspace = nullptr;
};

// words_of() returns the config of an algorithm that the library made; set_words() writes a config
// into one. An error names the value that the library refuses.
CublasltConfig words_of(const Api& api, const Algorithm& algorithm);
Status set_words(const Api& api, Algorithm& algorithm, const CublasltConfig& config);

struct Plan {
  Algorithm algorithm;
  std::size_t workspace_bytes = 0;
};

class Matmul {
 public:
  // `bias`: n elements on the device, for operations that have one (its address is part of the
  // library's description). Errors: kUnsupported, kIo.
  static Result<std::unique_ptr<Matmul>> create(std::shared_ptr<const Library> library,
                                                const GemmProblem& problem,
                                                const MatmulOptions& options, const void* bias);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // Returns the plan that the config names, checked by the library. Errors: kUnsupported with the
  // reason.
  Result<Plan> plan(const CublasltConfig& config);
  // Returns the heuristic's answers, best first. The library is queried once. Errors: kUnsupported
  // when it has none.
  Result<std::vector<Plan>> heuristic();
  // Returns the config of a plan.
  [[nodiscard]] CublasltConfig config_of(const Plan& plan) const;
  // Returns every config that the library accepts for the problem: all its algorithms, with all
  // their tiles, stages, clusters and custom options, without a split of k and with the given
  // splits. Takes seconds. Errors: those of the library.
  Result<std::vector<CublasltConfig>> enumerate(const std::vector<std::int32_t>& splits);

  // Enqueues the product. Errors: kUnsupported when the library refuses, kIo.
  [[nodiscard]] Status run(const Plan& plan, const Operands& operands, cuda::Stream stream) const;

 private:
  Matmul(std::shared_ptr<const Library> library, const Types& types, std::size_t workspace_bytes)
      : library_(std::move(library)), types_(types), workspace_bytes_(workspace_bytes) {}
  Status describe(const GemmProblem& problem, const MatmulOptions& options, const void* bias);
  Status make_layout(Layout& layout, CudaType type, std::int64_t rows, std::int64_t columns,
                     std::int64_t leading, const GemmProblem& problem);
  Result<Algorithm> start(int id) const;
  Result<Plan> checked(const Algorithm& algorithm) const;
  // Returns true when checked() would return a plan; gives no reason.
  [[nodiscard]] bool accepts(Algorithm algorithm, const CublasltConfig& config) const;

  std::shared_ptr<const Library> library_;
  Types types_;
  std::size_t workspace_bytes_;
  Descriptor descriptor_ = nullptr;
  // In the library's order: its A is our B.
  Layout a_ = nullptr;
  Layout b_ = nullptr;
  Layout d_ = nullptr;
  std::optional<std::vector<Plan>> heuristic_;
};

}  // namespace foretune::cublaslt
