// How well do models of published times pick schedules for matrices that they never saw?
//
//   sparse_model --records FOLDER [--payloads FOLDER] [--op spmm,spmv,sddmm]
//                [--machine epyc7543,xeon8272cl,xeon_e5_2620v4] [--trees 80] [--leaves 63]
//                [--learning-rate 0.05] [--forests 1] [--objective regret] [--rows 1500]
//                [--draws 200] [--seed 1] [--threads 2] [--parts trap,transfer] [--json FILE]
//                [--min-rows 10] [--feature-fraction 0.8] [--regret-decay 4] [--weight-decay 0.5]
//                [--base-column COLUMN] [--without COLUMN,COLUMN]
//
// FOLDER has the tables OPERATION_MACHINE.csv.zst of AutoSparse's records, and that of the payloads
// the patterns of the matrices, where they are known. One original matrix is left out at a time,
// with whatever was made by its generator. A pick is made among 200 schedules, drawn 200 times
// (sparse_records.h).
//
// `of ceiling` is judged on schedules that were measured twice: a chooser that knows the first time
// is the ceiling, and the second time judges it and the model alike. All other figures are judged
// by the medians of all schedules. The parts are for the first machine alone. `trap` splits rows at
// random, so that every matrix is in the training data, and leaves a matrix out without its
// relatives. `transfer` leaves a sixth of the originals out at a time; the models learn from the
// times of the other machines with all, 5 % or none of the target's, or from 5 % or all of the
// target's alone.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/sparse_records.h"
#include "foretune/base/statistics.h"
#include "foretune/formats/gzip.h"

namespace foretune {
namespace {

using bench::JudgedMatrix;
using bench::kTopCounts;
using bench::LearnOptions;
using bench::RowScores;
using bench::SparseRecords;
using bench::TopFigures;

// Parts that the originals are dealt to where each is not left out alone.
constexpr std::size_t kTransferParts = 6;

struct Judging {
  std::size_t draws = 200;
  std::uint64_t seed = 1;
};

std::vector<double> ratios(const std::vector<TopFigures>& figures, std::size_t top) {
  std::vector<double> out;
  for (const TopFigures& matrix : figures) {
    out.push_back(matrix.ratio[top]);
  }
  return out;
}

// Returns the sum of the best times over the sum of the chosen ones, as TLP counts.
double weighted_ratio(const std::vector<TopFigures>& figures, std::size_t top) {
  double best = 0;
  double chosen = 0;
  for (const TopFigures& matrix : figures) {
    best += matrix.best;
    chosen += matrix.chosen[top];
  }
  return best / chosen;
}

void report(const std::string& head, const std::string& name,
            const std::vector<TopFigures>& figures, Figures& out) {
  std::printf("  %-22s", name.c_str());
  for (std::size_t top = 0; top < kTopCounts.size(); ++top) {
    const std::vector<double> values = ratios(figures, top);
    const double value = mean(values);
    out.add(concat(head, "_", name, "_top", kTopCounts[top]), value);
    std::printf("  %.3f", value);
    if (top == 0) {
      Rng rng(1);
      const BootstrapInterval interval = bootstrap_interval(values, mean, 2000, rng);
      out.add(concat(head, "_", name, "_top1_low"), interval.low);
      out.add(concat(head, "_", name, "_top1_high"), interval.high);
      std::printf(" (%.3f to %.3f)", interval.low, interval.high);
    }
  }
  std::printf("   weighted");
  for (std::size_t top = 0; top < kTopCounts.size(); ++top) {
    const double value = weighted_ratio(figures, top);
    out.add(concat(head, "_", name, "_weighted_top", kTopCounts[top]), value);
    std::printf(" %.3f", value);
  }
  std::printf("\n");
  std::fflush(stdout);
}

// The model and the ceiling on the schedules that were measured twice, over machines.
struct OfCeiling {
  std::vector<TopFigures> model;
  std::vector<TopFigures> ceiling;

  void report(const std::string& operation, Figures& out) const {
    for (std::size_t top = 0; top < kTopCounts.size(); ++top) {
      const std::vector<double> of_model = ratios(model, top);
      const double ceiling_mean = mean(ratios(ceiling, top));
      Rng rng(1);
      const BootstrapInterval interval = bootstrap_interval(of_model, mean, 2000, rng);
      const std::string name =
          concat("records_", operation, "_top", kTopCounts[top], "_of_ceiling");
      out.add(name, mean(of_model) / ceiling_mean);
      out.add(name + "_low", interval.low / ceiling_mean);
      out.add(name + "_high", interval.high / ceiling_mean);
      std::printf("%-34s %.3f (%.3f to %.3f)\n", name.c_str(), mean(of_model) / ceiling_mean,
                  interval.low / ceiling_mean, interval.high / ceiling_mean);
    }
    std::fflush(stdout);
  }
};

void append(std::vector<TopFigures>& all, const std::vector<TopFigures>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void judge_models(const SparseRecords& records, const RowScores& model, const Judging& judging,
                  OfCeiling& of_ceiling, Figures& out) {
  const std::string head = concat(records.operation, "_", records.machine);
  std::vector<JudgedMatrix> all = bench::all_schedules(records);
  std::vector<JudgedMatrix> repeated = bench::repeated_schedules(records);
  const RowScores nearest = bench::nearest_matrix_scores(records.merged);
  for (std::vector<JudgedMatrix>* matrices : {&all, &repeated}) {
    bench::add_scores(records, model, "model", *matrices);
    bench::add_scores(records, nearest, "nearest", *matrices);
  }
  for (const char* chooser : {"random", "nearest", "model"}) {
    report(head, chooser, bench::judge(all, chooser, judging.draws, judging.seed), out);
  }
  for (const char* chooser : {"random", "nearest", "model", "ceiling"}) {
    const auto figures = bench::judge(repeated, chooser, judging.draws, judging.seed);
    if (figures.empty()) {
      std::printf("  no matrix has 200 schedules that were measured twice\n");
      break;
    }
    report(head, concat("repeated_", chooser), figures, out);
    if (std::string_view(chooser) == "model") {
      append(of_ceiling.model, figures);
    } else if (std::string_view(chooser) == "ceiling") {
      append(of_ceiling.ceiling, figures);
    }
  }
}

// Judges a model on all schedules.
void judge_scores(const SparseRecords& records, const RowScores& scores, const std::string& name,
                  const Judging& judging, Figures& out) {
  std::vector<JudgedMatrix> all = bench::all_schedules(records);
  bench::add_scores(records, scores, name, all);
  const auto figures = bench::judge(all, name, judging.draws, judging.seed);
  if (!figures.empty()) {
    report(concat(records.operation, "_", records.machine), name, figures, out);
  }
}

// Splits as nobody should: with relatives, or other schedules of the matrix, in the training data.
// `model` has the scores of originals that were left out.
Status judge_trap(const SparseRecords& records, RowScores model, const LearnOptions& options,
                  const Judging& judging, Figures& out) {
  FORETUNE_TRY(const RowScores by_row, bench::leave_rows_out(records.merged, options));
  judge_scores(records, by_row, "trap_rows", judging, out);
  FORETUNE_TRY(const RowScores by_name, bench::leave_names_out(records.merged, options));
  judge_scores(records, by_name, "trap_names", judging, out);
  // The same matrices without their relatives.
  for (std::size_t row = 0; row < model.size(); ++row) {
    model[row] = std::isnan(by_name[row]) ? by_name[row] : model[row];
  }
  judge_scores(records, model, "trap_names_held_out", judging, out);
  return {};
}

// Appends times of a data set, a share of each problem's and no more than are learned from, brought
// to one best time a problem, since only ratios within a problem are learned. The best is that of
// the share.
void append_scaled(const Dataset& from, double share, const LearnOptions& options, Dataset& to) {
  constexpr double kBestNs = 1e6;
  Rng rng(options.seed);
  for (std::vector<RowIndex> rows : from.rows_by_problem()) {
    std::erase_if(rows, [&](RowIndex) { return rng.uniform() >= share; });
    double best = std::numeric_limits<double>::infinity();
    for (const RowIndex row : rows) {
      best = std::min(best, static_cast<double>(from.rows()[row].time_ns));
    }
    rng.shuffle(std::span(rows));
    rows.resize(std::min(rows.size(), options.rows));
    for (const RowIndex row : rows) {
      Measurement measured = from.measurement(row);
      for (MetricValue& value : measured.metrics) {
        value.value *= kBestNs / best;
      }
      to.add(measured);
    }
  }
}

// Returns the other machines' times with a share of the target's. The device is the target.
Dataset transfer_data(const SparseRecords& target, const std::vector<const SparseRecords*>& sources,
                      double share, const LearnOptions& options) {
  Dataset out(target.merged.header());
  append_scaled(target.merged, share, options, out);
  for (const SparseRecords* source : sources) {
    append_scaled(source->merged, 1, options, out);
  }
  return out;
}

Status judge_transfer(const SparseRecords& target, const std::vector<const SparseRecords*>& sources,
                      const LearnOptions& options, const Judging& judging, Figures& out) {
  struct Way {
    const char* name;
    double share;
    bool has_sources;
  };
  for (const Way& way :
       {Way{"transfer_0", 0.0, true}, Way{"transfer_5", 0.05, true}, Way{"transfer_all", 1.0, true},
        Way{"target_5_alone", 0.05, false}, Way{"target_alone", 1.0, false}}) {
    const Dataset data =
        transfer_data(target, way.has_sources ? sources : std::vector<const SparseRecords*>(),
                      way.share, options);
    FORETUNE_TRY(const RowScores scores,
                 bench::scores_by_group(target.merged, data, kTransferParts, options));
    judge_scores(target, scores, way.name, judging, out);
  }
  return {};
}

Result<LearnOptions> learn_options(int argc, char** argv) {
  LearnOptions options;
  options.seed = bench::count_argument(argc, argv, "seed", options.seed);
  options.rows = bench::count_argument(argc, argv, "rows", options.rows);
  options.threads = std::max(1U, bench::count_argument(argc, argv, "threads", options.threads));
  TrainOptions& train = options.train;
  // No fold decides about anything: the number of trees is given.
  train.folds = 0;
  train.seed = options.seed;
  train.forests = bench::count_argument(argc, argv, "forests", train.forests);
  train.gbdt.threads = 1;
  train.gbdt.trees = bench::count_argument(argc, argv, "trees", 80U);
  train.gbdt.leaves = bench::count_argument(argc, argv, "leaves", train.gbdt.leaves);
  train.gbdt.learning_rate =
      bench::number_argument(argc, argv, "learning-rate", train.gbdt.learning_rate);
  train.gbdt.min_rows_per_leaf =
      bench::count_argument(argc, argv, "min-rows", train.gbdt.min_rows_per_leaf);
  train.gbdt.feature_fraction =
      bench::number_argument(argc, argv, "feature-fraction", train.gbdt.feature_fraction);
  train.regret_decay = bench::number_argument(argc, argv, "regret-decay", train.regret_decay);
  train.weight_decay = bench::number_argument(argc, argv, "weight-decay", train.weight_decay);
  const std::string objective = bench::argument(argc, argv, "objective", "regret");
  const auto parsed = parse_objective(objective);
  if (!parsed) {
    return fail(ErrorCode::kInvalidArgument, foretune::quoted(objective), " is no objective");
  }
  train.objective = *parsed;
  train.base_column = bench::argument(argc, argv, "base-column", train.base_column);
  const std::string without = bench::argument(argc, argv, "without");
  for (const std::string_view column : split(without, ',')) {
    if (!column.empty()) {
      train.without_columns.emplace_back(column);
    }
  }
  return options;
}

std::vector<std::string> list_argument(int argc, char** argv, std::string_view name,
                                       std::string_view fallback) {
  const std::string text = bench::argument(argc, argv, name, fallback);
  std::vector<std::string> out;
  for (const std::string_view part : split(text, ',')) {
    out.emplace_back(part);
  }
  return out;
}

Status run(int argc, char** argv, Figures& figures) {
  const std::string folder = bench::argument(argc, argv, "records");
  if (folder.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--records names the folder of the tables");
  }
  const std::string patterns = bench::argument(argc, argv, "payloads");
  std::shared_ptr<PayloadStore> payloads;
  if (!patterns.empty()) {
    const std::vector<std::string> folders{patterns};
    FORETUNE_TRY(payloads, PayloadStore::open(folders, &formats::inflate_gzip));
  }
  FORETUNE_TRY(const LearnOptions options, learn_options(argc, argv));
  const Judging judging{.draws = bench::count_argument<std::size_t>(argc, argv, "draws", 200),
                        .seed = options.seed};
  const std::vector<std::string> parts = list_argument(argc, argv, "parts", "trap,transfer");
  const auto has_part = [&](std::string_view part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  for (const std::string& operation : list_argument(argc, argv, "op", "spmm,spmv,sddmm")) {
    std::vector<SparseRecords> tables;
    for (const std::string& machine :
         list_argument(argc, argv, "machine", "epyc7543,xeon8272cl,xeon_e5_2620v4")) {
      FORETUNE_TRY(SparseRecords records,
                   bench::read_sparse_records(folder, operation, machine, payloads.get()));
      tables.push_back(std::move(records));
    }
    OfCeiling of_ceiling;
    for (const SparseRecords& records : tables) {
      const double begin_s = bench::seconds_now();
      FORETUNE_TRY(const RowScores model, bench::leave_originals_out(records.merged, options));
      std::printf("%s on %s: %zu times of %zu schedules of %zu matrices; learned in %.0f s\n",
                  operation.c_str(), records.machine.c_str(), records.repeats.size(),
                  records.merged.size(), records.merged.problems().size(),
                  bench::seconds_now() - begin_s);
      judge_models(records, model, judging, of_ceiling, figures);
      // The parts take as long as three machines, so only the first one has them.
      const bool is_first = &records == tables.data();
      if (is_first && has_part("trap")) {
        FORETUNE_TRY_STATUS(judge_trap(records, model, options, judging, figures));
      }
      if (is_first && has_part("transfer") && tables.size() > 1) {
        std::vector<const SparseRecords*> sources;
        for (const SparseRecords& other : tables) {
          if (&other != &records) {
            sources.push_back(&other);
          }
        }
        FORETUNE_TRY_STATUS(judge_transfer(records, sources, options, judging, figures));
      }
    }
    if (!of_ceiling.ceiling.empty()) {
      of_ceiling.report(operation, figures);
    }
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("sparse_model", argc, argv, &foretune::run);
}
