// How good are picks for convolutions of Composable Kernel that no training saw, and how long does
// one take? From AMD's published table of forward convolutions, or any other data set.
//
//   ck_picks --data conv_fwd_bf16_gfx950_train.csv.gz [--arch gfx950] [--folds 5] [--seed 42]
//            [--seeds 3] [--objective auto] [--row-weight-decay 0.5] [--base-feature COLUMN]
//            [--without-features LIST] [--trees 1000] [--leaves 63] [--learning-rate 0.05]
//            [--unseen pipeline,tile,kernels] [--alone yes] [--threads 2] [--json FILE]
//   ck_picks --model imported.ftm --data FILE [--runs 9] [--json FILE]
//   ck_picks --write-kernels names.txt [--arch gfx950]
//
// The first judges a way of training, what `train` does unless options say otherwise, by folds that
// keep a layer together, and by folds that keep layers of the same weights together: beside trees
// that begin with the column log2_moved_over_least, trees without it, and the column alone (unless
// `--alone yes`), and the baselines of docs/explanation/evaluation.md. Then it leaves out kernels
// as well: a pipeline, a tile, a fifth of all kernels. `--seeds` deals the folds so many times. The
// second ranks the model's candidates for every problem of the data, with one thread. The third
// writes the names of all forward kernels for bf16 that the rules of the architecture allow.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/ck_folds.h"
#include "bench/selection_time.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/unseen_configs.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_file.h"
#include "foretune/model/train/trainer.h"
#include "foretune/select/select.h"
#include "foretune/space/known_spaces.h"

namespace foretune {
namespace {

constexpr const char* kColumn = "log2_moved_over_least";

using bench::CkJudge;
using bench::CkWay;

Result<Dataset> read_data(int argc, char** argv) {
  return bench::read_ck_table(bench::argument(argc, argv, "data"),
                              bench::argument(argc, argv, "arch", "gfx950"));
}

std::vector<std::string> names_of(const std::string& list) {
  std::vector<std::string> out;
  for (const std::string_view name : split(list, ',')) {
    if (!name.empty()) {
      out.emplace_back(name);
    }
  }
  return out;
}

// The way that is judged, trees that begin with the column, trees without it, and the column alone.
Result<std::vector<CkWay>> ways_of(int argc, char** argv) {
  TrainOptions plain = bench::default_ck_way().options;
  plain.gbdt.threads = bench::count_argument(argc, argv, "threads", plain.gbdt.threads);
  TrainOptions without = plain;
  without.without_columns = {kColumn};
  TrainOptions base = plain;
  base.base_column = kColumn;
  base.objective = TrainObjective::kRegression;
  base.weight_decay = 0;
  TrainOptions alone = plain;
  alone.base_column = kColumn;
  // One tree that learns nothing to speak of.
  alone.folds = 0;
  alone.gbdt.trees = 1;
  alone.gbdt.learning_rate = 1e-9;
  TrainOptions judged = plain;
  judged.base_column = bench::argument(argc, argv, "base-feature");
  judged.without_columns = names_of(bench::argument(argc, argv, "without-features"));
  const std::string objective = bench::argument(argc, argv, "objective", "auto");
  const auto parsed = parse_objective(objective);
  if (!parsed) {
    return fail(ErrorCode::kInvalidArgument, "there is no objective ", foretune::quoted(objective));
  }
  judged.objective = *parsed;
  judged.weight_decay = bench::number_argument(argc, argv, "row-weight-decay", judged.weight_decay);
  judged.gbdt.trees = bench::count_argument(argc, argv, "trees", judged.gbdt.trees);
  judged.gbdt.leaves = bench::count_argument(argc, argv, "leaves", judged.gbdt.leaves);
  judged.gbdt.learning_rate =
      bench::number_argument(argc, argv, "learning-rate", judged.gbdt.learning_rate);
  std::vector<CkWay> ways{{"", "the way", judged}};
  if (bench::argument(argc, argv, "alone") != "yes") {
    ways.push_back({"_base", "beginning with the column", base});
    ways.push_back({"_without_column", "without the column", without});
    ways.push_back({"_column", "the column alone", alone});
  }
  return ways;
}

// Kernels are left out as well as problems, which keep to folds by weights.
Status judge_unseen(const CkJudge& judge, const std::vector<CkWay>& ways, const std::string& what,
                    const std::string& name, Figures& figures) {
  for (const CkWay& way : ways) {
    bench::PicksTable table;
    double picked = 0;
    for (const std::uint64_t seed : judge.seeds) {
      FORETUNE_TRY(const std::vector<OuterSplit> splits,
                   nested_folds(judge.dataset, judge.folds, seed, GroupKey::kWeights));
      FORETUNE_TRY(const std::vector<ConfigPart> parts, config_parts(judge.dataset, what, seed));
      const CandidateRecipe train = [&](const Dataset& training, std::span<const Config> left_out,
                                        const OuterSplit&) -> Result<Model> {
        TrainOptions options = way.options;
        options.group_key = GroupKey::kWeights;
        options.seed = seed;
        options.more_candidates.assign(left_out.begin(), left_out.end());
        FORETUNE_TRY(TrainResult trained, train_gbdt(training, options));
        return std::move(trained.model);
      };
      FORETUNE_TRY(
          const UnseenEvaluation out,
          evaluate_unseen_configs(judge.dataset, splits, parts, train, {.bootstrap_samples = 0}));
      for (const PickerResult& picks :
           {out.together.unseen, out.together.seen, out.together.random, out.together.of_all}) {
        table.add(concat("_", picks.key), picks.name, picks);
      }
      picked += out.together.picked_share / static_cast<double>(judge.seeds.size());
    }
    const std::string head = concat(name, way.key);
    table.report(concat("without ", what, ": ", way.name), head, figures);
    std::printf("%-34s%8.1f\n", "of all, picked of the part", 100 * picked);
    figures.add(head + "_picked_share", 100 * picked);
  }
  return {};
}

Status judge_ways(int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(const Dataset dataset, read_data(argc, argv));
  FORETUNE_TRY(const std::vector<CkWay> ways, ways_of(argc, argv));
  CkJudge judge{
      .dataset = dataset, .folds = bench::count_argument(argc, argv, "folds", 5U), .seeds = {}};
  for (std::uint64_t i = 0; i < bench::count_argument<std::uint64_t>(argc, argv, "seeds", 3); ++i) {
    judge.seeds.push_back(bench::count_argument<std::uint64_t>(argc, argv, "seed", 42) + i);
  }
  std::printf("%zu measurements of %zu problems and %zu kernels; %zu dealings of %u folds\n",
              dataset.size(), dataset.problems().size(), dataset.configs().size(),
              judge.seeds.size(), judge.folds);
  FORETUNE_TRY_STATUS(
      bench::judge_ck_folds(judge, ways, GroupKey::kProblem, "ck_forward_folds", figures));
  FORETUNE_TRY_STATUS(
      bench::judge_ck_folds(judge, ways, GroupKey::kWeights, "ck_forward_weight_folds", figures));
  const std::string unseen = bench::argument(argc, argv, "unseen", "pipeline,tile,kernels");
  for (const std::string_view name : split(unseen, ',')) {
    const std::string what = name == "tile"      ? "tile_m+tile_n+tile_k"
                             : name == "kernels" ? "5"
                                                 : std::string(name);
    FORETUNE_TRY_STATUS(
        judge_unseen(judge, ways, what, concat("ck_forward_without_", name), figures));
  }
  return {};
}

Status time_model(const std::string& path, int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(const Dataset dataset, read_data(argc, argv));
  FORETUNE_TRY(const std::unique_ptr<Selector> selector, Selector::open(path));
  const std::vector<Problem> problems(dataset.problems().begin(), dataset.problems().end());
  const int runs = static_cast<int>(bench::count_argument<unsigned>(argc, argv, "runs", 9));
  std::vector<double> ranked;
  for (const Problem& problem : problems) {
    ranked.push_back(static_cast<double>(selector->rank(problem).size()));
  }
  const double us = bench::selection_us(*selector, problems, runs, false);
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  const std::size_t trees = forests_of(selector->model()).front().trees.size();
  std::printf(
      "%zu trees, %.0f kB: %.0f of %zu candidates ranked in %.0f us (median of %zu "
      "problems, %d rounds)\n",
      trees, bytes / 1000, median(ranked), selector->model().pool.size(), us, problems.size(),
      runs);
  figures.add("ck_rank_trees", static_cast<double>(trees));
  figures.add("ck_rank_model_bytes", bytes);
  figures.add("ck_rank_candidates", median(ranked));
  figures.add("ck_rank_us", us);
  return {};
}

// Walks the values that the architecture's space lists, and keeps what its rules about kernels
// alone allow.
Status write_kernels(const std::string& path, const std::string& arch) {
  FORETUNE_TRY(const SpaceDefinition definition, known_space_of(ck_grouped_conv_schema(), arch));
  FORETUNE_TRY(const auto space, CompiledSpace::create(definition));
  FORETUNE_TRY(const Fingerprint device, ck_fingerprint(arch));
  const auto& domains = definition.domains;
  CkConvKernel kernel;
  kernel.config = {.schema = space->schema_id(), .words = Config::Words(domains.size())};
  std::vector<std::size_t> at(domains.size(), 0);
  std::string names;
  for (bool is_done = false; !is_done;) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
      kernel.config.words[i] = domains[i][at[i]];
    }
    if (space->is_legal_config(kernel.config.words.view(), device.hardware)) {
      FORETUNE_TRY(const std::string name, ck_conv_name(kernel));
      names += name + "\n";
    }
    std::size_t i = 0;
    while (i < domains.size() && ++at[i] == domains[i].size()) {
      at[i++] = 0;
    }
    is_done = i == domains.size();
  }
  std::printf("%zu kernels\n",
              static_cast<std::size_t>(std::count(names.begin(), names.end(), '\n')));
  return write_text_file_atomically(path, names);
}

Status run(int argc, char** argv, Figures& figures) {
  const std::string names = bench::argument(argc, argv, "write-kernels");
  if (!names.empty()) {
    return write_kernels(names, bench::argument(argc, argv, "arch", "gfx950"));
  }
  const std::string model = bench::argument(argc, argv, "model");
  return model.empty() ? judge_ways(argc, argv, figures) : time_model(model, argc, argv, figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("ck_picks", argc, argv, foretune::run);
}
