// The other side of a dispatcher: a provider describes a family of kernels and makes them. A front
// end describes each of its calls, asks the dispatcher for a kernel and runs it.
//
// A library of one's own derives from FamilyProvider and defines two functions. A library that
// chooses by itself (cuBLASLt) derives from KernelProvider and KernelMaker, so that its choice is
// what the dispatcher falls back to.
//
// Thread safety: providers are called by several threads at once; a maker belongs to one decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

enum class ChoiceSource : std::uint8_t {
  kRemembered,  // loaded from a file of choices
  kMeasured,    // the fastest of the trials in this process
  kModel,
  kPortfolio,
  kDefault,
  kFirstLegal,
  kFastModel,  // the distilled model
  kHeuristic,  // the choice of the provider's own library
  kVariant,    // close to the family's textbook config, for trials without a model
};
std::string_view to_string(ChoiceSource source);

// One call as its front end describes it. Nothing is owned.
struct DispatchCall {
  DispatchCall() = default;
  // A call about which its problem says everything.
  DispatchCall(const Problem& asked) : problem(&asked) {}  // NOLINT(google-explicit-constructor)

  // Null: models and files of choices know nothing about such calls.
  const Problem* problem = nullptr;
  // Everything beside the problem in which calls with the same kernel must agree (strides,
  // alignment, the device).
  std::span<const std::uint64_t> variant = {};
  // Facts for the provider, of a type that it and the front end agree on.
  const void* details = nullptr;
  // Runs no trials: one config runs all calls of the kind.
  bool is_steady = false;
};

// A way to run a call without a model.
struct Fallback {
  Config config;                       // empty: the library chooses at every call
  std::shared_ptr<const void> kernel;  // null: the maker makes it from the config
  ChoiceSource source = ChoiceSource::kDefault;
};

// The config that runs without Foretune, which a pick has to beat by the dispatcher's margin.
struct Baseline {
  Config config;  // as the pool of a model lists it
  Config scored;  // the config behind it for this call
};

// An answer of the provider's own library for this call. The model of such a provider knows it by
// two names: its place among the answers ("rank 1 of a"), whose score is an average over problems,
// and the config behind it.
struct LibraryAnswer {
  Config name;
  Config config;
  double weight = 1;  // of the name's score in the mean of both; the config's is 1
};

// Makes the kernels of one call, for one decision about it.
class KernelMaker {
 public:
  virtual ~KernelMaker() = default;
  // Returns no for a config that the call itself rules out. It takes little time, and a model's
  // ranking is followed past any number of them.
  virtual Support allows(const Config& /*config*/) { return Support::yes(); }
  // Errors: kUnsupported with the reason for which the config cannot run here.
  virtual Result<std::shared_ptr<const void>> make(const Config& config) = 0;
  // Returns what runs the call where no model does, best first: `wanted`, more or all that there
  // are.
  virtual std::vector<Fallback> fallbacks(std::size_t wanted) = 0;
  // Returns a way to run a call that nothing else runs. It is asked for only then, since it may
  // take long.
  virtual std::optional<Fallback> last_resort() { return std::nullopt; }
  virtual std::optional<Baseline> baseline() { return std::nullopt; }
  // Returns what a model ranks together with its pool, the better-known name of an answer first.
  virtual std::vector<LibraryAnswer> answers() { return {}; }
  // Returns false after an error that says nothing about later calls, such as a lack of memory.
  [[nodiscard]] virtual bool may_be_kept() const { return true; }
};

class KernelProvider {
 public:
  virtual ~KernelProvider() = default;
  [[nodiscard]] virtual const FamilyInfo& info() const = 0;
  // Returns no, with the reason, for calls that none of its kernels runs.
  [[nodiscard]] virtual Support supports(const DispatchCall& call) const = 0;
  // Returns true when models of this family, which have its config schema, may rank its configs.
  [[nodiscard]] virtual bool takes_models_of(std::string_view /*family*/) const { return true; }
  // Returns no, with the reason, for calls of which its model knows nothing.
  [[nodiscard]] virtual Support follows_model(const DispatchCall& /*call*/) const {
    return Support::yes();
  }
  // Returns true when its fallbacks are better than the model's portfolio where the model abstains.
  // The first of them then takes part in all trials.
  [[nodiscard]] virtual bool trusts_fallbacks() const { return false; }
  // The call outlives the maker.
  [[nodiscard]] virtual std::unique_ptr<KernelMaker> maker(const DispatchCall& call) const = 0;
};

// Provides the kernels of a family. Falls back to its textbook configs, for trials to their
// variants, and last to any legal config.
class FamilyProvider : public KernelProvider {
 public:
  [[nodiscard]] virtual const Family& family() const = 0;
  // Errors: kUnsupported for a config that is not legal here or cannot be built.
  [[nodiscard]] virtual Result<std::shared_ptr<const void>> make_kernel(
      const Problem& problem, const Config& config) const = 0;
  // Returns configs that trials compare with the textbook's where no model ranks them.
  [[nodiscard]] virtual std::vector<Config> variants(const Problem& /*problem*/) const {
    return {};
  }

  [[nodiscard]] const FamilyInfo& info() const final { return family().info(); }
  [[nodiscard]] bool takes_models_of(std::string_view name) const final {
    return name == info().name;
  }
  [[nodiscard]] Support supports(const DispatchCall& call) const final;
  [[nodiscard]] std::unique_ptr<KernelMaker> maker(const DispatchCall& call) const final;
};

// Returns the neighbours of the family's textbook config in an order drawn once and for all, for
// `trials` that are more than its textbook configs: a list in their own order would change the
// first parameters only.
std::vector<Config> drawn_neighbours(const Family& family, const Problem& problem, int trials);

}  // namespace foretune
