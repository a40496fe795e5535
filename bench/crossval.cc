// Measures how well boosted trees pick configs for unseen problems: group k-fold over the recorded
// H200 measurements, or over the training sets of a folder.
//
//   build/bench/bench/crossval --data triton_mm_bf16.csv.gz | --training-data FOLDER
//                                [--folds 5] [--leaves 63]
//                                [--trees 1000] [--early-stopping 50] [--learning-rate 0.05]
//                                [--weight-decay 0.5] [--forests 1] [--seed 42] [--json FILE]
//                                [--objectives auto | plain,regression,lambdarank,regret]
//                                [--mining-rounds 0,3] [--regret-decay 4]
//                                [--without waves,tile-use] [--threads 2]
//
// With several objectives or rounds, each way is trained on the same folds and compared with the
// first by the paired bootstrap over problems. `plain` is the baseline: one forest by regression
// with the default sizes, whatever the other options say. `--without` adds one way for each group
// of feature columns that it names, or for several joined as waves+roofline: the first way without
// them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/training_data.h"
#include "foretune/base/statistics.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/trainer.h"

namespace foretune {
namespace {

// Returns the geometric mean of the vendor's time over the best measured one; nothing without
// times of a vendor.
std::optional<double> vendor_over_best(const Dataset& dataset) {
  std::vector<double> best(dataset.problems().size(), 1e300);
  for (const Dataset::Row& row : dataset.rows()) {
    best[row.problem] = std::min(best[row.problem], static_cast<double>(row.time_ns));
  }
  std::vector<double> ratios;
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    ratios.push_back(static_cast<double>(baseline.time_ns) / best[baseline.problem]);
  }
  return ratios.empty() ? std::nullopt : std::optional(geometric_mean(ratios));
}

// Returns the evaluation's baseline on the same folds: the config with the best estimated mean on
// the other folds, or the next one when that was not measured.
Result<double> best_single_config(const Dataset& dataset, const TrainResult& result) {
  FORETUNE_TRY(const Evaluation evaluation,
               evaluate(dataset, rank_with_scores(dataset, result.held_out_scores), nullptr,
                        {.bootstrap_samples = 0, .fold_of_problem = result.fold_of_problem}));
  for (const PickerResult& baseline : evaluation.baselines) {
    if (baseline.key == "best_single_config") {
      return baseline.mean_efficiency.value;
    }
  }
  return fail(ErrorCode::kNotFound, "no config was measured in two folds");
}

// One way of training, and the efficiencies of its held-out picks on every problem.
struct Way {
  std::string name;
  TrainOptions options;
  std::vector<double> pick;     // efficiency
  std::vector<double> first_5;  // efficiency of the best of the first five
};

void judge(const Dataset& dataset, std::span<const double> scores, Way& way) {
  for (const std::vector<RowIndex>& rows : dataset.rows_by_problem()) {
    std::vector<RowIndex> order;
    double best = 1e300;
    for (const RowIndex row : rows) {
      if (std::isfinite(scores[row])) {
        order.push_back(row);
        best = std::min(best, static_cast<double>(dataset.rows()[row].time_ns));
      }
    }
    if (order.empty()) {
      continue;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](RowIndex a, RowIndex b) { return scores[a] < scores[b]; });
    const auto efficiency = [&](RowIndex row) {
      return best / static_cast<double>(dataset.rows()[row].time_ns);
    };
    way.pick.push_back(efficiency(order.front()));
    double of_first = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(5, order.size()); ++i) {
      of_first = std::max(of_first, efficiency(order[i]));
    }
    way.first_5.push_back(of_first);
  }
}

double p10(std::span<const double> values) { return quantile(values, 0.1); }
double least(std::span<const double> values) { return quantile(values, 0); }

struct Figure {
  const char* name;
  double (*statistic)(std::span<const double>);
  std::vector<double> Way::* values;
};
constexpr Figure kFigures[] = {{"mean_efficiency", &mean, &Way::pick},
                               {"p10_efficiency", &p10, &Way::pick},
                               {"min_efficiency", &least, &Way::pick},
                               {"top5_measured_efficiency", &mean, &Way::first_5}};

void compare(const Way& first, const Way& way, Figures& figures) {
  for (const Figure& figure : kFigures) {
    const std::vector<double>& before = first.*figure.values;
    const std::vector<double>& after = way.*figure.values;
    Rng rng(1);
    const BootstrapInterval interval =
        paired_bootstrap_interval(before, after, figure.statistic, 2000, rng);
    const double value = figure.statistic(after);
    const double change = value - figure.statistic(before);
    std::printf("  %-28s %.4f  %+.4f (%+.4f to %+.4f)\n", figure.name, value, change, interval.low,
                interval.high);
    figures.add(concat(way.name, "_", figure.name), value);
    figures.add(concat(way.name, "_", figure.name, "_change"), change);
  }
}

// Columns of gemm-triton that carry the same kind of information.
struct ColumnGroup {
  std::string_view name;
  std::vector<std::string> columns;
};

const std::vector<ColumnGroup>& column_groups() {
  static const std::vector<ColumnGroup> groups{
      {"tile-use", {"use_m", "use_n", "use_k", "use_tile", "group_use"}},
      {"waves", {"waves", "wave_use", "resident_waves", "resident_wave_use", "log2_critical_work"}},
      {"residency", {"resident_blocks", "accumulators_per_thread", "stage_elements"}},
      {"roofline",
       {"log2_traffic", "log2_load_ns", "log2_estimate_ns", "log2_roofline_ns", "log2_intensity",
        "flops_per_loaded_element"}},
      {"counts", {"log2_tiles", "k_trips", "k_trips_per_stage", "m_over_block", "n_over_block"}},
      {"tile-shape", {"tile_elements", "tile_perimeter", "tile_aspect"}},
      {"problem-ratios",
       {"log2_flops", "log2_m_over_n", "log2_k_over_mn", "log2_b_over_l2", "log2_bytes_over_l2"}}};
  return groups;
}

// Returns the columns of a group; "derived" is all groups, "interactions" all columns that depend
// on both problem and config.
Result<std::vector<std::string>> columns_of(std::string_view name) {
  std::vector<std::string> out;
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table("gemm-triton"));
  std::vector<std::string> names{"derived", "interactions"};
  for (const ColumnGroup& group : column_groups()) {
    names.emplace_back(group.name);
    if (name == group.name || name == "derived") {
      out.insert(out.end(), group.columns.begin(), group.columns.end());
    }
  }
  for (const FeatureInfo& column : table->columns()) {
    if (name == "interactions" && column.kind == FeatureKind::kInteraction) {
      out.emplace_back(column.name);
    }
  }
  if (out.empty()) {
    return fail(ErrorCode::kInvalidArgument, "there is no group of columns ", quoted(name),
                "; there are ", join(names, ", "));
  }
  return out;
}

// Returns the trainer's defaults for a single forest by regression, on the folds of `options`.
TrainOptions plain(const TrainOptions& options) {
  TrainOptions out;
  out.objective = TrainObjective::kRegression;
  out.forests = 1;
  out.folds = options.folds;
  out.seed = options.seed;
  out.gbdt.threads = options.gbdt.threads;
  return out;
}

// Returns every objective with every number of mining rounds, then the first without each group.
Result<std::vector<Way>> ways_of(int argc, char** argv, const TrainOptions& options) {
  std::vector<Way> ways;
  const std::string objectives = bench::argument(argc, argv, "objectives", "auto");
  const std::string rounds = bench::argument(argc, argv, "mining-rounds", "0");
  for (const std::string_view objective : split(objectives, ',')) {
    if (objective == "plain") {
      ways.push_back({.name = "plain", .options = plain(options), .pick = {}, .first_5 = {}});
      continue;
    }
    for (const std::string_view count : split(rounds, ',')) {
      const auto parsed = parse_objective(objective);
      const auto parsed_rounds = parse_uint(count);
      if (!parsed || !parsed_rounds || *parsed_rounds > 100) {
        return fail(ErrorCode::kInvalidArgument, "no such way: ", objective, ", ", count);
      }
      Way way{.name = std::string(objective), .options = options, .pick = {}, .first_5 = {}};
      way.options.objective = *parsed;
      way.options.mining.rounds = static_cast<std::uint32_t>(*parsed_rounds);
      way.name += *parsed_rounds > 0 ? concat("_mined_", *parsed_rounds) : std::string();
      ways.push_back(std::move(way));
    }
  }
  const std::string without = bench::argument(argc, argv, "without");
  for (const std::string_view group : split(without, ',')) {
    if (group.empty()) {
      continue;
    }
    Way way{.name = concat("without_", group),
            .options = ways.front().options,
            .pick = {},
            .first_5 = {}};
    for (const std::string_view part : split(group, '+')) {
      FORETUNE_TRY(const std::vector<std::string> columns, columns_of(part));
      way.options.without_columns.insert(way.options.without_columns.end(), columns.begin(),
                                         columns.end());
    }
    ways.push_back(std::move(way));
  }
  return ways;
}

Status run(int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(const Dataset dataset, bench::read_training_data(argc, argv));
  TrainOptions options;
  options.choose_target = bench::argument(argc, argv, "target") == "auto";
  options.gbdt.learning_rate =
      bench::number_argument(argc, argv, "learning-rate", options.gbdt.learning_rate);
  options.weight_decay = bench::number_argument(argc, argv, "weight-decay", options.weight_decay);
  options.regret_decay = bench::number_argument(argc, argv, "regret-decay", options.regret_decay);
  options.seed = bench::count_argument(argc, argv, "seed", options.seed);
  options.folds = bench::count_argument(argc, argv, "folds", options.folds);
  options.gbdt.leaves = bench::count_argument(argc, argv, "leaves", options.gbdt.leaves);
  options.gbdt.trees = bench::count_argument(argc, argv, "trees", options.gbdt.trees);
  options.gbdt.early_stopping_rounds =
      bench::count_argument(argc, argv, "early-stopping", options.gbdt.early_stopping_rounds);
  options.forests = bench::count_argument(argc, argv, "forests", options.forests);
  options.gbdt.threads = bench::count_argument(argc, argv, "threads", options.gbdt.threads);
  FORETUNE_TRY(std::vector<Way> ways, ways_of(argc, argv, options));
  FORETUNE_TRY(const TrainResult result, train_gbdt(dataset, ways.front().options));
  judge(dataset, result.held_out_scores, ways.front());
  std::printf("%zu measurements, %zu problems, %u folds\n", dataset.size(),
              dataset.problems().size(), options.folds);
  for (const auto& [name, value] : result.metrics) {
    std::printf("  %-28s %.4f\n", name.c_str(), value);
    figures.add(name, value);
  }
  for (Way& way : std::span(ways).subspan(1)) {
    FORETUNE_TRY(const TrainResult other, train_gbdt(dataset, way.options));
    judge(dataset, other.held_out_scores, way);
    std::printf("%s, against %s\n", way.name.c_str(), ways.front().name.c_str());
    compare(ways.front(), way, figures);
    std::fflush(stdout);
  }
  FORETUNE_TRY(const double single, best_single_config(dataset, result));
  std::printf("  %-28s %.4f\n", "best_single_config", single);
  figures.add("best_single_config_efficiency", single);
  if (const std::optional<double> vendor = vendor_over_best(dataset)) {
    std::printf("  %-28s %.4f\n", "vendor_over_best_geomean", *vendor);
    figures.add("vendor_over_best_geomean", *vendor);
  }
  figures.add("trees", static_cast<double>(forests_of(result.model)[0].trees.size()));
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("crossval", argc, argv, &foretune::run);
}
