#include "bench/cudnn_report.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/breakdown.h"
#include "bench/cudnn_ranking.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/cudnn/cudnn_config.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::bench {
namespace {

constexpr std::size_t kDirections = 3;
// How many configs of a ranking are timed.
constexpr std::size_t kFew = 3;
constexpr std::size_t kSome = 5;
// How many layers are listed at either end.
constexpr std::size_t kListed = 8;
// The ranks that cudnn_collect measures where a heuristic has them.
constexpr std::int32_t kRanks = 16;
constexpr std::int32_t kFallbackRanks = 4;
// Number of rounds that time a selection; the fastest counts, because other work may disturb one.
constexpr int kTimedRuns = 7;

// Speeds of one layer over A's first answer.
struct Layer {
  std::string text;
  std::string direction;
  std::string dtype;
  double pick = 1;
  double fast = 1;
  double asked = 1;
  double asked3 = 1;
  double asked5 = 1;
  double benchmark = 1;
  double best = 1;

  [[nodiscard]] double better_of_both() const { return std::max(1.0, benchmark); }
};

// One way to choose.
struct Way {
  const char* name;
  const char* metric;  // in front of the figures' names
  double Layer::* speed;
};
constexpr Way kWays[] = {{"the model's pick", "", &Layer::pick},
                         {"the fast mode's pick", "fast_", &Layer::fast},
                         {"the model's pick among pool and answers", "asked_", &Layer::asked},
                         {"one timing of A's first and its first 3", "asked3_", &Layer::asked3},
                         {"one timing of A's first and its first 5", "asked5_", &Layer::asked5},
                         {"the choice of one short timing", "benchmark_", &Layer::benchmark},
                         {"the best config known", "best_", &Layer::best}};

std::vector<double> ratios(const std::vector<const Layer*>& layers, const auto& ratio) {
  std::vector<double> out;
  out.reserve(layers.size());
  for (const Layer* const layer : layers) {
    out.push_back(ratio(*layer));
  }
  return out;
}

void print_group(const std::string& name, const std::vector<const Layer*>& layers,
                 Figures& figures) {
  std::printf("%s: %zu layers\n%-50s %8s %8s %8s %8s %8s %8s %8s\n", name.c_str(), layers.size(),
              "", "/ first", "/ timing", "median", "P90", "worst", "%<0.98", "of best");
  const std::string suffix = name == "all" ? "" : concat("_", name);
  for (const Way& way : kWays) {
    const auto over_first = ratios(layers, [&](const Layer& layer) { return layer.*way.speed; });
    const auto over_benchmark =
        ratios(layers, [&](const Layer& layer) { return layer.*way.speed / layer.benchmark; });
    const auto over_both = ratios(
        layers, [&](const Layer& layer) { return layer.*way.speed / layer.better_of_both(); });
    const auto of_best =
        ratios(layers, [&](const Layer& layer) { return layer.*way.speed / layer.best; });
    const double share = share_slower(over_both);
    std::printf("%-50s %8.4f %8.4f %8.3f %8.3f %8.3f %8.1f %8.4f\n", way.name,
                geometric_mean(over_first), geometric_mean(over_benchmark),
                quantile(over_first, 0.5), quantile(over_first, 0.9), quantile(over_both, 0),
                100 * share, geometric_mean(of_best));
    const auto add = [&](const char* figure, double value) {
      figures.add(concat(way.metric, figure, suffix), value);
    };
    add("geomean_over_first", geometric_mean(over_first));
    add("geomean_over_benchmark", geometric_mean(over_benchmark));
    add("share_below_098", share);
    add("of_best_engine", geometric_mean(of_best));
    add("median_over_first", quantile(over_first, 0.5));
    add("worst_over_both", quantile(over_both, 0));
  }
  figures.add(concat("layers", suffix), static_cast<double>(layers.size()));
}

void print_ends(std::vector<const Layer*> layers) {
  std::sort(layers.begin(), layers.end(), [](const Layer* a, const Layer* b) {
    return a->pick / a->better_of_both() < b->pick / b->better_of_both();
  });
  std::printf("the pick over the better of A's first and the timing, worst and best layers\n");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i < kListed || i + kListed >= layers.size()) {
      const Layer& layer = *layers[i];
      std::printf("  %6.3f (over A's first %.3f, best known %.3f) %s\n",
                  layer.pick / layer.better_of_both(), layer.pick, layer.best, layer.text.c_str());
    }
  }
}

void add_refused_ranks(MeasuredConfigs& measured) {
  for (const CudnnHeuristic heuristic :
       {CudnnHeuristic::kA, CudnnHeuristic::kB, CudnnHeuristic::kFallback}) {
    const std::int32_t last = heuristic == CudnnHeuristic::kFallback ? kFallbackRanks : kRanks;
    for (std::int32_t rank = 1; rank <= last; ++rank) {
      measured.try_emplace(CudnnConfig::ranked(heuristic, rank).to_config(),
                           MeasuredConfig{.outcome = Outcome::kUnsupported});
    }
  }
}

// Returns the median over the layers of the time of a pick, in us, in the fastest round; of the
// fast mode, over the layers that the distilled model answers.
double pick_us(const CudnnModels& models, const std::vector<Problem>& problems, bool is_fast) {
  double best_us = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kTimedRuns; ++round) {
    std::vector<double> each_us;
    for (const Problem& problem : problems) {
      const Selector& selector = models.of(problem);
      const double begin_s = seconds_now();
      const bool is_answered = is_fast ? !selector.select_fast(problem).exact
                                       : selector.select_uncached(problem).has_candidate;
      const double end_s = seconds_now();
      if (is_answered) {
        each_us.push_back(1e6 * (end_s - begin_s));
      }
    }
    best_us = std::min(best_us, each_us.empty() ? best_us : median(each_us));
  }
  return best_us;
}

void report_times(const CudnnModels& models, const JudgedSet& judged, Figures& figures) {
  std::vector<Problem> problems;
  std::size_t distilled = 0;
  for (const JudgedProduct& product : judged.products) {
    problems.push_back(product.problem);
    distilled += models.of(product.problem).select_fast(product.problem).exact ? 0U : 1U;
  }
  const double exact_us = pick_us(models, problems, false);
  const double fast_us = pick_us(models, problems, true);
  std::printf(
      "a pick for a new layer takes %.1f us, by the fast mode %.2f us; %zu of %zu layers are "
      "answered by the distilled model\n",
      exact_us, fast_us, distilled, problems.size());
  figures.add("pick_us", exact_us);
  figures.add("fast_pick_us", fast_us);
  figures.add("share_distilled",
              static_cast<double>(distilled) / static_cast<double>(problems.size()));
}

// Speeds of the first of a ranking that runs, and of the choice of one timing of A's first answer
// and the first few.
struct AskedSpeeds {
  double first = 1;
  double timed_3 = 1;
  double timed_5 = 1;
};

// `first`: the row of A's first answer. The timing that chooses is another one than the turns that
// judge. A config that took no turns counts as it was measured once.
AskedSpeeds asked_speeds(const std::vector<ScoredConfig>& ranking, const MeasuredConfigs& measured,
                         const MeasuredConfig& first) {
  AskedSpeeds speeds;
  if (!first.once_ns || !first.in_turns_ns) {
    return speeds;
  }
  double chosen_ns = *first.once_ns;
  double chosen = 1;
  std::size_t tried = 0;
  for (const ScoredConfig& candidate : ranking) {
    const auto row = measured.find(candidate.config);
    if (row == measured.end() || !row->second.once_ns || row->second.outcome > Outcome::kCensored) {
      continue;
    }
    const double once_ns = *row->second.once_ns;
    const double speed = row->second.in_turns_ns ? *first.in_turns_ns / *row->second.in_turns_ns
                                                 : *first.once_ns / once_ns;
    ++tried;
    if (once_ns < chosen_ns) {
      chosen_ns = once_ns;
      chosen = speed;
    }
    if (tried == 1) {
      speeds.first = speed;
    }
    if (tried <= kFew) {
      speeds.timed_3 = chosen;
    }
    speeds.timed_5 = chosen;
    if (tried == kSome) {
      break;
    }
  }
  return speeds;
}

}  // namespace

Result<CudnnChoices> read_choices(const std::string& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  CudnnChoices choices;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> parts = split(line, '\t');
    if (parts.size() != 3 || (parts[1] != "a1" && parts[1] != "benchmark")) {
      continue;
    }
    FORETUNE_TRY(const std::vector<Config> config, parse_cudnn_configs(parts[2]));
    if (config.size() != 1) {
      return fail(ErrorCode::kInvalidArgument, path, ": a line has no config: ", line);
    }
    (parts[1] == "a1" ? choices.first : choices.benchmark).emplace(parts[0], config.front());
  }
  return choices;
}

Result<CudnnModels> CudnnModels::open(const std::string& paths) {
  CudnnModels models;
  for (const std::string_view path : split(paths, ',')) {
    FORETUNE_TRY(auto selector, Selector::open(std::string(path)));
    models.selectors_.push_back(std::move(selector));
  }
  if (models.selectors_.size() != 1 && models.selectors_.size() != kDirections) {
    return fail(ErrorCode::kInvalidArgument,
                "give one model, or three: forward, backward_data, backward_weight");
  }
  return models;
}

Result<CudnnModels> CudnnModels::shipped() {
  CudnnModels models;
  models.selectors_.resize(kDirections);
  for (const DefaultCudnnModel& shipped : default_cudnn_models()) {
    FORETUNE_TRY(Model model, parse_model(shipped.bytes));
    FORETUNE_TRY(models.selectors_.at(static_cast<std::size_t>(shipped.operation)),
                 Selector::create(std::move(model)));
  }
  return models;
}

const Selector& CudnnModels::of(const Problem& problem) const {
  const Result<ConvProblem> conv = ConvProblem::from(problem);
  return selectors_.size() == 1 || !conv
             ? *selectors_.front()
             : *selectors_.at(static_cast<std::size_t>(conv->operation()));
}

Result<JudgedSet> judge_convolutions(const CudnnModels& models, const Dataset& dataset,
                                     const CudnnChoices& choices, std::size_t top) {
  const Config library = CudnnConfig::ranked(CudnnHeuristic::kA, 1).to_config();
  JudgedSet judged;
  judged.family = dataset.header().family;
  for (auto& [index, measured] : read_measured(dataset)) {
    const Problem& problem = dataset.problems()[index];
    MeasuredConfigs configs = measured;
    add_refused_ranks(configs);
    const auto first = choices.first.find(problem.text());
    FORETUNE_TRY(const ModelAnswer answer,
                 ask(models.of(problem), problem, library,
                     first == choices.first.end() ? nullptr : &first->second));
    judged.add(problem, judge(answer, configs, library, top));
  }
  if (judged.products.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no convolution was compared");
  }
  return judged;
}

Status report_directions(const CudnnModels& models, const JudgedSet& judged, const Dataset& dataset,
                         const CudnnChoices& choices, double margin, Figures& figures) {
  const std::map<std::uint32_t, MeasuredConfigs> measured = read_measured(dataset);
  std::vector<Layer> layers;
  std::size_t left_out = 0;
  for (const auto& [problem, verdict] : judged.products) {
    FORETUNE_TRY(const ConvProblem conv, ConvProblem::from(problem));
    const std::string text = problem.text();
    const MeasuredConfigs& configs = measured.at(*dataset.find_problem(problem));
    const auto row_of = [&](const LibraryAnswers& of) -> const MeasuredConfig* {
      const auto choice = of.find(text);
      const auto row = choice == of.end() ? configs.end() : configs.find(choice->second);
      return row != configs.end() && row->second.in_turns_ns ? &row->second : nullptr;
    };
    const MeasuredConfig* const first = row_of(choices.first);
    const MeasuredConfig* const benchmark = row_of(choices.benchmark);
    if (first == nullptr || benchmark == nullptr) {
      ++left_out;
      continue;
    }
    FORETUNE_TRY(const std::vector<ScoredConfig> ranking,
                 ranking_with_answers(models.of(problem), problem, answers_in(configs)));
    const AskedSpeeds asked = asked_speeds(ranking, configs, *first);
    layers.push_back({.text = text,
                      .direction = std::string(to_string(conv.operation())),
                      .dtype = std::string(to_string(conv.dtype())),
                      .pick = verdict.with_margin(margin),
                      .fast = verdict.fast_in_turns.value_or(verdict.fast(margin)),
                      .asked = asked.first,
                      .asked3 = asked.timed_3,
                      .asked5 = asked.timed_5,
                      .benchmark = *first->in_turns_ns / *benchmark->in_turns_ns,
                      .best = verdict.oracle});
  }
  std::map<std::string, std::vector<const Layer*>> groups;
  std::vector<const Layer*> all;
  for (const Layer& layer : layers) {
    all.push_back(&layer);
    groups[layer.direction].push_back(&layer);
    groups[concat(layer.direction, "_", layer.dtype)].push_back(&layer);
  }
  if (all.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no layer has a choice of the short timing");
  }
  std::printf(
      "speed over A's first answer (/ first), over the choice of one short timing "
      "(/ timing); worst and share below 0.98 over the better of both; %zu layers without "
      "a time of either are left out\n",
      left_out);
  for (const auto& [name, group] : groups) {
    print_group(name, group, figures);
  }
  print_group("all", all, figures);
  print_ends(all);
  report_times(models, judged, figures);
  return {};
}

}  // namespace foretune::bench
