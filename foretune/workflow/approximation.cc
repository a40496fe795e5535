#include "foretune/workflow/approximation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/clock.h"
#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/graph/run/knob.h"
#include "foretune/kernels/cpu_limits.h"
#include "foretune/problem/payload_store.h"
#include "foretune/report/approx_report.h"
#include "foretune/workflow/output.h"
#include "foretune/workflow/payload_arguments.h"
#include "foretune/workflow/source.h"

namespace foretune::workflow {

namespace {

constexpr int kJsonVersion = 1;

Result<std::vector<double>> parse_budgets(std::string_view text) {
  std::vector<double> budgets;
  for (const std::string_view part : split(text, ',')) {
    const auto number = parse_double(trim(part));
    if (!number || !(*number >= 0) || !std::isfinite(*number)) {
      return fail(ErrorCode::kInvalidArgument, "budgets are losses from 0 up, as in 0.5,1,2; not ",
                  quoted(part));
    }
    budgets.push_back(*number);
  }
  return budgets;
}

// Returns the family's knobs.
Result<std::vector<std::int32_t>> offered_knobs(const FamilyOptions& options) {
  std::string_view catalogue = "default";
  for (const auto& [name, value] : options.parameters) {
    catalogue = name == "knobs" ? std::string_view(value) : catalogue;
  }
  return graph::knob_catalogue(catalogue);
}

std::string number_json(double value) {
  return std::isfinite(value) ? concat(value) : std::string("null");
}

std::string config_json(const approx::ApproxConfig& each, const ConfigSchema& schema) {
  return concat(
      "{\"config\": ", json_quoted(to_text(schema, each.config)),
      ", \"layers\": ", json_quoted(each.text), ", \"budget\": ", number_json(each.budget),
      ", \"time_ns\": ", number_json(each.time_ns), ", \"speedup\": ", number_json(each.speedup),
      ", \"predicted_ns\": ", number_json(each.predicted_ns),
      ", \"predicted_loss\": ", number_json(each.predicted_loss),
      ", \"predicted_bytes\": ", number_json(each.predicted_bytes),
      ", \"tune_loss\": ", number_json(each.tune_loss),
      ", \"loss_high\": ", number_json(each.loss_high),
      ", \"test_loss\": ", number_json(each.test_loss),
      ", \"test_quality\": ", number_json(each.test_quality), "}");
}

std::string layer_json(const approx::LayerSensitivity& layer) {
  std::string knobs;
  for (const approx::KnobSensitivity& each : layer.knobs) {
    knobs +=
        concat(knobs.empty() ? "" : ", ", "{\"knob\": ", json_quoted(each.knob),
               ", \"loss\": ", number_json(each.loss), ", \"ns\": ", number_json(each.ns), "}");
  }
  return concat("{\"layer\": ", json_quoted(layer.layer), ", \"op\": ", json_quoted(layer.op),
                ", \"knobs\": [", knobs, "]}");
}

// Returns the largest speed-up of the chosen networks that keep a budget; 1 for none.
double speedup_within(const approx::ApproxResult& result, double budget) {
  double most = 1;
  for (const approx::ApproxConfig& each : result.chosen) {
    most = each.budget <= budget ? std::max(most, each.speedup) : most;
  }
  return most;
}

Figures figures_of(const approx::ApproxResult& result, std::span<const double> budgets) {
  Figures figures{.name = "approx", .metrics = {}, .machine = {}, .command = {}};
  figures.add("exact_ns", result.exact.time_ns);
  figures.add("chosen", static_cast<double>(result.chosen.size()));
  for (const double budget : budgets) {
    figures.add(concat("speedup_at_", budget), speedup_within(result, budget));
  }
  figures.add("measured", static_cast<double>(result.measured));
  figures.add("front_ms", result.front_ms);
  figures.add("profile_seconds", result.profile_seconds);
  figures.add("profile_networks", result.profile_networks);
  figures.add("seconds", result.seconds);
  const approx::ModelJudgement& judged = result.judgement;
  if (judged.networks > 0) {
    figures.add("judged_networks", static_cast<double>(judged.networks));
    figures.add("p1_error", judged.p1_error);
    figures.add("p1_spearman", judged.p1_spearman);
    figures.add("p2_error", judged.p2_error);
    figures.add("p2_spearman", judged.p2_spearman);
    figures.add("quality_error", judged.fit_error);
    figures.add("quality_spearman", judged.fit_spearman);
    figures.add("time_error", judged.time_error);
  }
  const approx::SearchComparison& search = result.search;
  if (search.plain.evaluations > 0) {
    figures.add("search_evaluations", static_cast<double>(search.measured));
    figures.add("search_volume", search.volume);
    figures.add("plain_evaluations", static_cast<double>(search.plain.evaluations));
    figures.add("plain_volume", search.plain.volume);
    figures.add("plain_reached", search.plain.has_reached ? 1 : 0);
    figures.add("evaluations_saved", search.evaluations_saved(0));
    figures.add("evaluations_saved_with_profile",
                search.evaluations_saved(result.profile_networks));
  }
  return figures;
}

}  // namespace

void ApproximationArguments::visit(OptionList& list) {
  list.add_positional("task", task, "network and images (.ftt), as Network.save_task writes them")
      .require();
  list.add("images", images, "N", "images of a call").at_least(1);
  std::vector<std::string> metrics;
  for (const graph::QualityMetric* const metric : graph::quality_metrics()) {
    metrics.emplace_back(metric->name());
  }
  list.add("quality", quality, "NAME",
           "measure of quality; psnr and ssim compare with the outputs of the exact network")
      .choose(std::move(metrics));
  list.add("budgets", budgets, "LIST",
           "losses of quality that are allowed, in percentage points; of psnr, in dB below 100");
  list.add("keep", keep, "N", "number of networks to choose at most").at_least(1);
  list.add("profile-images", profile_images, "N",
           "tuning images that judge each knob alone; all of them judge whole networks")
      .at_least(64);
  list.add("fit", fit, "N", "random networks that correct the models of quality and time")
      .at_least(0);
  list.add("judge", judge, "N",
           "also judge the models of quality and time by so many random networks")
      .at_least(0);
  list.add("judge-search", judge_search, "N",
           "also count the networks that a search without models measures until its own are as "
           "good, at most so many")
      .at_least(0);
  list.add("output", output, "FILE", "append every measurement to this data set (.ftd)");
  list.add("json", json, "FILE", "write the chosen networks and all figures as JSON");
  list.add("report", report, "FILE",
           "write plots, the chosen networks and what each layer loses and saves as one "
           "self-contained HTML page")
      .accept({"html"});
  list.add("figures", figures, "DIR", "write each plot of the page as an SVG file");
  list.add("threads", family.threads, "N", "threads of a call; 0: all cores").at_least(0);
  list.add("family-option", family.family_options, "KEY=VALUE",
           "option of the family network-cpu, such as knobs=all; may be repeated")
      .repeat();
  list.add("time-limit", measuring.time_limit, "SECONDS",
           "time limit of one measurement, such as that of the quality of one network")
      .at_least(1);
}

Result<Approximation> approximate(const ApproximationArguments& arguments,
                                  const Invocation& invocation, const ApproximationHooks& hooks) {
  approx::ApproxOptions options;
  FORETUNE_TRY(options.budgets, parse_budgets(arguments.budgets));
  FORETUNE_TRY(options.metric, graph::find_quality(arguments.quality));
  const std::filesystem::path file(arguments.task);
  FORETUNE_TRY(graph::Task read, graph::read_task(file));
  const auto task = std::make_shared<const graph::Task>(std::move(read));
  FamilyArguments family = arguments.family;
  family.family = "network-cpu";
  family.family_options.push_back(concat("quality=", arguments.quality));
  const std::filesystem::path folder = file.parent_path();
  family.payloads.folders.insert(family.payloads.folders.begin(),
                                 folder.empty() ? std::string(".") : folder.string());
  OutputPaths paths;
  if (!arguments.output.empty()) {
    FORETUNE_TRY(paths, output_paths(arguments.output, invocation));
  }
  FORETUNE_TRY(LiveFamily live, open_family_for(family, paths.journal, invocation));
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, family.payloads.open());
  FORETUNE_TRY(Problem problem, parse_problem(concat("network images=", arguments.images,
                                                     " payload=@", file.filename().string()),
                                              *payloads));
  Approximation out(std::move(live), std::move(problem));
  out.budgets = options.budgets;
  out.metric = options.metric;
  out.network = file.stem().string();
  const FamilyInfo& info = out.live.family->info();
  FORETUNE_TRY(options.knobs, offered_knobs(out.live.options));
  options.chosen = static_cast<std::size_t>(arguments.keep);
  options.effect_images = arguments.profile_images;
  options.fit_networks = static_cast<int>(arguments.fit);
  options.judged_networks = static_cast<int>(arguments.judge);
  options.plain_evaluations = static_cast<int>(arguments.judge_search);
  options.threads = info.max_threads;
  options.effect_threads = usable_threads(out.live.options.fingerprint.hardware);
  options.seed = invocation.seed;
  Protocol protocol = arguments.measuring.protocol(invocation.seed);
  protocol.windows = 3;
  protocol.max_windows = 5;
  FORETUNE_TRY(const Context context, arguments.measuring.context(info));
  FORETUNE_TRY(const std::unique_ptr<Measurer> measurer,
               open_measurer(out.live, protocol, context, invocation));
  std::unique_ptr<JournalWriter> journal;
  if (!arguments.output.empty()) {
    FORETUNE_TRY(journal, open_journal(paths.journal,
                                       dataset_header(info, DatasetRole::kTraining, invocation),
                                       invocation));
  }
  for (const std::string& warning : load_warnings()) {
    invocation.warn(warning);
  }
  CollectHooks inner;
  inner.now_s = &monotonic_s;
  inner.stop = hooks.stop;
  FORETUNE_TRY(out.result, approx::tune_network(*out.live.family, *measurer, journal.get(),
                                                out.problem, task, options, inner, hooks.on_phase));
  if (journal != nullptr) {
    FORETUNE_TRY_STATUS(journal->sync());
  }
  return out;
}

std::string approximation_json(const Approximation& approximation, const Invocation& invocation) {
  const FamilyInfo& info = approximation.live.family->info();
  const approx::ApproxResult& result = approximation.result;
  Figures figures = figures_of(result, approximation.budgets);
  figures.machine = machine_facts(info.fingerprint);
  figures.command = invocation.command_line;
  std::string configs;
  for (const approx::ApproxConfig& each : result.chosen) {
    configs += concat(configs.empty() ? "" : ",\n ", config_json(each, info.config_schema));
  }
  std::string layers;
  for (const approx::LayerSensitivity& each : result.layers) {
    layers += concat(layers.empty() ? "" : ",\n ", layer_json(each));
  }
  std::string json(trim(figures.json()));
  json.pop_back();  // the closing brace
  return concat(json, ",\n\"version\": ", kJsonVersion,
                ", \"quality_model\": ", json_quoted(result.quality_model),
                ", \"problem\": ", json_quoted(approximation.problem.text()),
                ", \"quality\": ", json_quoted(approximation.metric->name()),
                ", \"unit\": ", json_quoted(approximation.metric->unit()),
                ",\n\"exact\": ", config_json(result.exact, info.config_schema),
                ",\n\"configs\": [", configs, "],\n\"layers\": [", layers, "]}\n");
}

ApproxReport approximation_report(const Approximation& approximation,
                                  const ApproximationArguments& arguments,
                                  const Invocation& invocation) {
  const FamilyInfo& info = approximation.live.family->info();
  ApproxReport report{
      .network = approximation.network,
      .budgets = approximation.budgets,
      .result = approximation.result,
      .unit = std::string(approximation.metric->unit()),
      .facts = {{"task", arguments.task},
                {"quality",
                 concat(approximation.metric->name(), ": ", approximation.metric->description())},
                {"images of a call", concat(arguments.images)},
                {"threads", concat(info.max_threads)},
                {"images that judge single knobs", concat(arguments.profile_images)},
                {"random networks that correct the models", concat(arguments.fit)}}};
  for (auto& fact : machine_facts(info.fingerprint)) {
    report.facts.push_back(std::move(fact));
  }
  report.facts.emplace_back("command", invocation.command_line);
  report.source =
      source_line({file_source("network", approximation.network, approximation.problem.payload())},
                  info.fingerprint.device);
  return report;
}

}  // namespace foretune::workflow
