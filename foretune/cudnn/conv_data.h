// Inputs, output and reference of one convolution, on the device.
//
// The reference is computed in f32 with sums in double precision by a kernel of ours
// (cuda::Device::convolve()), and every element of a result is compared with it. The host also
// computes a sample of its elements from the same random numbers, so that kernel and host cannot be
// wrong together. A result may differ from the reference as far as rounding to its type and another
// order of summation explain; Winograd's and Fourier's algorithms lose more, so that theirs may
// differ by a multiple of that.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/conv_shape.h"
#include "foretune/cuda/device.h"
#include "foretune/cuda/measuring/device_data.h"
#include "foretune/cudnn/convolution.h"
#include "foretune/family/family.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::cudnn {

class ConvData final : public cuda::DeviceData {
 public:
  // Errors: kUnsupported when the device has too little memory, kInternal when reference and host
  // disagree.
  static Result<std::unique_ptr<ConvData>> create(std::shared_ptr<cuda::Device> device,
                                                  const ConvProblem& problem,
                                                  std::size_t workspace_bytes, std::uint64_t seed);

  // Returns `data` as the type that a family's make_data() made for this problem. Errors: kMismatch
  // for data of another type or problem.
  static Result<ConvData*> of(const Problem& problem, ProblemData& data);

  void poison() override;
  Support verify() override;
  std::int64_t bytes() const override;
  [[nodiscard]] std::size_t sets() const override { return sets_.size(); }

  [[nodiscard]] const ConvProblem& problem() const { return problem_; }
  [[nodiscard]] ConvOperands operands(std::size_t set) const;
  // Says that the next results are those of an algorithm that computes in another domain, or of one
  // that does not.
  void expect_transformed(bool is_transformed) { is_transformed_ = is_transformed; }

 private:
  struct Set {
    cuda::Buffer input;
    cuda::Buffer weights;
    cuda::Buffer output;
    cuda::Buffer added;
  };
  ConvData(std::shared_ptr<cuda::Device> device, const ConvProblem& problem, std::uint64_t seed)
      : DeviceData(std::move(device)), problem_(problem), seed_(seed) {}
  Status add_set() override;
  Status make_reference();
  Status check_reference();
  [[nodiscard]] double host_element(std::uint64_t index) const;
  [[nodiscard]] const cuda::Buffer& result() const;
  [[nodiscard]] std::uint64_t result_elements() const;
  [[nodiscard]] double sum_length() const;

  ConvProblem problem_;
  std::uint64_t seed_;
  std::vector<Set> sets_;
  cuda::Buffer bias_;
  cuda::Buffer workspace_;
  cuda::Buffer reference_;  // f32
  bool is_transformed_ = false;
};

// Returns the problem as the reference's kernel takes it.
cuda::ConvShape conv_shape(const ConvProblem& problem);

// Returns yes when the reference's kernel can compute the problem.
Support has_reference(const ConvProblem& problem);

}  // namespace foretune::cudnn
