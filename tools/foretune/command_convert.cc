// foretune convert and foretune merge: convert a data set to another format, or several into one.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/load_recorded.h"
#include "foretune/hardware/device_profile.h"
#include "foretune/interop/ck/rocminfo.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct ConvertArguments {
  std::string input;
  std::string output;
  std::string from;
  std::string to;
  std::string family;
  std::string role;
  std::string device;
  std::string arch;
  std::string hardware;
  std::vector<std::string> merge_with;
  bool overwrite = false;
  void visit(OptionList& list) {
    list.add_positional("input", input, "file to read").require();
    list.add("output", output, "FILE", "file to write").require();
    list.add("from", from, "FORMAT", "format of the input (default: detected from its content)");
    list.add("to", to, "FORMAT", "format of the output (default: by its extension)");
    list.add("family", family, "NAME",
             "family name for formats that have none (default: recorded)");
    list.add("role", role, "ROLE", "role for formats that have none (default: training)")
        .choose({"training", "validation"});
    list.add("device", device, "NAME",
             concat("device on which a CSV file was measured that names none: ",
                    join(device_names(), ", ")));
    list.add("arch", arch, "NAME",
             "device on which CK Tile's benchmarks ran: gfx950, gfx942, gfx90a");
    list.add("hardware", hardware, "FILE", "output of rocminfo on that device");
    list.add("merge-with", merge_with, "FILE",
             "more files of this kind, or .ftd files; repeats become their median");
    list.add_switch("overwrite", overwrite, "replace an existing output");
  }
  [[nodiscard]] std::string family_name() const { return family.empty() ? "recorded" : family; }
};

struct Input {
  std::string path;
  ExchangeFormat format = ExchangeFormat::kForetune;
};

// --from is the format of the first file; those of further files are detected.
Result<std::vector<Input>> inputs_of(const ConvertArguments& arguments) {
  std::vector<Input> inputs{{.path = arguments.input}};
  for (const std::string& other : arguments.merge_with) {
    inputs.push_back({.path = other});
  }
  for (Input& input : inputs) {
    const bool is_named = &input == inputs.data() && !arguments.from.empty();
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
  bool is_nameless = false;
  for (const Input& input : inputs) {
    is_csv = is_csv || input.format == ExchangeFormat::kCsv;
    is_ck = is_ck || is_ck_format(input.format);
    is_nameless = is_nameless || is_csv || is_ck || is_document(input.format);
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
  return {};
}

void print_losses(const ImportReport& report) {
  for (const auto& [reason, count] : report.dropped) {
    print(concat("  dropped ", count_text(count), ": ", reason, "\n"));
  }
  for (const auto& [note, count] : report.notes) {
    print(concat("  kept ", count_text(count), ": ", note, "\n"));
  }
}

void print_report(const ImportReport& report) {
  print(concat(count_text(report.rows_read), " rows read, ", count_text(report.rows_kept),
               " kept\n"));
  print_losses(report);
}

Result<ExchangeFormat> output_format(const ConvertArguments& arguments) {
  if (!arguments.to.empty()) {
    return parse_exchange_format(arguments.to);
  }
  const std::string extension = std::filesystem::path(arguments.output).extension().string();
  if (extension == ".ftd") {
    return ExchangeFormat::kForetune;
  }
  if (extension.size() > 1) {
    if (auto format = parse_exchange_format(extension.substr(1))) {
      return format;
    }
  }
  return fail(
      ErrorCode::kInvalidArgument, "cannot tell the format of ", arguments.output,
      " from its name; say --to foretune, csv, json, msgpack, diode-json, diode-msgpack or ck-csv");
}

DatasetRole role_of(const ConvertArguments& arguments) {
  return arguments.role == "validation" ? DatasetRole::kValidation : DatasetRole::kTraining;
}

// Returns the facts of the command line, with the device of CK Tile's benchmarks if it names one.
Result<ImportFacts> facts_of(const ConvertArguments& arguments) {
  ImportFacts facts{
      .family = arguments.family_name(), .role = role_of(arguments), .fingerprint = {}};
  if (!arguments.hardware.empty()) {
    FORETUNE_TRY(const std::string text, read_text_file(arguments.hardware));
    auto found = parse_rocminfo(text, arguments.arch);
    if (!found) {
      return fail_because(found.error(), arguments.hardware);
    }
    facts.fingerprint = *std::move(found);
  } else if (!arguments.arch.empty()) {
    FORETUNE_TRY(facts.fingerprint, ck_fingerprint(arguments.arch));
  }
  return facts;
}

Result<Dataset> read_input(const ConvertArguments& arguments, const Input& input,
                           ImportReport& report) {
  if (input.format == ExchangeFormat::kCsv) {
    return import_csv_file(
        input.path,
        {.family = arguments.family_name(), .role = role_of(arguments), .device = arguments.device},
        &report);
  }
  FORETUNE_TRY(const ImportFacts facts, facts_of(arguments));
  return import_dataset(input.path, input.format, &report, facts);
}

Status merge_others(const ConvertArguments& arguments, std::span<const Input> others,
                    Dataset& dataset) {
  for (const Input& input : others) {
    ImportReport report;
    FORETUNE_TRY(const Dataset other, read_input(arguments, input, report));
    if (other.header().role != dataset.header().role) {
      return fail(ErrorCode::kMismatch, input.path, " is a ", to_string(other.header().role),
                  " set, the first is a ", to_string(dataset.header().role), " set");
    }
    if (const Status merged = dataset.merge(other); !merged) {
      return fail_because(merged.error(), input.path);
    }
    print(concat(input.path, ": "));
    print_report(report);
  }
  if (!others.empty()) {
    print(concat("merged ", count_text(dataset.deduplicate()), " repeats by their median\n"));
  }
  return {};
}

Status write_output(const Dataset& dataset, const std::string& path, ExchangeFormat format,
                    ImportReport& report) {
  if (format == ExchangeFormat::kForetune) {
    return write_dataset(dataset, path);
  }
  return export_dataset(dataset, path, format, &report);
}

Status refuse_existing(const std::string& path, bool overwrite) {
  if (!overwrite && std::filesystem::exists(path)) {
    return fail(ErrorCode::kInvalidArgument, path, " exists; --overwrite replaces it");
  }
  return {};
}

Result<int> convert(const ConvertArguments& arguments, const Invocation& /*invocation*/) {
  FORETUNE_TRY_STATUS(refuse_existing(arguments.output, arguments.overwrite));
  FORETUNE_TRY(const ExchangeFormat format, output_format(arguments));
  ImportReport report;
  FORETUNE_TRY(const std::vector<Input> inputs, inputs_of(arguments));
  FORETUNE_TRY_STATUS(check_facts(arguments, inputs));
  FORETUNE_TRY(Dataset dataset, read_input(arguments, inputs.front(), report));
  if (dataset.header().created_by.empty()) {
    dataset.mutable_header().created_by = concat("foretune convert ", arguments.input);
  }
  print_report(report);
  FORETUNE_TRY_STATUS(merge_others(arguments, std::span(inputs).subspan(1), dataset));
  if (dataset.holds_nothing()) {
    return fail(ErrorCode::kCorrupt, arguments.input,
                " holds no measurement, so there is nothing to write");
  }
  ImportReport written;
  FORETUNE_TRY_STATUS(write_output(dataset, arguments.output, format, written));
  print_losses(written);
  print(concat("wrote ", arguments.output, " (", to_string(format), ")\n"));
  return kExitOk;
}

struct MergeArguments {
  std::vector<std::string> inputs;
  std::string output;
  bool overwrite = false;
  void visit(OptionList& list) {
    list.add_positional("inputs", inputs, "data sets to merge").require();
    list.add("output", output, "FILE", "data set to write (.ftd)").require();
    list.add_switch("overwrite", overwrite, "replace an existing output");
  }
};

Result<int> merge(const MergeArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY_STATUS(refuse_existing(arguments.output, arguments.overwrite));
  std::optional<Dataset> all;
  for (const std::string& input : arguments.inputs) {
    FORETUNE_TRY(Dataset dataset, read_measurements(input, invocation));
    if (!all) {
      all.emplace(std::move(dataset));
      continue;
    }
    if (dataset.header().role != all->header().role) {
      return fail(ErrorCode::kMismatch, input, " is a ", to_string(dataset.header().role),
                  " set, the first is a ", to_string(all->header().role), " set");
    }
    if (const Status merged = all->merge(dataset); !merged) {
      return fail_because(merged.error(), input);
    }
  }
  if (all->holds_nothing()) {
    return fail(ErrorCode::kCorrupt, "there is no measurement in ", join(arguments.inputs, ", "));
  }
  const std::size_t before = all->size();
  const std::size_t removed = all->deduplicate();
  FORETUNE_TRY_STATUS(write_dataset(*all, arguments.output));
  print(concat(count_text(before), " measurements, ", count_text(removed),
               " of them repeats, merged by their median\nwrote ", arguments.output, "\n"));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_convert(OptionList& list) {
  return prepare_with<ConvertArguments, convert>(list);
}
std::function<int(const Invocation&)> prepare_merge(OptionList& list) {
  return prepare_with<MergeArguments, merge>(list);
}

}  // namespace foretune::cli
