// Inputs, output and reference of one product, on the device.
//
// The reference is the product in f32, by the library's pedantic arithmetic and another kernel than
// any that is measured; a sample of its elements is computed on the host in double precision from
// the same random numbers, so that library and reference cannot be wrong together. A result may
// differ from it by what rounding to its type and another order of summation explain.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/family/family.h"
#include "foretune/gpu/device.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::cublaslt {

class MatmulData final : public ProblemData {
 public:
  // Errors: kUnsupported when the device has too little memory, kInternal when reference and host
  // disagree.
  static Result<std::unique_ptr<MatmulData>> create(std::shared_ptr<gpu::Device> device,
                                                    std::shared_ptr<const Library> library,
                                                    const GemmProblem& problem,
                                                    std::size_t workspace_bytes,
                                                    std::uint64_t seed);

  // What make_data() of a family gave out for this problem. Errors: kMismatch.
  static Result<MatmulData*> of(const Problem& problem, ProblemData& data);

  void poison() override;
  Support verify() override;
  std::int64_t bytes() const override;

  [[nodiscard]] const GemmProblem& problem() const { return problem_; }
  // The product whose plans are run; made once for all configs.
  [[nodiscard]] Matmul& matmul() { return *matmul_; }
  // n elements on the device, nullptr for operations without.
  [[nodiscard]] const void* bias() const { return bias_.address(); }
  // Set 0 is what poison() and verify() look at. The others hold the same inputs elsewhere in
  // memory, for runs that must not find theirs in the cache.
  [[nodiscard]] Operands operands(std::size_t set) const;
  [[nodiscard]] std::size_t sets() const { return sets_.size(); }
  // Sets enough that all together are larger than the device's cache, `wanted` if fewer are.
  // Errors: kUnsupported when there is too little memory.
  Status make_sets(std::size_t wanted);
  // Overwrites more than the cache holds.
  void flush();

 private:
  struct Set {
    gpu::Buffer a;
    gpu::Buffer b;
    gpu::Buffer d;
  };
  MatmulData(std::shared_ptr<gpu::Device> device, const GemmProblem& problem, std::uint64_t seed)
      : device_(std::move(device)), problem_(problem), seed_(seed) {}
  Result<Set> make_set();
  Status make_reference(const std::shared_ptr<const Library>& library, std::size_t workspace_bytes);
  Status check_reference() const;
  [[nodiscard]] double host_element(std::int64_t batch, std::int64_t row,
                                    std::int64_t column) const;
  [[nodiscard]] std::uint64_t elements_a() const;
  [[nodiscard]] std::uint64_t elements_b() const;
  [[nodiscard]] std::uint64_t elements_d() const;

  std::shared_ptr<gpu::Device> device_;
  GemmProblem problem_;
  std::uint64_t seed_;
  std::vector<Set> sets_;
  gpu::Buffer bias_;
  gpu::Buffer workspace_;
  gpu::Buffer reference_;  // f32
  gpu::Buffer eviction_;
  std::unique_ptr<Matmul> matmul_;
};

}  // namespace foretune::cublaslt
