#include "foretune/workflow/family_arguments.h"

#include <algorithm>
#include <utility>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/families.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/later_schema.h"

namespace foretune::workflow {
namespace {

constexpr std::int64_t kMaxBuildJobs = 1024;
constexpr std::int64_t kMaxThreads = 1'000'000;

}  // namespace

void FamilyArguments::visit(OptionList& list) {
  std::vector<std::string> names;
  for (const FamilyEntry* const entry : families()) {
    names.push_back(entry->name);
  }
  list.section("Family");
  list.add("family", family, "NAME", "kernel family").choose(std::move(names));
  visit_parameters(list, "all that the family has");
  list.add("build-jobs", build_jobs, "N",
           "number of kernels that may be built at once; 0 leaves it to the family")
      .at_least(0)
      .at_most(kMaxBuildJobs);
  payloads.visit(list);
}

void FamilyArguments::visit_known(OptionList& list, std::string_view origin, Condition condition) {
  list.section("Family", std::move(condition));
  visit_parameters(list, concat("as many as ", origin, " was measured with"));
}

void FamilyArguments::visit_parameters(OptionList& list, std::string_view all_threads) {
  list.add("family-data", family_data, "FILE", "data set that the recorded family replays");
  list.add("family-option", family_options, "KEY=VALUE",
           "set an option of the family; may be repeated");
  list.add("threads", threads, "N",
           concat("number of threads that a kernel may use; 0: ", all_threads))
      .at_least(0)
      .at_most(kMaxThreads);
}

FamilyArguments FamilyArguments::as_known(std::string family_name, const Fingerprint& known) const {
  FamilyArguments same = *this;
  same.family = std::move(family_name);
  const bool is_chosen =
      threads > 0 || std::any_of(family_options.begin(), family_options.end(),
                                 [](const std::string& o) { return o.starts_with("threads="); });
  const double cores = known.hardware.get(HardwareValue::kCores);
  if (!is_chosen && same.family == "cpu-gemm" && cores >= 1 && cores < read_cpu_facts().cores) {
    same.threads = static_cast<std::int64_t>(cores);
  }
  return same;
}

namespace {

Result<std::vector<std::pair<std::string, std::string>>> parse_parameters(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> parameters;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(ErrorCode::kInvalidArgument, "--family-option: '", text,
                  "' should have the form key=value");
    }
    parameters.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return parameters;
}

}  // namespace

bool is_on_device(std::string_view name) {
  const auto entries = families();
  return std::any_of(entries.begin(), entries.end(), [&](const FamilyEntry* entry) {
    return entry->name == name && entry->on_device;
  });
}

namespace {

Result<FamilyOptions> family_options(const FamilyArguments& arguments) {
  FamilyOptions options;
  options.data_path = arguments.family_data;
  options.build_jobs = static_cast<int>(arguments.build_jobs);
  options.threads = static_cast<int>(arguments.threads);
  options.payload_folders = arguments.payloads.folders;
  FORETUNE_TRY(options.parameters, parse_parameters(arguments.family_options));
  return options;
}

Result<LiveFamily> open_host_family(const FamilyArguments& arguments, const Fingerprint* known) {
  LiveFamily live;
  FORETUNE_TRY(live.options, family_options(arguments));
  const CpuFacts facts = read_cpu_facts();
  live.options.fingerprint = cpu_fingerprint(facts, CpuPeaks{});
  if (arguments.family == "cpu-gemm") {
    // The family's options may change the facts of the machine.
    FORETUNE_TRY(const auto family, create_family(arguments.family, live.options));
    live.options.fingerprint =
        known != nullptr && known->digest() == family->info().fingerprint.digest()
            ? *known
            : cpu_fingerprint(facts, measure_cpu_peaks());
  }
  FORETUNE_TRY(live.family, create_family(arguments.family, live.options));
  return live;
}

}  // namespace

Result<LiveFamily> open_family(const FamilyArguments& arguments, const Fingerprint* known,
                               const Invocation& invocation) {
  if (!is_on_device(arguments.family)) {
    return open_host_family(arguments, known);
  }
  LiveFamily live;
  FORETUNE_TRY(live.options, family_options(arguments));
  // Fails at once when the options are wrong or something is missing here.
  FORETUNE_TRY(live.family, create_family(arguments.family, live.options));
  FORETUNE_TRY(live.options.fingerprint,
               describe_device(worker_setup(arguments.family, live.options, invocation)));
  FORETUNE_TRY(live.family, create_family(arguments.family, live.options));
  return live;
}

Result<LiveFamily> open_family_of(const FamilyArguments& arguments, const Fingerprint& known) {
  LiveFamily live;
  FORETUNE_TRY(live.options, family_options(arguments));
  live.options.threads = 0;  // what was in force there, `known` says
  live.options.fingerprint = known;
  FORETUNE_TRY(live.family, create_detached_family(arguments.family, live.options));
  return live;
}

Result<LiveFamily> open_family_for(const FamilyArguments& arguments,
                                   const std::filesystem::path& journal,
                                   const Invocation& invocation) {
  if (!std::filesystem::exists(journal)) {
    return open_family(arguments, nullptr, invocation);
  }
  FORETUNE_TRY(const DatasetHeader header, read_dataset_header(journal));
  return open_family(arguments, &header.fingerprint, invocation);
}

Status check_model_fits(const Model& model, const FamilyInfo& info, const std::string& path) {
  if (model.family == info.name && model.config_schema == info.config_schema) {
    return {};
  }
  return fail(ErrorCode::kMismatch, path, " is a model for family '", model.family,
              "', not for this version of '", info.name, "'");
}

Result<Model> read_model_for(const FamilyInfo& info, const std::string& path) {
  FORETUNE_TRY(Model model, read_model(path));
  if (model.family == info.name && adds_labels_only(info.config_schema, model.config_schema)) {
    return with_later_schema(std::move(model), info.config_schema);
  }
  FORETUNE_TRY_STATUS(check_model_fits(model, info, path));
  return model;
}

WorkerSetup worker_setup(std::string_view family, const FamilyOptions& options,
                         const Invocation& invocation) {
  return {.worker_command = invocation.worker_command,
          .family = std::string(family),
          .family_options = options};
}

std::string refusals_text(const Refusals& refusals) {
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<std::string, std::uint64_t>> sorted(refusals.begin(), refusals.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second > b.second || (a.second == b.second && a.first < b.first);
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, sorted.size()); ++i) {
    out += concat(i == 0 ? "" : ", ", sorted[i].first, " (", sorted[i].second, ")");
  }
  return sorted.size() > kShown ? out + ", ..." : out;
}

Status check_supported(const Family& family, std::span<const Problem> problems) {
  Refusals refusals;
  for (const Problem& problem : problems) {
    const Support support = family.supports(problem);
    if (support) {
      return {};
    }
    ++refusals[support.reason()];
  }
  return fail(ErrorCode::kUnsupported, "the family ", family.info().name, " runs none of ",
              count_of(problems.size(), "problem"), ": ", refusals_text(refusals));
}

}  // namespace foretune::workflow
