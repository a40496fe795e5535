#include "foretune/evaluate/cross_evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/internal/picker.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/evaluate/objective_evaluation.h"

namespace foretune {
namespace {

// Returns the problems with a measured best time, which can be used for training and for judging.
std::vector<std::uint32_t> timed_problems(const Dataset& dataset) {
  const MeasuredTimes times(dataset);
  std::vector<std::uint32_t> out;
  for (std::uint32_t id = 0; id < dataset.problems().size(); ++id) {
    if (times.has_oracle(id)) {
      out.push_back(id);
    }
  }
  return out;
}

OuterSplit split_of(const Dataset& dataset, std::string name, std::span<const std::uint32_t> test) {
  OuterSplit out{std::move(name), std::vector<bool>(dataset.problems().size(), false)};
  for (const std::uint32_t id : test) {
    out.is_test[id] = true;
  }
  return out;
}

// Leaves out each group of problems with the same key, or the one whose label is `wanted`. `what`
// names the key; key(problem) and label(problem) return it as a number and as text.
template <class KeyOf, class LabelOf>
Result<std::vector<OuterSplit>> leave_out_groups(const Dataset& dataset,
                                                 std::span<const std::uint32_t> problems,
                                                 std::string_view what, std::string_view wanted,
                                                 const KeyOf& key, const LabelOf& label) {
  std::map<decltype(key(dataset.problems().front())), std::vector<std::uint32_t>> groups;
  for (const std::uint32_t id : problems) {
    groups[key(dataset.problems()[id])].push_back(id);
  }
  if (groups.size() < 2) {
    return fail(ErrorCode::kInvalidArgument, "all problems have the same ", what,
                ": none can be left out");
  }
  std::vector<OuterSplit> out;
  std::vector<std::string> labels;
  for (const auto& [value, test] : groups) {
    labels.push_back(label(dataset.problems()[test.front()]));
    if (wanted.empty() || wanted == labels.back()) {
      out.push_back(split_of(dataset, concat(what, " ", labels.back()), test));
    }
  }
  if (out.empty()) {
    return fail(ErrorCode::kNotFound, "no problem has the ", what, " ", quoted(wanted, 40),
                "; there are ", join(labels, ", "));
  }
  return out;
}

Result<std::vector<OuterSplit>> leave_out_third(const Dataset& dataset,
                                                std::span<const std::uint32_t> problems,
                                                std::size_t field, std::string_view third) {
  const std::string name(dataset.problems().front().schema().fields[field].name);
  std::vector<double> values;
  for (const std::uint32_t id : problems) {
    values.push_back(static_cast<double>(dataset.problems()[id].field(field)));
  }
  const double low = std::floor(quantile(values, 1.0 / 3));
  const double high = std::floor(quantile(values, 2.0 / 3));
  std::vector<std::uint32_t> test;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const bool is_small = values[i] <= low;
    const bool is_large = values[i] > high;
    if (third == "smallest" ? is_small : third == "middle" ? !is_small && !is_large : is_large) {
      test.push_back(problems[i]);
    }
  }
  if (test.empty() || test.size() == problems.size()) {
    return fail(ErrorCode::kInvalidArgument, "the values of ", name,
                " are too much alike to leave a third of the problems out");
  }
  const auto [least, most] =
      std::minmax_element(test.begin(), test.end(), [&](std::uint32_t a, std::uint32_t b) {
        return dataset.problems()[a].field(field) < dataset.problems()[b].field(field);
      });
  return std::vector{split_of(dataset,
                              concat(name, " ", dataset.problems()[*least].field(field), " to ",
                                     dataset.problems()[*most].field(field)),
                              test)};
}

// Converts the ids in `ranked` from those of a part of the data set to those of the whole.
Status take_over(const Dataset& dataset, const Dataset& part, std::vector<RankedProblem>& ranked) {
  for (RankedProblem& entry : ranked) {
    const auto problem = dataset.find_problem(part.problems()[entry.problem]);
    if (!problem) {
      return fail(ErrorCode::kInternal, "a part of the data set holds a problem of its own");
    }
    entry.problem = *problem;
    for (std::uint32_t& config : entry.configs) {
      config = *dataset.find_config(part.configs()[config]);
    }
  }
  return {};
}

SplitResult describe_split(const Dataset& dataset, const OuterSplit& split,
                           const std::vector<RankedProblem>& ranked, const MeasuredTimes& times) {
  SplitResult out;
  out.name = split.name;
  std::unordered_set<std::uint64_t> trained;
  for (std::uint32_t id = 0; id < dataset.problems().size(); ++id) {
    if (!split.is_test[id] && times.has_oracle(id)) {
      ++out.training_problems;
      trained.insert(dataset.problems()[id].group());
    }
  }
  std::vector<double> efficiencies;
  std::vector<double> of_five;
  for (const RankedProblem& entry : ranked) {
    if (!times.has_oracle(entry.problem)) {
      continue;
    }
    const auto score = evaluate_internal::score_picks(times, entry.problem, entry.configs, 1);
    efficiencies.push_back(score.efficiency);
    of_five.push_back(score.best_of[4]);
    out.shared_groups += trained.contains(dataset.problems()[entry.problem].group()) ? 1U : 0U;
  }
  out.test_problems = efficiencies.size();
  out.mean_efficiency = mean(efficiencies);
  out.p10_efficiency = quantile(efficiencies, 0.1);
  out.min_efficiency = quantile(efficiencies, 0);
  out.top5_measured_efficiency = mean(of_five);
  return out;
}

Status check_splits(const Dataset& dataset, const std::vector<OuterSplit>& splits) {
  std::vector<bool> tested(dataset.problems().size(), false);
  for (const OuterSplit& split : splits) {
    if (split.is_test.size() != tested.size()) {
      return fail(ErrorCode::kInvalidArgument, "the split '", split.name, "' is for ",
                  split.is_test.size(), " problems, the data set has ", tested.size());
    }
    for (std::size_t id = 0; id < tested.size(); ++id) {
      if (split.is_test[id] && tested[id]) {
        return fail(ErrorCode::kInvalidArgument, "two splits test ",
                    dataset.problems()[id].shown_text());
      }
      tested[id] = tested[id] || split.is_test[id];
    }
  }
  return {};
}

}  // namespace

Result<std::vector<OuterSplit>> nested_folds(const Dataset& dataset, std::uint32_t folds,
                                             std::uint64_t seed, GroupKey key) {
  const std::vector<std::uint32_t> timed = timed_problems(dataset);
  std::vector<Problem> problems;
  std::unordered_set<std::uint64_t> groups;
  for (const std::uint32_t id : timed) {
    problems.push_back(dataset.problems()[id]);
    groups.insert(group_of(problems.back(), key));
  }
  if (folds < 2 || groups.size() < folds) {
    return fail(ErrorCode::kInvalidArgument, groups.size(),
                " groups of problems with a time cannot make ", folds,
                " folds; at least two folds of one group each are needed");
  }
  Rng rng = Rng(seed).split(hash64("outer folds"));
  const std::vector<std::uint32_t> fold_of = group_folds(problems, folds, rng, key);
  std::vector<std::vector<std::uint32_t>> tests(folds);
  for (std::size_t i = 0; i < timed.size(); ++i) {
    tests[fold_of[i]].push_back(timed[i]);
  }
  std::vector<OuterSplit> out;
  for (std::uint32_t fold = 0; fold < folds; ++fold) {
    out.push_back(split_of(dataset, concat("fold ", fold + 1), tests[fold]));
  }
  return out;
}

Result<std::vector<OuterSplit>> leave_out(const Dataset& dataset, std::string_view dimension) {
  const std::vector<std::uint32_t> timed = timed_problems(dataset);
  if (timed.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no problem of the data set has a measured time");
  }
  const std::vector<std::string_view> parts = split(dimension, ':');
  const std::string_view which = parts.size() == 2 ? parts[1] : std::string_view();
  if (parts[0] == "machine" && parts.size() <= 2) {
    FORETUNE_TRY(std::vector<OuterSplit> out,
                 leave_out_groups(
                     dataset, timed, "machine", which,
                     [](const Problem& problem) { return problem.machine(); },
                     [](const Problem& problem) { return hex_text(problem.machine()); }));
    for (OuterSplit& split : out) {
      split.leaves_out_machine = true;
    }
    return out;
  }
  const ProblemSchema& schema = dataset.problems().front().schema();
  const std::optional<std::size_t> field = schema.find(parts[0]);
  if (!field || parts.size() > 2) {
    std::vector<std::string> names;
    for (const ProblemField& known : schema.fields) {
      names.emplace_back(known.name);
    }
    names.emplace_back("machine");
    return fail(ErrorCode::kNotFound, quoted(dimension, 40), " is no field of a ", schema.name,
                " problem; there are ", join(names, ", "));
  }
  if (!schema.fields[*field].labels.empty()) {
    return leave_out_groups(
        dataset, timed, schema.fields[*field].name, which,
        [&](const Problem& problem) { return problem.field(*field); },
        [&](const Problem& problem) { return problem.field_text(*field); });
  }
  if (!which.empty() && which != "largest" && which != "smallest" && which != "middle") {
    return fail(ErrorCode::kInvalidArgument, quoted(which, 40),
                " is none of largest, smallest and middle");
  }
  return leave_out_third(dataset, timed, *field, which);
}

namespace {

// The data set on which picks are judged, and the objective by which they are ranked.
struct Seen {
  const Dataset& dataset;  // that is judged
  const Objective* objective = nullptr;
  const DefaultConfigs* default_configs = nullptr;
  ValueScale scale;
};

Result<std::vector<RankedProblem>> rank_test(const Model& model, const Dataset& test,
                                             const Seen& seen) {
  if (seen.objective == nullptr) {
    return rank_with_model(model, test);
  }
  FORETUNE_TRY(const DatasetJudge judge,
               DatasetJudge::create(test, *seen.objective, *seen.default_configs));
  FORETUNE_TRY(const Dataset view, objective_view(test, judge, seen.scale));
  return rank_with_model(model, view, &judge);
}

Result<CrossEvaluation> cross_evaluate_seen(const Dataset& dataset, const Seen& seen,
                                            const std::vector<OuterSplit>& splits,
                                            const TrainRecipe& recipe, EvaluateOptions options) {
  FORETUNE_TRY_STATUS(check_splits(dataset, splits));
  const MeasuredTimes times(seen.dataset);
  CrossEvaluation out;
  std::vector<RankedProblem> all;
  options.training = nullptr;
  // Problems that no split tests are on the training side of all.
  options.fold_of_problem.assign(dataset.problems().size(),
                                 static_cast<std::uint32_t>(splits.size()));
  for (std::size_t s = 0; s < splits.size(); ++s) {
    const OuterSplit& split = splits[s];
    std::vector<bool> is_training = split.is_test;
    is_training.flip();
    const Dataset test = dataset.filter_problems(split.is_test);
    auto model = recipe(dataset.filter_problems(is_training), split);
    if (!model) {
      return fail_because(model.error(), split.name);
    }
    FORETUNE_TRY(std::vector<RankedProblem> ranked, rank_test(*model, test, seen));
    FORETUNE_TRY_STATUS(take_over(dataset, test, ranked));
    out.splits.push_back(describe_split(seen.dataset, split, ranked, times));
    for (RankedProblem& entry : ranked) {
      options.fold_of_problem[entry.problem] = static_cast<std::uint32_t>(s);
      all.push_back(std::move(entry));
    }
  }
  FORETUNE_TRY(out.evaluation, evaluate(seen.dataset, all, nullptr, options));
  return out;
}

}  // namespace

Result<CrossEvaluation> cross_evaluate(const Dataset& dataset,
                                       const std::vector<OuterSplit>& splits,
                                       const TrainRecipe& recipe, EvaluateOptions options) {
  return cross_evaluate_seen(dataset, {.dataset = dataset}, splits, recipe, std::move(options));
}

Result<CrossEvaluation> cross_evaluate(const Dataset& dataset, const Objective& objective,
                                       const DefaultConfigs& default_configs,
                                       const std::vector<OuterSplit>& splits,
                                       const TrainRecipe& recipe, EvaluateOptions options) {
  FORETUNE_TRY(const DatasetJudge judge, DatasetJudge::create(dataset, objective, default_configs));
  FORETUNE_TRY(const ValueScale scale, fit_scale(dataset, judge.metrics().front()));
  FORETUNE_TRY(const Dataset view, objective_view(dataset, judge, scale));
  const Seen seen{.dataset = view,
                  .objective = &objective,
                  .default_configs = &default_configs,
                  .scale = scale};
  FORETUNE_TRY(CrossEvaluation out,
               cross_evaluate_seen(dataset, seen, splits, recipe, std::move(options)));
  describe_objective(dataset, judge, scale, out.evaluation);
  return out;
}

}  // namespace foretune
