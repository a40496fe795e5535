#include "foretune/workflow/conversion.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/load_recorded.h"
#include "foretune/graph/network_file.h"
#include "foretune/hardware/device_profile.h"
#include "foretune/interop/ck/rocminfo.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/network_files.h"
#include "foretune/workflow/output.h"
#include "foretune/workflow/outside_program.h"

namespace foretune::workflow {

namespace {

bool is_network_output(const ConvertArguments& arguments) {
  return arguments.to.empty() &&
         std::filesystem::path(arguments.output).extension() == graph::kNetworkExtension;
}

}  // namespace

void ConvertArguments::visit(OptionList& list) {
  list.add_positional("input", input, "file to read").require().also_by_name().short_as('i');
  list.add("output", output, "FILE", "file to write; .parquet takes foretune-parquet")
      .require()
      .short_as('o');
  list.add("from", from, "FORMAT", "format of the input (default: detected from its content)");
  list.add("to", to, "FORMAT", "format of the output (default: by its extension)");
  list.add("family", family, "NAME", "family name for formats that have none (default: recorded)");
  list.add("role", role, "ROLE", "role for formats that have none (default: training)")
      .choose({"training", "validation"});
  list.add("device", device, "NAME",
           concat("built-in device that completes a CSV file without a column device: ",
                  join(device_names(), ", ")));
  list.add("arch", arch, "NAME",
           "device on which CK Tile's benchmarks ran: gfx950, gfx942, gfx90a");
  list.add("hardware", hardware, "FILE", "output of rocminfo on that device");
  list.add_switch("capture-hw", capture_hw,
                  "run rocminfo here, where the benchmarks of CK Tile ran")
      .only({"without --hardware", [this] { return hardware.empty(); }});
  // Said by Composable Kernel's own converters. Kernels' names say it here.
  for (const char* const name : {"op-type", "dtype", "direction"}) {
    list.add(name, stated[name], "NAME", "what the kernels' names say")
        .hide()
        .unused("the names of the kernels say it");
  }
  payloads.visit(list);
  list.add("merge-with", merge_with, "FILE",
           "more files of this kind, or .ftd files; repeats become their median");
  list.add("input-shape", input_shapes, "NAME=EXTENTS",
           "shape for one image of an input that an ONNX file leaves open; may be repeated")
      .repeat()
      .only({"with an --output of .ftn", [this] { return is_network_output(*this); }});
  list.add_switch("overwrite", overwrite, "replace an existing output");
}

void MergeArguments::visit(OptionList& list) {
  list.add_positional("inputs", inputs, "data sets to merge").require();
  list.add("output", output, "FILE", "data set to write (.ftd)").require();
  list.add_switch("overwrite", overwrite, "replace an existing output");
}

namespace {

constexpr std::string_view kParquetExtension = ".parquet";

std::string family_name(const ConvertArguments& arguments) {
  return arguments.family.empty() ? "recorded" : arguments.family;
}

struct Input {
  std::string path;
  ExchangeFormat format = ExchangeFormat::kForetune;  // of Parquet that of CK Tile's CSV
  bool is_parquet = false;
};

// --from is the format of the first file; those of further files are detected.
Result<std::vector<Input>> inputs_of(const ConvertArguments& arguments) {
  std::vector<Input> inputs{{.path = arguments.input}};
  for (const std::string& other : arguments.merge_with) {
    inputs.push_back({.path = other});
  }
  for (Input& input : inputs) {
    const bool is_named = &input == inputs.data() && !arguments.from.empty();
    input.is_parquet = !is_named && is_parquet(input.path);
    if (input.is_parquet) {
      input.format = ExchangeFormat::kCkCsv;
      continue;
    }
    FORETUNE_TRY(input.format,
                 is_named ? parse_exchange_format(arguments.from) : detect_format(input.path));
  }
  return inputs;
}

// Returns true for torch-diode's documents and ours; reading them tells which of the two they are.
bool is_document(ExchangeFormat format) {
  return format == ExchangeFormat::kDiodeJson || format == ExchangeFormat::kDiodeMsgpack ||
         format == ExchangeFormat::kJson || format == ExchangeFormat::kMsgpack;
}

// Refuses options that state facts which the files themselves hold.
Status check_facts(const ConvertArguments& arguments, const std::vector<Input>& inputs) {
  bool is_csv = false;
  bool is_ck = false;
  bool is_schedules = false;
  bool is_nameless = false;
  for (const Input& input : inputs) {
    is_csv = is_csv || input.format == ExchangeFormat::kCsv;
    is_ck = is_ck || is_ck_format(input.format);
    is_schedules = is_schedules || input.format == ExchangeFormat::kScheduleCsv;
    is_nameless = is_nameless || is_csv || is_ck || is_schedules || is_document(input.format);
  }
  struct Fact {
    const char* name;
    const std::string& value;
    bool is_used;
    const char* phrase;
  };
  for (const Fact& fact :
       {Fact{"--family", arguments.family, is_nameless, "with CSV, torch-diode's and CK's files"},
        Fact{"--role", arguments.role, is_nameless, "with CSV, torch-diode's and CK's files"},
        Fact{"--device", arguments.device, is_csv, "with CSV files"},
        Fact{"--arch", arguments.arch, is_ck, "with files of CK Tile"},
        Fact{"--hardware", arguments.hardware, is_ck, "with files of CK Tile"}}) {
    if (!fact.value.empty() && !fact.is_used) {
      return without_effect({fact.name}, fact.phrase);
    }
  }
  if (!arguments.payloads.folders.empty() && !is_schedules) {
    return without_effect({"--payloads"}, "with tables of sparse schedules");
  }
  return arguments.capture_hw && !is_ck
             ? Status(without_effect({"--capture-hw"}, "with files of CK Tile"))
             : Status();
}

// Returns nothing for Parquet.
Result<std::optional<ExchangeFormat>> output_format(const ConvertArguments& arguments) {
  if (!arguments.to.empty()) {
    FORETUNE_TRY(const ExchangeFormat named, parse_exchange_format(arguments.to));
    return std::optional(named);
  }
  const std::string extension = std::filesystem::path(arguments.output).extension().string();
  if (extension == kParquetExtension) {
    return std::optional<ExchangeFormat>();
  }
  if (extension == ".ftd") {
    return std::optional(ExchangeFormat::kForetune);
  }
  if (extension.size() > 1) {
    if (const auto format = parse_exchange_format(extension.substr(1))) {
      return std::optional(*format);
    }
  }
  return fail(ErrorCode::kInvalidArgument, "cannot tell the format of ", arguments.output,
              " from its name; say --to foretune, csv, json, msgpack, diode-json, diode-msgpack or "
              "ck-csv, or "
              "end the name with .parquet");
}

DatasetRole role_of(const ConvertArguments& arguments) {
  return arguments.role == "validation" ? DatasetRole::kValidation : DatasetRole::kTraining;
}

Result<Fingerprint> device_in(const std::string& rocminfo, const std::string& arch,
                              std::string_view source) {
  auto found = parse_rocminfo(rocminfo, arch);
  return found ? std::move(found) : fail_because(found.error(), source);
}

// Returns the facts of the command line, with the device of CK Tile's benchmarks if it names one.
Result<ImportFacts> facts_of(const ConvertArguments& arguments, const Invocation& invocation) {
  ImportFacts facts{
      .family = family_name(arguments), .role = role_of(arguments), .fingerprint = {}};
  if (!arguments.hardware.empty()) {
    FORETUNE_TRY(const std::string text, read_text_file(arguments.hardware));
    FORETUNE_TRY(facts.fingerprint, device_in(text, arguments.arch, arguments.hardware));
    return facts;
  }
  if (arguments.capture_hw) {
    const Result<std::string> text = run_program({"rocminfo"});
    if (text) {
      FORETUNE_TRY(facts.fingerprint, device_in(*text, arguments.arch, "--capture-hw"));
      return facts;
    }
    invocation.warn(concat("--capture-hw: ", text.error().message,
                           ", so the data set has the known facts of ",
                           arguments.arch.empty() ? "the architecture" : arguments.arch));
  }
  if (!arguments.arch.empty()) {
    FORETUNE_TRY(facts.fingerprint, ck_fingerprint(arguments.arch));
  }
  return facts;
}

// Parquet holds what CK Tile's CSV does, and foretune-parquet reads it with the same facts.
Result<Dataset> read_parquet_input(const ConvertArguments& arguments, const std::string& path,
                                   const Invocation& invocation) {
  std::vector<std::string> options{"--family", family_name(arguments), "--role",
                                   std::string(to_string(role_of(arguments)))};
  for (const auto& [option, value] :
       {std::pair("--arch", &arguments.arch), std::pair("--hardware", &arguments.hardware)}) {
    if (!value->empty()) {
      options.insert(options.end(), {option, *value});
    }
  }
  return read_parquet(path, options, invocation);
}

Result<Dataset> read_input(const ConvertArguments& arguments, const Input& input,
                           const Invocation& invocation, ImportReport& report) {
  if (input.is_parquet) {
    FORETUNE_TRY(Dataset dataset, read_parquet_input(arguments, input.path, invocation));
    report.rows_read = dataset.size();
    report.rows_kept = dataset.size();
    return dataset;
  }
  if (input.format == ExchangeFormat::kCsv) {
    return import_csv_file(
        input.path,
        {.family = family_name(arguments), .role = role_of(arguments), .device = arguments.device},
        &report);
  }
  FORETUNE_TRY(ImportFacts facts, facts_of(arguments, invocation));
  std::shared_ptr<PayloadStore> payloads;
  if (!arguments.payloads.folders.empty()) {
    FORETUNE_TRY(payloads, arguments.payloads.open());
    facts.payloads = payloads.get();
  }
  return import_dataset(input.path, input.format, &report, facts);
}

// Both have the same role. `path` is that of `other`.
Status merge_into(Dataset& dataset, const Dataset& other, const std::string& path) {
  if (other.header().role != dataset.header().role) {
    return fail(ErrorCode::kMismatch, path, " is a ", to_string(other.header().role),
                " set, the first is a ", to_string(dataset.header().role), " set");
  }
  if (const Status merged = dataset.merge(other); !merged) {
    return fail_because(merged.error(), path);
  }
  return {};
}

Status write_output(const Dataset& dataset, const std::string& path,
                    std::optional<ExchangeFormat> format, const Invocation& invocation,
                    ImportReport& report) {
  // A script may name a folder that its own program would have made.
  std::error_code ignored;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  if (!format) {
    return write_parquet(dataset, path, invocation);
  }
  if (*format == ExchangeFormat::kForetune) {
    return write_dataset(dataset, path);
  }
  return export_dataset(dataset, path, *format, &report);
}

// Writes the network of a file. Options about data sets have no effect.
Result<Conversion> convert_network(const ConvertArguments& arguments) {
  for (const auto& [name, is_given] : {std::pair("--from", !arguments.from.empty()),
                                       std::pair("--family", !arguments.family.empty()),
                                       std::pair("--role", !arguments.role.empty()),
                                       std::pair("--device", !arguments.device.empty()),
                                       std::pair("--arch", !arguments.arch.empty()),
                                       std::pair("--hardware", !arguments.hardware.empty()),
                                       std::pair("--capture-hw", arguments.capture_hw),
                                       std::pair("--payloads", !arguments.payloads.folders.empty()),
                                       std::pair("--merge-with", !arguments.merge_with.empty())}) {
    if (is_given) {
      return without_effect({name}, "with data sets");
    }
  }
  FORETUNE_TRY(const NetworkFile file, open_network(arguments.input, arguments.input_shapes));
  FORETUNE_TRY_STATUS(graph::write_network(file.task.network, arguments.output));
  return Conversion{.format = std::string(graph::kNetworkExtension.substr(1))};
}

}  // namespace

Result<Conversion> run_conversion(const ConvertArguments& arguments, const Invocation& invocation,
                                  const ConvertHooks& hooks) {
  FORETUNE_TRY_STATUS(refuse_existing(arguments.output, arguments.overwrite));
  if (is_network_output(arguments)) {
    return convert_network(arguments);
  }
  Conversion out;
  FORETUNE_TRY(const std::optional<ExchangeFormat> format, output_format(arguments));
  out.format = format ? to_string(*format) : kParquetExtension.substr(1);
  FORETUNE_TRY(const std::vector<Input> inputs, inputs_of(arguments));
  FORETUNE_TRY_STATUS(check_facts(arguments, inputs));
  std::optional<Dataset> dataset;
  for (const Input& input : inputs) {
    ImportReport report;
    FORETUNE_TRY(Dataset read, read_input(arguments, input, invocation, report));
    if (dataset) {
      FORETUNE_TRY_STATUS(merge_into(*dataset, read, input.path));
    } else {
      dataset.emplace(std::move(read));
      if (dataset->header().created_by.empty()) {
        dataset->mutable_header().created_by = concat("foretune convert ", arguments.input);
      }
    }
    if (hooks.on_read) {
      hooks.on_read(input.path, report);
    }
  }
  if (inputs.size() > 1) {
    const std::size_t repeats = dataset->deduplicate();
    if (hooks.on_merged) {
      hooks.on_merged(repeats);
    }
  }
  if (dataset->holds_nothing()) {
    return fail(ErrorCode::kCorrupt, arguments.input,
                " holds no measurement, so there is nothing to write");
  }
  FORETUNE_TRY_STATUS(write_output(*dataset, arguments.output, format, invocation, out.written));
  return out;
}

Result<Merged> run_merge(const MergeArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY_STATUS(refuse_existing(arguments.output, arguments.overwrite));
  std::optional<Dataset> all;
  for (const std::string& input : arguments.inputs) {
    FORETUNE_TRY(Dataset dataset, read_measurements(input, invocation));
    if (all) {
      FORETUNE_TRY_STATUS(merge_into(*all, dataset, input));
    } else {
      all.emplace(std::move(dataset));
    }
  }
  if (all->holds_nothing()) {
    return fail(ErrorCode::kCorrupt, "there is no measurement in ", join(arguments.inputs, ", "));
  }
  Merged out{.measurements = all->size()};
  out.repeats = all->deduplicate();
  FORETUNE_TRY_STATUS(write_dataset(*all, arguments.output));
  return out;
}

}  // namespace foretune::workflow
