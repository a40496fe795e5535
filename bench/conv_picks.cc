// Picks of a trained model among the configs of cpu-conv, for convolutions that it never saw: how
// close they come to the best config that was measured, in three directions; how they compare with
// oneDNN, timed in turn; and what its distilled model takes and loses.
//
//   conv_picks --model conv.ftm --validation validation.ftd [--training FOLDER] [--json FILE]
//              [--separate FOLDER] [--layers 80] [--rounds 5]
//              [--ck-data conv_fwd_bf16_gfx950_train.csv.gz]
//
// --training adds the baselines that learn, and --separate judges a model of each direction beside
// the joint one: FOLDER/forward.ftm, backward_data.ftm and backward_weight.ftm. --layers 0 leaves
// oneDNN out. Its layers come from all networks that are built in: those that the model learned
// from and new ones are reported apart. --ck-data adds picks among Composable Kernel's kernels, by
// folds of AMD's published table: what ck_picks says of `train` without options.
//
// A ratio is our speed over oneDNN's: above 1 is faster.
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/ck_folds.h"
#include "bench/contest.h"
#include "bench/conv_contest.h"
#include "bench/conv_peer.h"
#include "bench/fast_mode.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/families/families.h"
#include "foretune/hardware/cpu.h"
#include "foretune/interop/tables/dataset_folder.h"
#include "foretune/model/model_file.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

constexpr std::array kDirections{ConvOperation::kForward, ConvOperation::kBackwardData,
                                 ConvOperation::kBackwardWeight};

ConvOperation direction_of(const Problem& problem) {
  return ConvProblem::from(problem)->sizes().operation;
}

// Returns the rows of the problems in one direction.
Dataset part_of(const Dataset& dataset, ConvOperation direction) {
  std::vector<bool> keep;
  for (const Problem& problem : dataset.problems()) {
    keep.push_back(direction_of(problem) == direction);
  }
  return dataset.filter_problems(keep);
}

struct Judging {
  Dataset validation;
  std::optional<Dataset> training;
  std::shared_ptr<const Family> family;  // for default configs
};

Result<Evaluation> judge(const Model& model, const Judging& judging, ConvOperation direction) {
  const Dataset validation = part_of(judging.validation, direction);
  FORETUNE_TRY(const std::vector<RankedProblem> ranked, rank_with_model(model, validation));
  const std::optional<Dataset> training =
      judging.training ? std::optional(part_of(*judging.training, direction)) : std::nullopt;
  EvaluateOptions options;
  options.training = training ? &*training : nullptr;
  options.default_configs = [&](const Problem& problem) {
    return judging.family->default_configs(problem);
  };
  return evaluate(validation, ranked, &model, options);
}

void add_figures(const PickerResult& picks, const std::string& name, Figures& figures) {
  figures.add(name + "_mean", 100 * picks.mean_efficiency.value);
  figures.add(name + "_median", 100 * picks.median_efficiency.value);
  figures.add(name + "_p10", 100 * picks.p10_efficiency.value);
  figures.add(name + "_min", 100 * picks.min_efficiency.value);
  figures.add(name + "_top1", 100 * picks.top1_hit);
  figures.add(name + "_top5", 100 * picks.top5_hit);
}

// Judges the joint model, and the model of each direction where there is one.
Status report_picks(const Model& joint, const Judging& judging, const std::string& separate,
                    Figures& figures) {
  for (const ConvOperation direction : kDirections) {
    const std::string name(to_string(direction));
    FORETUNE_TRY(const Evaluation evaluation, judge(joint, judging, direction));
    std::printf("\n==== %s\n%s", name.c_str(), report_text(evaluation, false).c_str());
    add_figures(evaluation.model, name, figures);
    for (const PickerResult& baseline : evaluation.baselines) {
      figures.add(concat(name, "_", baseline.key, "_mean"), 100 * baseline.mean_efficiency.value);
      figures.add(concat(name, "_", baseline.key, "_p10"), 100 * baseline.p10_efficiency.value);
    }
    if (!separate.empty()) {
      FORETUNE_TRY(const Model own, read_model(concat(separate, "/", name, ".ftm")));
      FORETUNE_TRY(const Evaluation alone, judge(own, judging, direction));
      add_figures(alone.model, name + "_separate", figures);
      std::printf("a model of this direction alone: mean %.2f %%, median %.2f %%, P10 %.2f %%\n",
                  100 * alone.model.mean_efficiency.value,
                  100 * alone.model.median_efficiency.value,
                  100 * alone.model.p10_efficiency.value);
    }
  }
  return {};
}

// Times the selector's picks beside oneDNN. Where the selector abstains, the config that it names
// for lack of a better one runs, or the family's default.
Status report_contest(const Selector& selector, const Judging& judging, std::size_t layers,
                      int rounds, Figures& figures) {
  std::set<std::uint64_t> known;
  if (judging.training) {
    for (const Problem& problem : judging.training->problems()) {
      known.insert(group_of(problem, GroupKey::kWeights));
    }
  }
  const Family& family = *judging.family;
  std::vector<double> all;
  std::vector<double> all_new;
  std::size_t abstained = 0;
  std::printf("\n==== the pick, nothing measured, beside %s\n", onednn_name().c_str());
  for (const ConvOperation direction : kDirections) {
    const std::string name(to_string(direction));
    std::vector<double> seen;
    std::vector<double> fresh;
    for (const bench::ConvLayer& layer : bench::choose_conv_layers(layers)) {
      ConvSizes sizes = layer.sizes;
      sizes.operation = direction;
      sizes.weights = direction == ConvOperation::kBackwardWeight ? ConvWeights::kVarying
                                                                  : ConvWeights::kConstant;
      FORETUNE_TRY(const ConvProblem problem, ConvProblem::create(sizes));
      const Problem asked = problem.to_problem();
      const Choice choice = selector.select(asked);
      abstained += choice.picked() ? 0U : 1U;
      const std::vector<Config> defaults = family.default_configs(asked);
      if (!choice.has_candidate && defaults.empty()) {
        continue;
      }
      const Config config =
          choice.has_candidate ? selector.config(choice.candidate) : defaults.front();
      const auto times = bench::compare_with_peer(family, problem, config, rounds);
      if (!times) {
        if (times.error().code != ErrorCode::kUnsupported) {
          return fail_because(times.error());
        }
        continue;
      }
      const double ratio = times->peer_s / times->ours_s;
      (known.contains(group_of(asked, GroupKey::kWeights)) ? seen : fresh).push_back(ratio);
      all.push_back(ratio);
      std::printf("  %-15s %-12s %-34s %7.3f  %s%s\n", name.c_str(), layer.of.c_str(),
                  bench::text_of(sizes).c_str(), ratio,
                  to_text(family.info().config_schema, config).c_str(),
                  choice.picked() ? "" : " (abstained)");
    }
    all_new.insert(all_new.end(), fresh.begin(), fresh.end());
    for (const auto& [of, ratios] : {std::pair("known", seen), std::pair("new", fresh)}) {
      if (!ratios.empty()) {
        bench::print_ratios(concat(name, ", ", of), ratios);
        figures.add(concat(name, "_selected_vs_best_", of), geometric_mean(ratios));
      }
    }
  }
  if (all.empty()) {
    return fail(ErrorCode::kNotFound, "oneDNN ran none of the layers");
  }
  bench::print_ratios("all", all);
  figures.add("selected_vs_best_1t", geometric_mean(all));
  if (!all_new.empty()) {
    bench::print_ratios("new", all_new);
    figures.add("selected_vs_best_new_1t", geometric_mean(all_new));
  }
  figures.add("selected_vs_best_1t_worst", *std::min_element(all.begin(), all.end()));
  figures.add("abstained", static_cast<double>(abstained));
  return {};
}

Status report_ck_folds(const std::string& path, Figures& figures) {
  FORETUNE_TRY(const Dataset dataset, bench::read_ck_table(path, "gfx950"));
  const bench::CkJudge judge{.dataset = dataset, .folds = 5, .seeds = {42, 43, 44}};
  const std::vector<bench::CkWay> ways{bench::default_ck_way()};
  FORETUNE_TRY_STATUS(
      bench::judge_ck_folds(judge, ways, GroupKey::kProblem, "ck_forward_folds", figures));
  return bench::judge_ck_folds(judge, ways, GroupKey::kWeights, "ck_forward_weight_folds", figures);
}

Status run(int argc, char** argv, Figures& figures) {
  const auto rounds = static_cast<int>(bench::count_argument(argc, argv, "rounds", 5U));
  const auto layers = bench::count_argument<std::size_t>(argc, argv, "layers", 80);
  FORETUNE_TRY(Model model, read_model(bench::argument(argc, argv, "model")));
  FORETUNE_TRY(Dataset validation, read_dataset(bench::argument(argc, argv, "validation")));
  Judging judging{.validation = std::move(validation), .training = {}, .family = {}};
  if (const std::string folder = bench::argument(argc, argv, "training"); !folder.empty()) {
    FORETUNE_TRY(judging.training, merge_training_sets(folder));
  }
  FamilyOptions options;
  options.fingerprint = model.fingerprint;
  options.threads = 1;
  FORETUNE_TRY(judging.family, create_family(model.family, options));
  figures.machine.emplace_back("model", bench::argument(argc, argv, "model"));
  FORETUNE_TRY_STATUS(
      report_picks(model, judging, bench::argument(argc, argv, "separate"), figures));
  if (model.distilled) {
    FORETUNE_TRY(const bench::Timer timer, bench::live_timer(model.family, options, rounds));
    FORETUNE_TRY_STATUS(bench::report_distilled(figures, model, judging.validation, timer,
                                                Selector::kMaxDistilledRegret));
  }
  if (const std::string data = bench::argument(argc, argv, "ck-data"); !data.empty()) {
    FORETUNE_TRY_STATUS(report_ck_folds(data, figures));
  }
  if (layers > 0 && !onednn_name().empty()) {
    FORETUNE_TRY(const auto selector, Selector::create(std::move(model)));
    FORETUNE_TRY_STATUS(report_contest(*selector, judging, layers, rounds, figures));
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("conv_picks", argc, argv, &foretune::run);
}
