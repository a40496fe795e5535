// foretune inspect: prints the content of a data set or a model file.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/significant.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/metric_view.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/model/joint_model.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/model_scorer.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/network_files.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/inspect_network.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct InspectArguments {
  std::string file;
  std::string problem;
  std::vector<std::string> input_shapes;
  std::int64_t top = 10;
  std::string json;
  void visit(OptionList& list) {
    list.add_positional("file", file, "data set, model or network (.ftn, .ftt, .onnx)").require();
    list.add("problem", problem, "TEXT", "list the measurements of one problem, fastest first");
    list.add("top", top, "N", "number of measurements to list")
        .at_least(1)
        .only({"with --problem", [this] { return !problem.empty(); }});
    list.add("input-shape", input_shapes, "NAME=EXTENTS",
             "shape for one image of an input that an ONNX file leaves open; may be repeated")
        .repeat();
    list.add("json", json, "FILE", "write the counts as JSON");
  }
};

std::string row(std::string_view name, std::string_view value) {
  std::string left(name);
  left.resize(std::max<std::size_t>(20, left.size() + 1), ' ');
  return concat("  ", left, value, "\n");
}

std::string schema_text(const ConfigSchema& schema) {
  if (schema.kind == SchemaKind::kSequence) {
    return concat(schema.name, " v", schema.version, " (sequences)");
  }
  std::string names;
  for (const Parameter& parameter : schema.parameters) {
    names += concat(names.empty() ? "" : " ", parameter.name);
  }
  return concat(schema.name, " v", schema.version, " (", names, ")");
}

// Returns "time_ns, psnr_db:maximise:dB".
std::string metrics_text(const Dataset& dataset) {
  std::vector<std::string> texts;
  for (const MetricInfo& metric : dataset.present_metrics()) {
    texts.push_back(to_text(metric));
  }
  return texts.empty() ? "none" : join(texts, ", ");
}

void print_machines(std::span<const Fingerprint> machines) {
  for (const Fingerprint& machine : machines) {
    print(row("machine", machine.device.empty() ? std::string("unknown")
                                                : concat(machine.device, " (digest ",
                                                         hex_text(machine.digest()), ")")));
    print(row("hardware", machine.hardware.text()));
  }
}

Status list_problem(const Dataset& dataset, const std::string& text, std::size_t top) {
  FORETUNE_TRY(const Problem problem, Problem::parse(text));
  const auto found = std::find(dataset.problems().begin(), dataset.problems().end(), problem);
  if (found == dataset.problems().end()) {
    return fail(ErrorCode::kNotFound, "the data set has no measurement of ", problem.shown_text());
  }
  const auto id = static_cast<std::uint32_t>(found - dataset.problems().begin());
  std::vector<RowIndex> rows;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    if (dataset.rows()[i].problem == id) {
      rows.push_back(i);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [&](RowIndex a, RowIndex b) {
    const auto key = [&](RowIndex i) {
      const Dataset::Row& row = dataset.rows()[i];
      return std::tuple(!row.has_time(), row.outcome, row.time_ns);
    };
    return key(a) < key(b);
  });
  print(concat(problem.shown_text(), ": ", count_of(rows.size(), "measurement"), "\n"));
  for (std::size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const Dataset::Row& measured = dataset.rows()[rows[i]];
    std::string values =
        measured.has_time() ? time_text(static_cast<double>(measured.time_ns))
        : measured.outcome == Outcome::kOk
            ? std::string("no time")
            : concat(to_string(measured.outcome), " (", dataset.reason(measured.reason), ")");
    for (const Dataset::ExtraMetric& extra : dataset.extras(rows[i])) {
      const MetricInfo& info = dataset.metric(extra.metric);
      values += concat("  ", info.name, " ", significant(extra.value, 6),
                       info.unit.empty() ? "" : " ", info.unit);
    }
    print(concat("  ", measured.outcome == Outcome::kCensored ? "> " : "", values, "  ",
                 shown_text(dataset.header().config_schema, dataset.configs()[measured.config]),
                 "\n"));
  }
  return {};
}

Status inspect_dataset(const InspectArguments& arguments, const Invocation& invocation) {
  ReadReport report;
  FORETUNE_TRY(const Dataset dataset, read_dataset(arguments.file, &report));
  if (!arguments.problem.empty()) {
    return list_problem(dataset, arguments.problem, static_cast<std::size_t>(arguments.top));
  }
  std::array<std::uint64_t, 7> outcomes{};
  for (const Dataset::Row& measured : dataset.rows()) {
    ++outcomes.at(static_cast<std::size_t>(measured.outcome));
  }
  const DatasetHeader& header = dataset.header();
  print(concat(arguments.file, ": data set\n"));
  print(row("family", header.family));
  print(row("role", to_string(header.role)));
  print(row("configs are", schema_text(header.config_schema)));
  print(row("measurements", count_text(dataset.size())));
  print(row("problems", count_text(dataset.problems().size())));
  print(row("distinct configs", count_text(dataset.configs().size())));
  print(row("metrics", metrics_text(dataset)));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes.at(i) > 0) {
      print(row(concat("  ", to_string(static_cast<Outcome>(i))), count_text(outcomes.at(i))));
    }
  }
  for (const Context& context : dataset.contexts()) {
    print(row("context", context.text()));
  }
  FORETUNE_TRY(const std::vector<Fingerprint> machines, dataset.machines());
  print_machines(machines);
  print(row("seed", concat(header.seed)));
  print(row("made by", header.created_by));
  print(row("content", dataset.fingerprint().hex()));
  if (report.torn_bytes > 0) {
    warn(concat("the file ends in a torn record of ", count_of(report.torn_bytes, "byte"),
                " (ignored)"));
  }
  if (!arguments.json.empty()) {
    Figures figures{.name = "inspect",
                    .metrics = {{"measurements", static_cast<double>(dataset.size())},
                                {"problems", static_cast<double>(dataset.problems().size())},
                                {"configs", static_cast<double>(dataset.configs().size())},
                                {"torn_bytes", static_cast<double>(report.torn_bytes)}},
                    .machine = machine_facts(header.fingerprint),
                    .command = invocation.command_line};
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      figures.add(concat("outcome ", to_string(static_cast<Outcome>(i))),
                  static_cast<double>(outcomes.at(i)));
    }
    return figures.write(arguments.json);
  }
  return {};
}

Status inspect_model(const InspectArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const Model model, read_model(arguments.file));
  print(concat(arguments.file, ": model\n"));
  print(row("kind", model.kind));
  print(row("family", model.family));
  print(row("configs are", schema_text(model.config_schema)));
  print(row("features", concat(model.feature_table, " (", model.problem_range.size(),
                               " of them describe the problem)")));
  const ModelFacts facts = describe_model(model);
  for (const auto& [name, text] : facts.lines) {
    print(row(name, text));
  }
  const std::size_t columns = columns_of(model).size();
  for (std::size_t c = 0; columns > 1 && c < columns; ++c) {
    const Model& part = column_model(model, c);
    for (const TrainingCurve& curve : training_curves(part.card_json).curves) {
      print(row("training", concat(columns_of(model)[c].metric.name, ", ", curve.name, ": ",
                                   training_text(curve))));
    }
  }
  for (const TrainingCurve& curve : training_curves(model.card_json).curves) {
    print(row("training", concat(curve.name, ": ", training_text(curve))));
  }
  print(row("target", model.target));
  print(row("candidates", count_text(model.pool.size())));
  if (model.distilled) {
    print(row("fast mode", concat(count_of(model.distilled->portfolio.size(), "config"), "; loses ",
                                  fixed(model.distilled->mean_regret, 4), " in the mean, P90 ",
                                  fixed(model.distilled->p90_regret, 4),
                                  " (ln time, as the exact model predicts it)")));
  }
  print(row("residual", concat(fixed(model.residual_std, 4), " (standard deviation of ln time)")));
  print(row("trained on", concat("data ", model.data_fingerprint.hex(), ", seed ", model.seed)));
  print_machines(is_joint(model) ? model.machines : std::vector{model.fingerprint});
  if (!model.portfolio.empty()) {
    print("  portfolio\n");
    for (const std::uint32_t position : model.portfolio) {
      print(concat("    ", shown_text(model.config_schema, model.pool[position]), "\n"));
    }
  }
  print(concat("  model card\n", card_without_curves(model.card_json), "\n"));
  if (!arguments.json.empty()) {
    Figures figures{.name = "inspect",
                    .metrics = facts.figures,
                    .machine = machine_facts(model.fingerprint),
                    .command = invocation.command_line};
    figures.add("candidates", static_cast<double>(model.pool.size()));
    figures.add("residual_std", model.residual_std);
    figures.add("metrics", static_cast<double>(columns_of(model).size()));
    return figures.write(arguments.json);
  }
  return {};
}

Result<int> inspect(const InspectArguments& arguments, const Invocation& invocation) {
  if (workflow::is_network_path(arguments.file)) {
    if (!arguments.problem.empty()) {
      return without_effect({"--problem"}, "with a data set");
    }
    FORETUNE_TRY_STATUS(
        inspect_network(arguments.file, arguments.input_shapes, arguments.json, invocation));
    return kExitOk;
  }
  if (!arguments.input_shapes.empty()) {
    return without_effect({"--input-shape"}, "with ONNX files");
  }
  // The first bytes identify a model file; one that lost them is recognised by its name, and
  // anything else is read as a data set, whose reader explains what is wrong.
  const bool is_model =
      is_model_file(arguments.file) || std::filesystem::path(arguments.file).extension() == ".ftm";
  if (is_model && !arguments.problem.empty()) {
    return without_effect({"--problem"}, "with a data set");
  }
  FORETUNE_TRY_STATUS(is_model ? inspect_model(arguments, invocation)
                               : inspect_dataset(arguments, invocation));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_inspect(OptionList& list) {
  return prepare_with<InspectArguments, inspect>(list);
}

}  // namespace foretune::cli
