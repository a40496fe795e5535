// Inputs, output and reference of one product, on the device.
//
// The reference is the product in f32, by the library's pedantic arithmetic and a kernel that is
// never measured. The host also computes a sample of its elements in double precision from the same
// random numbers, so that library and reference cannot be wrong together. A result may differ from
// the reference as far as rounding to its type and another order of summation explain.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/cuda/device.h"
#include "foretune/cuda/measuring/device_data.h"
#include "foretune/family/family.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::cublaslt {

class MatmulData final : public cuda::DeviceData {
 public:
  // Errors: kUnsupported when the device has too little memory, kInternal when reference and host
  // disagree.
  static Result<std::unique_ptr<MatmulData>> create(std::shared_ptr<cuda::Device> device,
                                                    std::shared_ptr<const Library> library,
                                                    const GemmProblem& problem,
                                                    std::size_t workspace_bytes,
                                                    std::uint64_t seed);

  // Returns `data` as the type that a family's make_data() made for this problem. Errors: kMismatch
  // for data of another type or problem.
  static Result<MatmulData*> of(const Problem& problem, ProblemData& data);

  void poison() override;
  Support verify() override;
  std::int64_t bytes() const override;

  [[nodiscard]] const GemmProblem& problem() const { return problem_; }
  // Returns the product whose plans are run; it is made once for all configs.
  [[nodiscard]] Matmul& matmul() { return *matmul_; }
  // Returns n elements on the device, nullptr for operations without a bias.
  [[nodiscard]] const void* bias() const { return bias_.address(); }
  [[nodiscard]] Operands operands(std::size_t set) const;
  [[nodiscard]] std::size_t sets() const override { return sets_.size(); }

 private:
  struct Set {
    cuda::Buffer a;
    cuda::Buffer b;
    cuda::Buffer d;
  };
  MatmulData(std::shared_ptr<cuda::Device> device, const GemmProblem& problem, std::uint64_t seed)
      : DeviceData(std::move(device)), problem_(problem), seed_(seed) {}
  Status add_set() override;
  Status make_reference(const std::shared_ptr<const Library>& library, std::size_t workspace_bytes);
  Status check_reference() const;
  [[nodiscard]] double host_element(std::int64_t batch, std::int64_t row,
                                    std::int64_t column) const;
  [[nodiscard]] std::uint64_t elements_a() const;
  [[nodiscard]] std::uint64_t elements_b() const;
  [[nodiscard]] std::uint64_t elements_d() const;

  GemmProblem problem_;
  std::uint64_t seed_;
  std::vector<Set> sets_;
  cuda::Buffer bias_;
  cuda::Buffer workspace_;
  cuda::Buffer reference_;  // f32
  std::unique_ptr<Matmul> matmul_;
};

}  // namespace foretune::cublaslt
