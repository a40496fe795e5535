// foretune doctor reports the capabilities of this machine. Also the small subcommands: completion,
// reference, worker.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "foretune/base/figures.h"
#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/families/families.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/measure/measure.h"
#include "foretune/plugin/shared_object.h"
#include "foretune/version.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/reference.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct DoctorArguments {
  std::string json;
  bool no_peaks = false;
  void visit(OptionList& list) {
    list.add("json", json, "FILE", "write the figures as JSON");
    list.add_switch("no-peaks", no_peaks, "do not measure peaks (half a second)");
  }
};

std::string row(std::string_view name, std::string_view value) {
  std::string left(name);
  left.resize(22, ' ');
  return concat("  ", left, value, "\n");
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes <= 0) {
    return "unknown";
  }
  return bytes >= (std::int64_t{1} << 20) ? concat(bytes >> 20, " MiB")
                                          : concat(bytes >> 10, " KiB");
}

std::string first_line(const std::filesystem::path& path) {
  const auto text = read_text_file(path);
  return text ? std::string(trim(split(*text, '\n').front())) : std::string();
}

// Returns true when a shared library can be loaded; unloads it again at once.
bool has_library(const char* name) {
  void* handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    return false;
  }
  ::dlclose(handle);
  return true;
}

void print_cpu(const CpuFacts& facts) {
  print("CPU\n");
  print(row("model", facts.model));
  print(row("instruction sets", concat(to_string(facts.isa), ": ", join(facts.features, " "))));
  print(row("cores", concat(facts.cores)));
  print(row("caches", concat("L1d ", bytes_text(facts.l1d_bytes), ", L2 ",
                             bytes_text(facts.l2_bytes), ", L3 ", bytes_text(facts.l3_bytes))));
  if (!facts.hypervisor.empty()) {
    print(row("virtual machine", concat(facts.hypervisor, ": neighbours may disturb times")));
  }
}

void print_conditions(const CpuLoad& load, int cores) {
  print("Conditions\n");
  print(row("load average", fixed(load.load_average, 2)));
  print(row("free cores", concat(free_cores(load, cores))));
  print(row("frequency now",
            load.frequency_mhz > 0 ? concat(fixed(load.frequency_mhz, 0), " MHz") : "unknown"));
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  print(row("governor", governor.empty() ? "not visible here" : governor));
  const std::string turbo = first_line("/sys/devices/system/cpu/intel_pstate/no_turbo");
  print(row("turbo", turbo.empty() ? "not visible here" : turbo == "0" ? "on" : "off"));
  for (const std::string& warning : load_warnings()) {
    warn(warning);
  }
}

void print_gpu() {
  struct Library {
    const char* file;
    std::string_view what;
  };
  static constexpr std::array kLibraries{
      Library{"libcuda.so.1", "NVIDIA driver"}, Library{"libnvidia-ml.so.1", "NVIDIA management"},
      Library{"libcublasLt.so.13", "cuBLASLt 13"}, Library{"libcublasLt.so.12", "cuBLASLt 12"},
      Library{"libcudnn.so.9", "cuDNN 9"}};
  print("GPU libraries (loaded only by workers)\n");
  for (const Library& library : kLibraries) {
    print(row(library.what, has_library(library.file) ? library.file : "not found"));
  }
  print(row("device", std::filesystem::exists("/dev/nvidia0") ? "/dev/nvidia0" : "none"));
}

void print_families(const FamilyOptions& options) {
  print("Families\n");
  for (const FamilyEntry* const entry : families()) {
    const Support available = entry->available(options);
    print(row(entry->name,
              available ? entry->description : concat("not here: ", available.reason())));
  }
}

void print_feature_tables() {
  print("Feature tables\n");
  for (const FeatureTable* table : feature_tables()) {
    const bool is_foreign = !foreign_order(*table).empty();
    print(
        row(table->name(), concat(count_of(table->columns().size(), "column"), ": ",
                                  feature_count(*table, FeatureKind::kProblem), " of the problem, ",
                                  feature_count(*table, FeatureKind::kConfig), " of the config, ",
                                  feature_count(*table, FeatureKind::kInteraction), " of both",
                                  is_foreign ? "; those of models trained elsewhere" : "")));
  }
}

void print_plugins() {
  const std::vector<LoadedPlugin> plugins = loaded_plugins();
  if (plugins.empty()) {
    return;
  }
  print("Plug-ins\n");
  for (const LoadedPlugin& plugin : plugins) {
    print(row(plugin.path.filename().string(), plugin.path.string()));
    print(
        row("", plugin.added.empty() ? "adds nothing" : concat("adds ", join(plugin.added, ", "))));
  }
}

Result<int> doctor(const DoctorArguments& arguments, const Invocation& invocation) {
  print(concat("foretune ", kVersion, "\n"));
  const CpuFacts facts = read_cpu_facts();
  print_cpu(facts);
  CpuPeaks peaks;
  if (!arguments.no_peaks) {
    peaks = measure_cpu_peaks();
    print("Measured peaks\n");
    print(row("multiply-adds", concat(fixed(peaks.fma_gflops, 1), " GFLOP/s, one core, f32")));
    print(row("memory, one core", concat(fixed(peaks.bandwidth_gbs, 1), " GB/s")));
    print(row("memory, all cores", concat(fixed(peaks.bandwidth_all_gbs, 1), " GB/s")));
    print(row("clock", concat(fixed(peaks.clock_mhz, 0), " MHz")));
  }
  const CpuLoad load = load_now();
  print_conditions(load, facts.cores);
  print_gpu();
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(facts, peaks);
  print_families(options);
  print_feature_tables();
  print_plugins();
  if (arguments.json.empty()) {
    return kExitOk;
  }
  const Figures figures{
      .name = "doctor",
      .metrics = {{"cores", static_cast<double>(facts.cores)},
                  {"fma_gflops", peaks.fma_gflops},
                  {"bandwidth_gbs", peaks.bandwidth_gbs},
                  {"bandwidth_all_gbs", peaks.bandwidth_all_gbs},
                  {"clock_mhz", peaks.clock_mhz},
                  {"load_average", load.load_average},
                  {"free_cores", static_cast<double>(free_cores(load, facts.cores))}},
      .machine = machine_facts(options.fingerprint),
      .command = invocation.command_line};
  FORETUNE_TRY_STATUS(figures.write(arguments.json));
  return kExitOk;
}

struct CompletionArguments {
  std::string shell;
  void visit(OptionList& list) {
    list.add_positional("shell", shell, "bash, zsh or fish").require();
  }
};

Result<int> completion(const CompletionArguments& arguments, const Invocation& /*invocation*/) {
  FORETUNE_TRY(const std::string script, completion_script(arguments.shell));
  print(script);
  return kExitOk;
}

struct NoArguments {
  void visit(OptionList& /*list*/) {}
};

struct ReferenceArguments {
  std::string output;
  std::string man;
  void visit(OptionList& list) {
    list.add("output", output, "DIR", "write the pages of the documentation into this folder");
    list.add("man", man, "DIR", "write the pages of man into this folder");
  }
};

Result<int> reference(const ReferenceArguments& arguments, const Invocation& /*invocation*/) {
  if (arguments.output.empty() && arguments.man.empty()) {
    return fail(ErrorCode::kInvalidArgument, "reference needs --output DIR or --man DIR");
  }
  if (!arguments.output.empty()) {
    FORETUNE_TRY_STATUS(write_pages(markdown_reference(), arguments.output));
  }
  if (!arguments.man.empty()) {
    FORETUNE_TRY_STATUS(write_pages(manual_pages(), arguments.man));
  }
  return kExitOk;
}

Result<int> worker(const NoArguments& /*arguments*/, const Invocation& /*invocation*/) {
  return run_worker(STDIN_FILENO, STDOUT_FILENO, &create_family);
}

}  // namespace

std::function<int(const Invocation&)> prepare_doctor(OptionList& list) {
  return prepare_with<DoctorArguments, doctor>(list);
}
std::function<int(const Invocation&)> prepare_completion(OptionList& list) {
  return prepare_with<CompletionArguments, completion>(list);
}
std::function<int(const Invocation&)> prepare_reference(OptionList& list) {
  return prepare_with<ReferenceArguments, reference>(list);
}
std::function<int(const Invocation&)> prepare_worker(OptionList& list) {
  return prepare_with<NoArguments, worker>(list);
}

}  // namespace foretune::cli
