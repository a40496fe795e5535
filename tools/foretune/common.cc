#include "tools/foretune/common.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <thread>
#include <unordered_set>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/families/families.h"
#include "foretune/hardware/cpu.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/select/generate.h"
#include "foretune/tune/collect.h"
#include "foretune/tune/tune_problem.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

constexpr std::int64_t kMostBuildJobs = 1024;
constexpr std::int64_t kMostThreads = 1'000'000;
constexpr std::int64_t kMostRuns = 1'000'000;  // of --warmup and --repeat

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
           "kernels that a family which builds them may compile at once; 0 leaves it to the family")
      .at_least(0)
      .at_most(kMostBuildJobs);
  payloads.visit(list);
}

void FamilyArguments::visit_known(OptionList& list, std::string_view origin, Condition condition) {
  list.section("Family", std::move(condition));
  visit_parameters(list, concat("as many as ", origin, " was measured with"));
}

void FamilyArguments::visit_parameters(OptionList& list, std::string_view all_threads) {
  list.add("family-data", family_data, "FILE", "measurements that the recorded family replays");
  list.add("family-option", family_options, "KEY=VALUE", "parameter of the family");
  list.add("threads", threads, "N", concat("threads that a kernel may use; 0: ", all_threads))
      .at_least(0)
      .at_most(kMostThreads);
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

WorkerSetup worker_setup(std::string_view family, const FamilyOptions& options,
                         const Invocation& invocation) {
  return {.worker_command = invocation.worker_command,
          .family = std::string(family),
          .family_options = options};
}

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
    // What the options take from the machine counts too.
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
  // Says at once what is wrong with the options or missing here.
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

std::vector<Config> best_ranked(const Selector& selector, const Problem& problem, std::size_t top) {
  if (needs_generating(selector.model())) {
    const auto found = generate_configs(selector.model(), problem, {.kept = top});
    return found ? found->configs : std::vector<Config>();
  }
  std::vector<Config> configs;
  for (const RankedCandidate& ranked : selector.rank(problem)) {
    if (configs.size() == top) {
      break;
    }
    configs.push_back(selector.config(ranked.candidate));
  }
  return configs;
}

CpuLoad load_now() {
  CpuLoadMeter meter;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return meter.read();
}

int free_cores(const CpuLoad& load, int cores) {
  return std::clamp(static_cast<int>(std::floor(cores - load.other_cores + 0.5)), 1, cores);
}

void MeasureArguments::visit(OptionList& list, Condition condition) {
  list.section("Measuring", std::move(condition));
  list.add_switch("cold-cache", cold_cache, "evict the caches before every run");
  list.add_switch("keep-samples", keep_samples, "store every window, not only the statistics");
  list.add("time-limit", time_limit, "SECONDS", "of one measurement; then its worker is killed")
      .at_least(0);
  list.add("censor-factor", censor_factor, "X",
           "stop a config early that is slower than X times the best so far; 0 never does")
      .at_least(0);
  list.add("warmup", warmup, "N",
           "make at least N runs before the first timed one, and for 0.5 ms in any case")
      .at_least(0)
      .at_most(kMostRuns);
  list.add("repeat", repeat, "N",
           "time N windows of every config that is not stopped early; 0 takes 5 to 15, within "
           "0.3 s")
      .at_least(0)
      .at_most(kMostRuns);
  list.add("max-load", max_load, "CORES", "fail when other work keeps more than CORES cores busy")
      .at_least(0);
}

Protocol MeasureArguments::protocol(std::uint64_t seed) const {
  Protocol protocol;
  protocol.cache = cold_cache ? CacheState::kCold : CacheState::kWarm;
  protocol.keep_samples = keep_samples;
  protocol.time_limit_s = time_limit;
  protocol.censor_factor = censor_factor;
  protocol.data_seed = seed;
  protocol.warmup_runs = static_cast<int>(std::max<std::int64_t>(1, warmup));
  if (repeat > 0) {
    protocol.windows = static_cast<int>(repeat);
    protocol.max_windows = protocol.windows;
    protocol.max_total_ns = std::numeric_limits<double>::infinity();
  }
  return protocol;
}

Result<Context> MeasureArguments::context(const FamilyInfo& info) const {
  if (cold_cache && info.simulated) {
    return fail(ErrorCode::kInvalidArgument, "the family ", info.name,
                " runs nothing, so --cold-cache would change no time");
  }
  if (max_load) {
    if (info.simulated) {
      return fail(ErrorCode::kInvalidArgument, "the family ", info.name,
                  " runs nothing, so nothing disturbs it and --max-load would change nothing");
    }
    const double busy = load_now().other_cores;
    if (busy > *max_load) {
      return fail(ErrorCode::kUnsupported, "other work keeps ", fixed(busy, 1), " of ",
                  read_cpu_facts().cores, " cores busy, more than --max-load ", fixed(*max_load, 1),
                  ": times measured beside it would say little");
    }
  }
  Context context;
  context.machine = info.fingerprint.digest();
  context.device = info.fingerprint.device;
  context.threads = static_cast<std::int32_t>(info.max_threads);
  context.cache = cold_cache ? CacheState::kCold : CacheState::kWarm;
  return context;
}

Result<std::unique_ptr<Measurer>> open_measurer(const LiveFamily& live, const Protocol& protocol,
                                                const Context& context,
                                                const Invocation& invocation) {
  if (!live.family->info().needs_worker) {
    return make_local_measurer(live.family, protocol, context);
  }
  return make_worker_measurer(worker_setup(live.family->info().name, live.options, invocation),
                              protocol, context);
}

Result<std::vector<std::string>> evaluated_metrics(std::string_view text, const FamilyInfo& info) {
  Objective named;
  for (const std::string_view name : split(text, ',')) {
    if (!trim(name).empty()) {
      named.targets.emplace_back(trim(name));
    }
  }
  FORETUNE_TRY_STATUS(check_objective(named, info));
  std::erase_if(named.targets, [&](const std::string& name) {
    const MetricInfo* const metric = find_metric(info.metrics, name);
    return metric == nullptr || metric->stage != MetricStage::kEvaluation;
  });
  return named.targets;
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
              problems.size(),
              problems.size() == 1 ? " problem: " : " problems: ", refusals_text(refusals));
}

Result<OutputPaths> output_paths(const std::string& output, const GlobalOptions& global) {
  if (output.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--output is empty");
  }
  OutputPaths paths;
  const std::filesystem::path path(output);
  FORETUNE_TRY(paths.format, parse_exchange_format(global.format));
  paths.journal = path;
  paths.journal.replace_extension(".ftd");
  if (paths.format == ExchangeFormat::kForetune) {
    if (path.extension() != ".ftd" && !path.extension().empty()) {
      return fail(ErrorCode::kInvalidArgument, "--output ", output,
                  " is not a .ftd file; to write it as well, say --format csv, json or msgpack");
    }
    return paths;
  }
  paths.exported = path;
  if (path.extension() == ".ftd" || path.extension().empty()) {
    paths.exported->replace_extension(concat(".", to_string(paths.format)));
  }
  return paths;
}

DatasetHeader dataset_header(const FamilyInfo& info, DatasetRole role,
                             const Invocation& invocation) {
  DatasetHeader header = header_of(info);
  header.role = role;
  header.seed = static_cast<std::uint64_t>(invocation.global->seed);
  header.created_by = invocation.command_line;
  return header;
}

Result<std::unique_ptr<JournalWriter>> open_journal(const std::filesystem::path& path,
                                                    const DatasetHeader& header) {
  if (path.has_parent_path()) {
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
  }
  FORETUNE_TRY(auto journal, JournalWriter::open(path, header));
  if (journal->recovered_bytes() > 0) {
    warn(concat(path.string(), " ended in a torn record of ", journal->recovered_bytes(),
                " bytes, which was cut off"));
  }
  return journal;
}

std::vector<std::pair<std::string, std::string>> machine_facts(const Fingerprint& fingerprint) {
  return {{"device", fingerprint.device},
          {"isa", fingerprint.isa},
          {"system", fingerprint.system},
          {"hardware", fingerprint.hardware.text()}};
}

std::vector<std::string> load_warnings() {
  const CpuLoad load = load_now();
  const int cores = read_cpu_facts().cores;
  if (!load.is_disturbed(cores)) {
    return {};
  }
  const int free = free_cores(load, cores);
  return {concat("other work keeps ", fixed(load.other_cores, 1), " of ", cores,
                 " cores busy; times that it disturbs are taken again, or marked",
                 free < cores ? concat(" (--threads ", free, " stays off its cores)") : "")};
}

}  // namespace foretune::cli
