// A family for tests that passes every call to another one; a test overrides what shall differ.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "foretune/family/family.h"

namespace foretune::testing_support {

// Passes on what a family must answer; the rest has the answers of Family.
class ForwardingFamily : public Family {
 public:
  explicit ForwardingFamily(std::unique_ptr<Family> family) : family_(std::move(family)) {}
  const FamilyInfo& info() const override { return family_->info(); }
  Support supports(const Problem& problem) const override { return family_->supports(problem); }
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    return family_->space(problem);
  }
  std::string artifact_key(const Problem& problem, const Config& config) const override {
    return family_->artifact_key(problem, config);
  }
  Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                            const Config& config) const override {
    return family_->prepare(problem, config);
  }
  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    return family_->make_data(problem, seed);
  }

 private:
  std::unique_ptr<Family> family_;
};

}  // namespace foretune::testing_support
