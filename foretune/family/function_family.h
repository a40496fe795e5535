// Defines a family whose kernels are functions of this program. Nothing is prepared and nothing is
// on a device, so a space, data and a function suffice.
//
//   plugin.register_family(function_family(
//       {.name = "stencil2d",
//        .description = "stencils on this CPU",
//        .space = space,
//        .feature_table = "stencil2d-plain",
//        .defaults = {{16, 4}, {4, 4}},  // width, block
//        .make_data = [](const Problem& problem, std::uint64_t seed) { ... },
//        .bind = [](const Config& config, ProblemData& data) -> std::function<void()> { ... }}));
//
// Kernels use one thread. Errors: those of make_data(). Defaults that are not configs are left out.
// Thread safety: the functions may be called from several threads, like a Family's. Cost: a run is
// one call of a std::function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/family/family.h"

namespace foretune {

struct FunctionFamily {
  std::string name;
  std::string description;                          // one sentence
  std::shared_ptr<const CompiledSpace> space = {};  // determines type and schema, too
  std::string feature_table = {};
  // Default configs as values in the order of the parameters, best first. The first one that is
  // legal for a problem is what runs untuned.
  std::vector<std::vector<std::int32_t>> defaults = {};
  std::function<Result<std::unique_ptr<ProblemData>>(const Problem& problem, std::uint64_t seed)>
      make_data = {};
  // Returns the function to time. The data comes from make_data() and outlives the function.
  std::function<std::function<void()>(const Config& config, ProblemData& data)> bind = {};
};

namespace function_family_internal {

class FunctionRun final : public Run {
 public:
  explicit FunctionRun(std::function<void()> call) : call_(std::move(call)) {}
  void run() override { call_(); }

 private:
  std::function<void()> call_;
};

class Bindable final : public Artifact {
 public:
  Bindable(const FunctionFamily& parts, Config config)
      : bind_(parts.bind), config_(std::move(config)) {}
  Result<std::unique_ptr<Run>> bind(const Problem& /*problem*/, ProblemData& data) override {
    return std::make_unique<FunctionRun>(bind_(config_, data));
  }

 private:
  std::function<std::function<void()>(const Config& config, ProblemData& data)> bind_;
  Config config_;
};

class Functions final : public Family {
 public:
  Functions(FunctionFamily parts, const FamilyOptions& options) : parts_(std::move(parts)) {
    info_.name = parts_.name;
    info_.description = parts_.description;
    info_.problem_type = parts_.space->definition().problem_type;
    info_.config_schema = parts_.space->definition().schema;
    info_.space = parts_.space;
    info_.fingerprint = options.fingerprint;
    info_.feature_table = parts_.feature_table;
  }
  const FamilyInfo& info() const override { return info_; }
  Support supports(const Problem& problem) const override {
    return problem.type() == info_.problem_type
               ? Support::yes()
               : Support::no("the family ", info_.name, " is for problems of another type");
  }
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    FORETUNE_TRY(std::unique_ptr<Space> space,
                 ParametricSpace::bind(info_.space, problem, info_.fingerprint.hardware));
    return space;
  }
  std::vector<Config> default_configs(const Problem& problem) const override {
    const Hardware& hardware = info_.fingerprint.hardware;
    for (const std::vector<std::int32_t>& words : parts_.defaults) {
      Config config{.schema = info_.config_schema.id(), .words = Config::Words(words)};
      if (info_.space->why_not(config, problem, hardware)) {
        return {info_.space->canonical(std::move(config), problem, hardware)};
      }
    }
    return {};
  }
  std::string artifact_key(const Problem& /*problem*/, const Config& config) const override {
    return to_text(info_.config_schema, config);
  }
  Result<std::unique_ptr<Artifact>> prepare(const Problem& /*problem*/,
                                            const Config& config) const override {
    return std::make_unique<Bindable>(parts_, config);
  }
  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    return parts_.make_data(problem, seed);
  }

 private:
  FunctionFamily parts_;
  FamilyInfo info_;
};

}  // namespace function_family_internal

// Returns the row of the family, for register_family(). The family has no options of its own.
inline FamilyEntry function_family(FunctionFamily parts) {
  std::string name = parts.name;
  std::string description = parts.description;
  return {.name = std::move(name),
          .description = std::move(description),
          .available = [](const FamilyOptions& /*options*/) { return Support::yes(); },
          .create = [parts = std::move(parts)](
                        const FamilyOptions& options) -> Result<std::unique_ptr<Family>> {
            if (!options.parameters.empty()) {
              return fail(ErrorCode::kInvalidArgument, parts.name, " has no options");
            }
            return std::make_unique<function_family_internal::Functions>(parts, options);
          }};
}

}  // namespace foretune
