// What several subcommands share: which family, which problems, where the data set goes.
// Thread safety: used by the main thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/journal.h"
#include "foretune/family/family.h"
#include "foretune/measure/measure.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/problem/sampler.h"
#include "foretune/select/select.h"
#include "tools/foretune/options.h"
#include "tools/foretune/payload_arguments.h"

namespace foretune::cli {

// --family and what it needs.
struct FamilyArguments {
  std::string family = "cpu-gemm";
  std::string family_data;
  std::vector<std::string> family_options;
  std::int64_t build_jobs = 0;
  std::int64_t threads = 0;
  PayloadArguments payloads;
  void visit(OptionList& list);
  // Where a model or a data set, which `origin` names, says which family. Without --payloads, which
  // says more than where a family looks.
  void visit_known(OptionList& list, std::string_view origin, Condition condition);
  // What opens the family as it was where `known` was read: kernels may use as many threads as
  // there, unless these arguments say how many.
  [[nodiscard]] FamilyArguments as_known(std::string family_name, const Fingerprint& known) const;

 private:
  // `all_threads`: what --threads 0 means.
  void visit_parameters(OptionList& list, std::string_view all_threads);
};

struct LiveFamily {
  std::shared_ptr<const Family> family;
  FamilyOptions options;
};
// Reads the machine's facts, or those of the family's device by a worker, and creates the family.
// Peaks are taken from `known` when it describes this machine, so that a resumed data set keeps one
// set of hardware values; else measured.
Result<LiveFamily> open_family(const FamilyArguments& arguments, const Fingerprint* known,
                               const Invocation& invocation);
// The family as it was where `known` was read, for its defaults and spaces: it may be unable to
// measure here.
Result<LiveFamily> open_family_of(const FamilyArguments& arguments, const Fingerprint& known);
// The same for a data set that may exist already.
Result<LiveFamily> open_family_for(const FamilyArguments& arguments,
                                   const std::filesystem::path& journal,
                                   const Invocation& invocation);
// Returns true for a family that runs on a device of its own, not on this CPU.
bool is_on_device(std::string_view name);
// Whether a model of `path` ranks the configs of this family. Errors: kMismatch.
Status check_model_fits(const Model& model, const FamilyInfo& info, const std::string& path);

// The configs of the model that it ranks highest on the problem, at most `top`.
std::vector<Config> best_ranked(const Selector& selector, const Problem& problem, std::size_t top);

// How to measure.
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
  // What the family's measurements are valid for: its limit of threads is the one in force. Errors:
  // kInvalidArgument for cold caches where nothing runs; kUnsupported where other work keeps more
  // cores busy than it may.
  [[nodiscard]] Result<Context> context(const FamilyInfo& info) const;
};
Result<std::unique_ptr<Measurer>> open_measurer(const LiveFamily& live, const Protocol& protocol,
                                                const Context& context,
                                                const Invocation& invocation);

// Returns those of the listed metrics that need a stage of their own. Errors: kNotFound with the
// metrics that the family has.
Result<std::vector<std::string>> evaluated_metrics(std::string_view text, const FamilyInfo& info);

// What was refused, by reason.
using Refusals = std::map<std::string, std::uint64_t>;
// "REASON (190), OTHER (3)": the most frequent first, and no more than three.
std::string refusals_text(const Refusals& refusals);
// Errors: kUnsupported, with the reasons, when the family supports none of the problems.
Status check_supported(const Family& family, std::span<const Problem> problems);

// Where a data set is kept, and where its export goes: `--output x.msgpack` keeps x.ftd and writes
// x.msgpack beside it.
struct OutputPaths {
  std::filesystem::path journal;
  std::optional<std::filesystem::path> exported;
  ExchangeFormat format = ExchangeFormat::kForetune;
};
Result<OutputPaths> output_paths(const std::string& output, const GlobalOptions& global);

// What a data set says of itself that this invocation creates.
DatasetHeader dataset_header(const FamilyInfo& info, DatasetRole role,
                             const Invocation& invocation);
// Creates the folder when it is missing, and warns of a torn end.
Result<std::unique_ptr<JournalWriter>> open_journal(const std::filesystem::path& path,
                                                    const DatasetHeader& header);

// Machine facts for the JSON envelope.
std::vector<std::pair<std::string, std::string>> machine_facts(const Fingerprint& fingerprint);

// Sentences about a busy or throttled machine, if there is anything to say.
std::vector<std::string> load_warnings();

// Returns what others do in a fifth of a second, while this process sleeps.
CpuLoad load_now();
// Cores that other work leaves to this process, at least one; a core that is less than half busy is
// free.
int free_cores(const CpuLoad& load, int cores);

}  // namespace foretune::cli
