// The options of measuring, and the measurer that they open.
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/family/family.h"
#include "foretune/hardware/cpu.h"
#include "foretune/measure/measure.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

// Options of measuring.
struct MeasureArguments {
  bool cold_cache = false;
  bool keep_samples = false;
  double time_limit = 20;
  double censor_factor = 2;
  std::int64_t warmup = 0;
  std::int64_t repeat = 0;
  std::optional<double> max_load;
  void visit(OptionList& list, Condition condition = {});
  [[nodiscard]] Protocol protocol(std::uint64_t seed) const;
  // Returns the context that the family's measurements are valid for, with the family's limit of
  // threads. Errors: kInvalidArgument for cold caches when nothing runs; kUnsupported when other
  // work keeps more cores busy than --max-load.
  [[nodiscard]] Result<Context> context(const FamilyInfo& info) const;
};
Result<std::unique_ptr<Measurer>> open_measurer(const LiveFamily& live, const Protocol& protocol,
                                                const Context& context,
                                                const Invocation& invocation);

// Returns those of the listed metrics that need a stage of their own. Errors: kNotFound with the
// metrics that the family has.
Result<std::vector<std::string>> evaluated_metrics(std::string_view text, const FamilyInfo& info);

// Returns warnings of a busy or throttled machine, if any.
std::vector<std::string> load_warnings();

// Returns the load of other processes over a fifth of a second, while this process sleeps.
CpuLoad load_now();
// Returns the number of cores that other work leaves free, at least one; a core that is less than
// half busy is free.
int free_cores(const CpuLoad& load, int cores);

}  // namespace foretune::workflow
