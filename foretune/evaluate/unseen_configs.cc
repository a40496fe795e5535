#include "foretune/evaluate/unseen_configs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/internal/picker.h"
#include "foretune/evaluate/measured_times.h"

namespace foretune {
namespace {

using evaluate_internal::ProblemScore;
using evaluate_internal::score_picks;
using evaluate_internal::score_random;
using evaluate_internal::summarise;
using evaluate_internal::SummaryOptions;

std::vector<std::uint32_t> timed_configs(const Dataset& dataset) {
  std::vector<bool> timed(dataset.configs().size(), false);
  for (const Dataset::Row& row : dataset.rows()) {
    timed[row.config] = timed[row.config] || row.is_timed();
  }
  std::vector<std::uint32_t> out;
  for (std::uint32_t id = 0; id < timed.size(); ++id) {
    if (timed[id]) {
      out.push_back(id);
    }
  }
  return out;
}

ConfigPart part_of(const Dataset& dataset, std::string name,
                   std::span<const std::uint32_t> configs) {
  ConfigPart out{std::move(name), std::vector<bool>(dataset.configs().size(), false)};
  for (const std::uint32_t id : configs) {
    out.is_out[id] = true;
  }
  return out;
}

std::string value_text(const Parameter& parameter, std::int32_t word) {
  const auto label = static_cast<std::size_t>(word);
  return word >= 0 && label < parameter.labels.size() ? parameter.labels[label] : concat(word);
}

Result<std::vector<ConfigPart>> random_parts(const Dataset& dataset,
                                             std::vector<std::uint32_t> configs,
                                             std::uint64_t count, std::uint64_t seed) {
  if (count < 2 || count > configs.size()) {
    return fail(ErrorCode::kInvalidArgument, configs.size(), " timed configs cannot make ", count,
                " parts; there must be 2 or more, with a config each");
  }
  Rng rng = Rng(seed).split(hash64("config parts"));
  rng.shuffle(std::span(configs));
  std::vector<std::vector<std::uint32_t>> dealt(count);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    dealt[i % count].push_back(configs[i]);
  }
  std::vector<ConfigPart> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(part_of(dataset, concat("part ", i + 1), dealt[i]));
  }
  return out;
}

Result<std::vector<std::size_t>> parameters_of(const ConfigSchema& schema, std::string_view names) {
  std::vector<std::size_t> out;
  for (const std::string_view name : split(names, '+')) {
    const std::optional<std::size_t> found = schema.find(name);
    if (!found) {
      std::vector<std::string> known;
      for (const Parameter& parameter : schema.parameters) {
        known.push_back(parameter.name);
      }
      return fail(ErrorCode::kNotFound, quoted(name, 40), " is no parameter of ", schema.name,
                  " configs; there are ", join(known, ", "));
    }
    out.push_back(*found);
  }
  return out;
}

Result<std::vector<ConfigPart>> parts_by_value(const Dataset& dataset,
                                               std::span<const std::uint32_t> configs,
                                               std::string_view what) {
  const std::size_t colon = what.find(':');
  const ConfigSchema& schema = dataset.header().config_schema;
  FORETUNE_TRY(const std::vector<std::size_t> parameters,
               parameters_of(schema, what.substr(0, colon)));
  const std::string_view wanted =
      colon == std::string_view::npos ? std::string_view() : what.substr(colon + 1);
  if (parameters.size() > 1 && colon != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, "one value of several parameters: ", quoted(what, 60));
  }
  std::map<std::vector<std::int32_t>, std::vector<std::uint32_t>> by_values;
  for (const std::uint32_t id : configs) {
    std::vector<std::int32_t> values;
    for (const std::size_t parameter : parameters) {
      values.push_back(dataset.configs()[id].words[parameter]);
    }
    by_values[values].push_back(id);
  }
  if (by_values.size() < 2) {
    return fail(ErrorCode::kInvalidArgument, "all timed configs agree in ", what.substr(0, colon),
                ": none can be left out");
  }
  std::vector<ConfigPart> out;
  std::vector<std::string> known;
  for (const auto& [values, ids] : by_values) {
    std::string name;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& parameter = schema.parameters[parameters[i]];
      known.push_back(value_text(parameter, values[i]));
      name += concat(i == 0 ? "" : " ", parameter.name, "=", known.back());
    }
    if (wanted.empty() || wanted == known.back()) {
      out.push_back(part_of(dataset, std::move(name), ids));
    }
  }
  if (out.empty()) {
    return fail(ErrorCode::kNotFound, "no timed config has the ", what.substr(0, colon), " ",
                quoted(wanted, 40), "; there are ", join(known, ", "));
  }
  return out;
}

// Keeps the rows of some configs, with the ids of all.
Dataset rows_of_configs(const Dataset& dataset, const std::vector<bool>& is_kept) {
  Dataset out = dataset;
  std::vector<bool> keep;
  for (const Dataset::Row& row : dataset.rows()) {
    keep.push_back(is_kept[row.config]);
  }
  out.keep_rows(keep);
  return out;
}

// The scores of one part, in ascending order of problems within a part.
struct Scores {
  std::vector<ProblemScore> unseen;
  std::vector<ProblemScore> seen;
  std::vector<ProblemScore> random;
  std::vector<ProblemScore> of_all;
  std::size_t picked = 0;

  void add(const Scores& other) {
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(unseen, other.unseen);
    append(seen, other.seen);
    append(random, other.random);
    append(of_all, other.of_all);
    picked += other.picked;
  }

  void sort() {
    for (auto* const list : {&unseen, &seen, &random, &of_all}) {
      std::stable_sort(list->begin(), list->end(),
                       [](const auto& a, const auto& b) { return a.problem < b.problem; });
    }
  }

  [[nodiscard]] UnseenConfigs summary(std::string name, std::size_t configs,
                                      const EvaluateOptions& options) const {
    const SummaryOptions summary{.bootstrap_samples = options.bootstrap_samples,
                                 .seed = options.seed};
    return {.name = std::move(name),
            .configs = configs,
            .unseen = summarise("unseen", "never measured", 1, unseen, summary),
            .seen = summarise("seen", "had they been measured", 1, seen, summary),
            .random = summarise("random", "random config", 1, random, summary),
            .of_all = summarise("of_all", "among all configs", 1, of_all, summary),
            .picked_share = static_cast<double>(picked) / static_cast<double>(of_all.size())};
  }
};

class UnseenEvaluator {
 public:
  UnseenEvaluator(const Dataset& dataset, const std::vector<ConfigPart>& parts,
                  const CandidateRecipe& recipe)
      : dataset_(dataset), parts_(parts), recipe_(recipe), times_(dataset), scores_(parts.size()) {
    for (const ConfigPart& part : parts) {
      times_of_part_.emplace_back(rows_of_configs(dataset, part.is_out));
    }
  }

  Status judge(const OuterSplit& split) {
    std::vector<bool> is_training = split.is_test;
    is_training.flip();
    const Dataset training = dataset_.filter_problems(is_training);
    const Dataset test = dataset_.filter_problems(split.is_test);
    FORETUNE_TRY(const Orders with_all, orders(training, {}, split, split.name, test));
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      FORETUNE_TRY(const Orders without, orders_without(training, parts_[p], split, test));
      add_scores(p, with_all, without);
    }
    return {};
  }

  [[nodiscard]] Result<UnseenEvaluation> summary(const EvaluateOptions& options) {
    UnseenEvaluation out;
    Scores together;
    std::size_t configs = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      Scores& scores = scores_[p];
      if (scores.unseen.empty()) {
        return fail(ErrorCode::kInvalidArgument, "no config of ", parts_[p].name,
                    " was timed on a problem that is left out");
      }
      scores.sort();
      const auto count = static_cast<std::size_t>(
          std::count(parts_[p].is_out.begin(), parts_[p].is_out.end(), true));
      out.parts.push_back(scores.summary(parts_[p].name, count, options));
      together.add(scores);
      configs += count;
    }
    together.sort();
    out.together = together.summary("all parts", configs, options);
    return out;
  }

 private:
  // The configs of each tested problem, best first, by ids of the whole data set.
  using Orders = std::map<std::uint32_t, std::vector<std::uint32_t>>;

  [[nodiscard]] Result<Orders> orders(const Dataset& training, std::span<const Config> left_out,
                                      const OuterSplit& split, const std::string& name,
                                      const Dataset& test) const {
    const auto model = recipe_(training, left_out, split);
    if (!model) {
      return fail_because(model.error(), name);
    }
    FORETUNE_TRY(const std::vector<RankedProblem> ranked, rank_with_model(*model, test));
    Orders out;
    for (const RankedProblem& entry : ranked) {
      std::vector<std::uint32_t>& order =
          out[*dataset_.find_problem(test.problems()[entry.problem])];
      for (const std::uint32_t config : entry.configs) {
        order.push_back(*dataset_.find_config(test.configs()[config]));
      }
    }
    return out;
  }

  [[nodiscard]] Result<Orders> orders_without(const Dataset& training, const ConfigPart& part,
                                              const OuterSplit& split, const Dataset& test) const {
    std::vector<Config> left_out;
    std::vector<bool> keep;
    for (std::uint32_t id = 0; id < part.is_out.size(); ++id) {
      if (part.is_out[id]) {
        left_out.push_back(dataset_.configs()[id]);
      }
    }
    for (const Dataset::Row& row : training.rows()) {
      keep.push_back(!part.is_out[*dataset_.find_config(training.configs()[row.config])]);
    }
    Dataset rest = training;
    rest.keep_rows(keep);
    return orders(rest, left_out, split, concat(split.name, " without ", part.name), test);
  }

  void add_scores(std::size_t p, const Orders& with_all, const Orders& without) {
    const std::vector<bool>& is_out = parts_[p].is_out;
    const MeasuredTimes& of_part = times_of_part_[p];
    Scores& scores = scores_[p];
    for (const auto& [problem, order] : without) {
      if (!of_part.has_oracle(problem)) {
        continue;
      }
      scores.unseen.push_back(score_picks(of_part, problem, only(order, is_out), 1));
      scores.seen.push_back(score_picks(of_part, problem, only(with_all.at(problem), is_out), 1));
      scores.random.push_back(score_random(of_part, problem));
      scores.of_all.push_back(score_picks(times_, problem, order, 1));
      scores.picked += !order.empty() && is_out[order.front()] ? 1U : 0U;
    }
  }

  static std::vector<std::uint32_t> only(const std::vector<std::uint32_t>& order,
                                         const std::vector<bool>& is_kept) {
    std::vector<std::uint32_t> out;
    std::copy_if(order.begin(), order.end(), std::back_inserter(out),
                 [&](std::uint32_t config) { return is_kept[config]; });
    return out;
  }

  const Dataset& dataset_;
  const std::vector<ConfigPart>& parts_;
  const CandidateRecipe& recipe_;
  MeasuredTimes times_;
  std::vector<MeasuredTimes> times_of_part_;
  std::vector<Scores> scores_;
};

}  // namespace

Result<std::vector<ConfigPart>> config_parts(const Dataset& dataset, std::string_view what,
                                             std::uint64_t seed) {
  std::vector<std::uint32_t> configs = timed_configs(dataset);
  if (const std::optional<std::uint64_t> count = parse_uint(what)) {
    return random_parts(dataset, std::move(configs), *count, seed);
  }
  return parts_by_value(dataset, configs, what);
}

Result<UnseenEvaluation> evaluate_unseen_configs(const Dataset& dataset,
                                                 const std::vector<OuterSplit>& splits,
                                                 const std::vector<ConfigPart>& parts,
                                                 const CandidateRecipe& recipe,
                                                 const EvaluateOptions& options) {
  UnseenEvaluator evaluator(dataset, parts, recipe);
  for (const OuterSplit& split : splits) {
    FORETUNE_TRY_STATUS(evaluator.judge(split));
  }
  return evaluator.summary(options);
}

}  // namespace foretune
