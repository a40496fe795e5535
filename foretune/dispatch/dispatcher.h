// Problem in, kernel out: decides once per problem which config of which family runs it, and keeps
// the kernel. In this order:
//
//   1. what was remembered from an earlier process, or measured in this one
//   2. the model's pick, or the next in its order that this machine can run
//   3. outside of what the model was trained on, the one of its portfolio that it ranks first
//   4. the family's textbook config, and last any legal one
//
// The families are asked in the order in which they were added, and one that does not support the
// problem is passed over before anything is scored.
//
// With `measure_top` above 0 the first calls of a problem are also trials: each runs one of the
// best-ranked configs on the caller's operands, which costs nothing but the difference to the best
// one, and the fastest stays. Trials end after `measure_top * measure_rounds` calls or
// `measure_seconds`, whichever comes first. What was measured can be saved and loaded.
//
// The dispatcher does not know what a kernel is: providers make them, typed fronts (GemmDispatcher)
// run them.
//
// Thread safety: all members may be called by any number of threads, and in a forked child, which
// knows what the parent knew at the fork. Cost: a known problem takes a look-up under a shared lock
// (about 100 ns), a new one what its scoring takes (milliseconds).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

// A family whose configs can be made into kernels.
class KernelProvider {
 public:
  virtual ~KernelProvider() = default;
  [[nodiscard]] virtual const Family& family() const = 0;
  // Errors: kUnsupported for a config that is not legal here or cannot be built.
  [[nodiscard]] virtual Result<std::shared_ptr<const void>> make_kernel(
      const Problem& problem, const Config& config) const = 0;
};

enum class ChoiceSource : std::uint8_t {
  kRemembered,  // loaded from a file of choices
  kMeasured,    // the fastest of the trials in this process
  kModel,
  kPortfolio,
  kDefault,
  kFirstLegal,
};
std::string_view to_string(ChoiceSource source);

struct DispatchOptions {
  int measure_top = 0;         // configs to try; 0 and 1 measure nothing
  int measure_rounds = 3;      // calls of each; at least 1
  double measure_seconds = 1;  // per problem
  // Beyond, the problems first asked for are forgotten.
  std::size_t max_problems = 4096;
  // Of what was measured or loaded the choices, without kernels; beyond, the oldest are forgotten.
  std::size_t max_remembered = 16384;
};

// What runs a problem, and why.
struct Decision {
  std::string family;
  Config config;
  std::string config_text;
  ChoiceSource source = ChoiceSource::kModel;
  std::string note;         // why not something better: the selector's or a family's refusal
  double measured_ns = -1;  // fastest call of the trials or what was remembered; -1 when unknown
  bool is_settled = true;   // false while trials go on
};

class Dispatcher {
 public:
  explicit Dispatcher(const DispatchOptions& options);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Problems that were asked for before are decided anew, but for what was measured. Errors:
  // kMismatch when the model is of another family, kind of problem or config schema.
  Status add(std::shared_ptr<const KernelProvider> provider, std::optional<Model> model);

  // The kernel for the next call of a problem.
  class Turn {
   public:
    [[nodiscard]] const void* kernel() const { return kernel_.get(); }
    [[nodiscard]] const std::shared_ptr<const void>& shared_kernel() const { return kernel_; }
    // Whether the call is a trial, whose duration report() wants.
    [[nodiscard]] bool is_trial() const { return trial_ >= 0; }

   private:
    friend class Dispatcher;
    std::shared_ptr<void> entry_;
    std::shared_ptr<const void> kernel_;
    int trial_ = -1;
  };
  // Errors: kUnsupported when no family runs the problem, with the reason of each. Every trial is
  // to be reported or abandoned: until then it counts as under way.
  Result<Turn> next(const Problem& problem);
  void report(const Turn& turn, double nanoseconds);
  void abandon(const Turn& turn);
  // Never a trial: what was chosen, or while trials go on the best so far, at first the model's
  // pick. Errors: as next().
  Result<Turn> best(const Problem& problem);

  // Errors: as next().
  Result<Decision> decision(const Problem& problem);

  // What was measured or remembered, also of problems forgotten since, as lines "family, problem,
  // config, nanoseconds" with tabs, under a head that names the machine; replaces the file at once.
  // Errors: kIo.
  Status save_choices(const std::filesystem::path& path) const;
  // How many were taken over: of more than `max_remembered` the last. Lines of families that are
  // not there are left. Errors: kIo, kCorrupt with the line's number, kMismatch for a file of
  // another machine; nothing is taken over then.
  Result<std::size_t> load_choices(const std::filesystem::path& path);
  // The same as text.
  [[nodiscard]] std::string choices_text() const;
  Result<std::size_t> take_choices(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
