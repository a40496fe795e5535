// A provider of matrix products whose kernels are texts, for tests of the dispatcher.
// Thread safety: as KernelProvider; `refused` may not change while others call.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "foretune/dispatch/default_models.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"
#include "foretune/hardware/cpu.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

inline Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k,
                    DataType dtype = DataType::kF32) {
  const auto problem = GemmProblem::create({.m = m, .n = n, .k = k, .dtype = dtype});
  EXPECT_TRUE(problem);
  return problem->to_problem();
}

// Returns a machine that every model knows, whatever machine runs the test.
inline Fingerprint machine(double vector_bytes = 64, int cores = 1) {
  Fingerprint fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
  fingerprint.hardware.set(HardwareValue::kVectorBytes, vector_bytes);
  fingerprint.hardware.set(HardwareValue::kCores, cores);
  fingerprint.hardware.set(HardwareValue::kMemoryBytes, 0);
  return fingerprint;
}

// Makes kernels that are the texts of their configs; refused configs cannot be made.
class TextProvider final : public FamilyProvider {
 public:
  explicit TextProvider(const Fingerprint& fingerprint) {
    FamilyOptions options;
    options.fingerprint = fingerprint;
    auto made = create_cpu_gemm(options);
    EXPECT_TRUE(made);
    family_ = std::move(*made);
  }
  const Family& family() const override { return *family_; }
  Result<std::shared_ptr<const void>> make_kernel(const Problem& problem,
                                                  const Config& config) const override {
    const FamilyInfo& info = family_->info();
    if (const Support legal = info.space->why_not(config, problem, info.fingerprint.hardware);
        !legal) {
      return fail(ErrorCode::kUnsupported, legal.reason());
    }
    const std::string text = to_text(info.config_schema, config);
    if (refused.contains(text)) {
      return fail(ErrorCode::kUnsupported, "refused");
    }
    return std::shared_ptr<const void>(std::make_shared<const std::string>(text));
  }
  std::set<std::string> refused;

 private:
  std::unique_ptr<CpuGemm> family_;
};

inline std::string text_of(const Dispatcher::Turn& turn) {
  return *static_cast<const std::string*>(turn.kernel());
}

inline Model shipped() {
  auto model = default_cpu_model("cpu-gemm", CpuIsa::kAvx512, 1);
  EXPECT_TRUE(model);
  return *model;
}

}  // namespace foretune
