// The family without hardware, for problems of any type that samplers draw. Times follow a formula
// with a known optimum. Kernels crash, hang, fail to prepare or compute a wrong result as often as
// the parameters say. The faults are real (the process aborts, a run never returns), so that tests
// of the layers above meet them as they will occur. The seed alone decides which config of which
// problem is faulty.
//
//   FamilyOptions options;
//   options.parameters = {{"noise", "0.02"}, {"crash", "0.01"}};
//   FORETUNE_TRY(auto family, make_null(options));
//
// Parameters: type (of problems, gemm unless named); seed; noise (standard deviation of the log of
// a time); crash, hang, wrong, prepare_fail (share of all configs); real_time=1 makes a run take
// the formula's time on the clock instead of reporting it; metrics=1 gives every run pack_ns and
// bytes, which grow with the blocks, and in a later stage accuracy, which falls with unroll;
// evaluate_crash, evaluate_hang and evaluate_fail are the shares of configs that crash, hang or
// fail in that stage; sequence=yes gives the networks of null_layers.h, whose configs are
// sequences, instead of blocks. Thread safety: as every Family.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/family/family.h"

namespace foretune {

struct NullParameters {
  std::string type = "gemm";  // of problems
  std::uint64_t seed = 1;
  double noise = 0.02;
  double crash = 0;
  double hang = 0;
  double wrong = 0;
  double prepare_fail = 0;
  double evaluate_crash = 0;  // share of the evaluations alone, as the next two
  double evaluate_hang = 0;
  double evaluate_fail = 0;
  bool real_time = false;
  bool metrics = false;
  bool sequence = false;  // configs are those of null_layers.h
};
// Errors: kInvalidArgument for an unknown key, a share outside [0, 1], or shares above 1 in all.
Result<NullParameters> parse_null_parameters(const FamilyOptions& options);

enum class NullFault : std::uint8_t { kNone, kCrash, kHang, kWrong, kPrepareFail };
// Returns the fault of this config of this problem.
[[nodiscard]] NullFault null_fault(const NullParameters& parameters, const Problem& problem,
                                   const Config& config);
// Returns the fault of its evaluation: kNone, kCrash, kHang or kPrepareFail.
[[nodiscard]] NullFault null_evaluation_fault(const NullParameters& parameters,
                                              const Problem& problem, const Config& config);
// Returns the time without noise: a base that grows with the problem, times one plus a quadratic in
// the logarithms of the parameters, whose minimum depends on the problem. This function and those
// below are for blocks; null_layers.h has those for sequences.
[[nodiscard]] double null_time_ns(const Problem& problem, const Config& config);
// Return the other metrics, in ns, bytes, and percent.
[[nodiscard]] double null_pack_ns(const Problem& problem, const Config& config);
[[nodiscard]] double null_bytes(const Config& config);
[[nodiscard]] double null_accuracy(const Config& config);
inline constexpr std::string_view kNullAccuracy = "accuracy";

Result<std::unique_ptr<Family>> make_null(const FamilyOptions& options);
Support null_available(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& null_family();

}  // namespace foretune
