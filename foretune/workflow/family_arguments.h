// The options that open a kernel family, and the family that they open.
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/measure/measure.h"
#include "foretune/model/model_file.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/payload_arguments.h"

namespace foretune::workflow {

// --family and the options that belong to it.
struct FamilyArguments {
  std::string family = "cpu-gemm";
  std::string family_data;
  std::vector<std::string> family_options;
  std::int64_t build_jobs = 0;
  std::int64_t threads = 0;
  PayloadArguments payloads;
  void visit(OptionList& list);
  // Declares the options when a model or data set, which `origin` names, determines the family.
  // Leaves out --payloads, which tells more than where a family looks for payloads.
  void visit_known(OptionList& list, std::string_view origin, Condition condition);
  // Returns arguments that open the family as it was when `known` was read: with the same number of
  // threads for kernels, unless these arguments set one.
  [[nodiscard]] FamilyArguments as_known(std::string family_name, const Fingerprint& known) const;

 private:
  // `all_threads`: the meaning of --threads 0, for the help.
  void visit_parameters(OptionList& list, std::string_view all_threads);
};

struct LiveFamily {
  std::shared_ptr<const Family> family;
  FamilyOptions options;
};
// Reads the machine's facts, or those of the family's device by a worker, and creates the family.
// Takes peaks from `known` when that describes this machine, so that a resumed data set keeps one
// set of hardware values; otherwise measures them.
Result<LiveFamily> open_family(const FamilyArguments& arguments, const Fingerprint* known,
                               const Invocation& invocation);
// Opens the family as it was when `known` was read, for its defaults and spaces. It may be unable
// to measure here.
Result<LiveFamily> open_family_of(const FamilyArguments& arguments, const Fingerprint& known);
// Opens the family as open_family() does, with the fingerprint of the data set `journal` if that
// exists.
Result<LiveFamily> open_family_for(const FamilyArguments& arguments,
                                   const std::filesystem::path& journal,
                                   const Invocation& invocation);
// Returns true for a family that runs on a device of its own, not on this CPU.
bool is_on_device(std::string_view name);
// Checks that the model read from `path` ranks the configs of this family. Errors: kMismatch.
Status check_model_fits(const Model& model, const FamilyInfo& info, const std::string& path);
// Reads a model for the family; one from before its configs had further labels becomes one of
// today. Errors: those of read_model() and check_model_fits().
Result<Model> read_model_for(const FamilyInfo& info, const std::string& path);

// Numbers of refused problems or configs by reason.
using Refusals = std::map<std::string, std::uint64_t>;
// Returns "REASON (190), OTHER (3)": the most frequent first, and at most three.
std::string refusals_text(const Refusals& refusals);
// Checks that the family supports any of the problems. Errors: kUnsupported, with the reasons.
Status check_supported(const Family& family, std::span<const Problem> problems);

// Returns the setup of a worker process that measures the family.
WorkerSetup worker_setup(std::string_view family, const FamilyOptions& options,
                         const Invocation& invocation);

}  // namespace foretune::workflow
