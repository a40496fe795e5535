#include "bench/sparse_records.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/base/thread_pool.h"
#include "foretune/interop/sparse_schedules/schedule_records.h"
#include "foretune/model/model_scorer.h"
#include "foretune/problem/sparse/sparse_problem.h"

namespace foretune::bench {
namespace {

constexpr std::size_t kDrawn = 200;
constexpr std::uint32_t kRowParts = 5;

// Calls task(i) for each i below count, `threads` at once. Returns the first error.
Status run_tasks(std::size_t count, std::uint32_t threads,
                 const std::function<Status(std::size_t)>& task) {
  ThreadPool pool(threads);
  std::vector<Status> done(count);
  pool.run(count, [&](std::size_t i) { done[i] = task(i); });
  const auto failed = std::find_if(done.begin(), done.end(), [](const Status& s) { return !s; });
  return failed == done.end() ? Status() : *failed;
}

// Writes the model's scores of these rows, problem by problem.
Status score_rows(const Dataset& all, const Model& model, const std::vector<RowIndex>& rows,
                  RowScores& scores) {
  std::map<std::uint32_t, std::vector<RowIndex>> by_problem;
  for (const RowIndex row : rows) {
    by_problem[all.rows()[row].problem].push_back(row);
  }
  for (const auto& [problem, own] : by_problem) {
    std::vector<Config> configs;
    for (const RowIndex row : own) {
      configs.push_back(all.configs()[all.rows()[row].config]);
    }
    FORETUNE_TRY(const std::vector<double> found,
                 score_configs(model, all.problems()[problem], configs));
    for (std::size_t i = 0; i < own.size(); ++i) {
      scores[own[i]] = found[i];
    }
  }
  return {};
}

// Trains one model for each part and scores the part's rows with it.
Status score_parts(const Dataset& all, const LearnOptions& options,
                   const std::vector<std::vector<RowIndex>>& parts,
                   const std::function<Dataset(std::size_t part)>& training, RowScores& scores) {
  return run_tasks(parts.size(), options.threads, [&](std::size_t part) -> Status {
    FORETUNE_TRY(const TrainResult trained, train_gbdt(training(part), options.train));
    return score_rows(all, trained.model, parts[part], scores);
  });
}

// Keeps at most `rows` rows of each problem, drawn at random.
void thin_out(Dataset& dataset, std::size_t rows, std::uint64_t seed) {
  std::vector<bool> keep(dataset.size(), false);
  Rng rng(seed);
  for (std::vector<RowIndex>& own : dataset.rows_by_problem()) {
    rng.shuffle(std::span(own));
    for (std::size_t i = 0; i < std::min(rows, own.size()); ++i) {
      keep[own[i]] = true;
    }
  }
  dataset.keep_rows(keep);
}

}  // namespace

Result<SparseRecords> read_sparse_records(const std::string& folder, const std::string& operation,
                                          const std::string& machine, PayloadStore* payloads) {
  ScheduleImportOptions options;
  options.payloads = payloads;
  options.keep_repeats = true;
  FORETUNE_TRY(
      Dataset repeats,
      import_schedule_file(concat(folder, "/", operation, "_", machine, ".csv.zst"), options));
  Dataset merged = repeats;
  merged.deduplicate();
  return SparseRecords{operation, machine, std::move(repeats), std::move(merged)};
}

namespace {

// The part of every problem, by what must stay together with it.
using PartOf = std::map<std::uint64_t, std::size_t>;
using KeyOf = std::function<std::uint64_t(const Problem&)>;

// Scores the rows of each part by a model of `data` without the part's keys.
Result<RowScores> scores_by_key(const Dataset& all, const Dataset& data, const PartOf& part_of,
                                const KeyOf& key_of, std::size_t parts,
                                const LearnOptions& options) {
  std::vector<std::vector<RowIndex>> rows_of_part(parts);
  for (RowIndex row = 0; row < all.size(); ++row) {
    const auto found = part_of.find(key_of(all.problems()[all.rows()[row].problem]));
    if (found != part_of.end()) {
      rows_of_part[found->second].push_back(row);
    }
  }
  Dataset thin = data;
  thin_out(thin, options.rows, options.seed);
  const auto training = [&](std::size_t part) {
    std::vector<bool> keep;
    for (const Problem& problem : thin.problems()) {
      const auto found = part_of.find(key_of(problem));
      keep.push_back(found == part_of.end() || found->second != part);
    }
    return thin.filter_problems(keep);
  };
  RowScores scores(all.size(), std::numeric_limits<double>::quiet_NaN());
  FORETUNE_TRY_STATUS(score_parts(all, options, rows_of_part, training, scores));
  return scores;
}

}  // namespace

Result<RowScores> scores_by_group(const Dataset& all, const Dataset& data, std::size_t parts,
                                  const LearnOptions& options) {
  std::set<std::uint64_t> groups;
  for (const Problem& problem : all.problems()) {
    groups.insert(problem.group());
  }
  const std::size_t count = parts == 0 ? groups.size() : std::min(parts, groups.size());
  PartOf part_of;
  for (const std::uint64_t group : groups) {
    part_of.emplace(group, part_of.size() % count);
  }
  return scores_by_key(
      all, data, part_of, [](const Problem& problem) { return problem.group(); }, count, options);
}

Result<RowScores> leave_originals_out(const Dataset& all, const LearnOptions& options) {
  return scores_by_group(all, all, 0, options);
}

Result<RowScores> leave_names_out(const Dataset& all, const LearnOptions& options) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> names_of;
  for (const Problem& problem : all.problems()) {
    names_of[problem.group()].push_back(std::hash<Problem>()(problem));
  }
  PartOf part_of;
  for (const auto& [group, names] : names_of) {
    for (const std::uint64_t name : names) {
      if (names.size() > 1) {
        part_of.emplace(name, part_of.size());
      }
    }
  }
  return scores_by_key(
      all, all, part_of,
      [](const Problem& problem) -> std::uint64_t { return std::hash<Problem>()(problem); },
      part_of.size(), options);
}

Result<RowScores> leave_rows_out(const Dataset& all, const LearnOptions& options) {
  std::vector<std::vector<RowIndex>> parts(kRowParts);
  std::vector<std::size_t> part_of(all.size());
  Rng rng(options.seed);
  for (RowIndex row = 0; row < all.size(); ++row) {
    part_of[row] = rng.below(kRowParts);
    parts[part_of[row]].push_back(row);
  }
  RowScores scores(all.size(), std::numeric_limits<double>::quiet_NaN());
  const auto training = [&](std::size_t part) {
    Dataset out = all;
    std::vector<bool> keep(all.size());
    for (RowIndex row = 0; row < all.size(); ++row) {
      keep[row] = part_of[row] != part;
    }
    out.keep_rows(keep);
    thin_out(out, options.rows, options.seed);
    return out;
  };
  FORETUNE_TRY_STATUS(score_parts(all, options, parts, training, scores));
  return scores;
}

RowScores nearest_matrix_scores(const Dataset& all) {
  const auto rows = all.rows_by_problem();
  const auto place = [&](std::size_t problem) {
    const SparseSizes sizes = SparseProblem::from(all.problems()[problem])->sizes();
    return std::array<double, 3>{std::log2(static_cast<double>(sizes.rows)),
                                 std::log2(static_cast<double>(sizes.columns)),
                                 std::log2(static_cast<double>(sizes.non_zeros) + 1)};
  };
  const auto best_row = [&](std::size_t problem) {
    return *std::min_element(rows[problem].begin(), rows[problem].end(), [&](auto a, auto b) {
      return all.rows()[a].time_ns < all.rows()[b].time_ns;
    });
  };
  RowScores scores(all.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t problem = 0; problem < rows.size(); ++problem) {
    std::optional<std::size_t> nearest;
    double nearest_distance = std::numeric_limits<double>::infinity();
    for (std::size_t other = 0; other < rows.size(); ++other) {
      if (rows[other].empty() || all.problems()[other].group() == all.problems()[problem].group()) {
        continue;
      }
      double distance = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        distance += std::pow(place(problem)[i] - place(other)[i], 2);
      }
      if (distance < nearest_distance) {
        nearest_distance = distance;
        nearest = other;
      }
    }
    if (!nearest) {
      continue;
    }
    const Config::Words& best = all.configs()[all.rows()[best_row(*nearest)].config].words;
    for (const RowIndex row : rows[problem]) {
      const Config::Words& own = all.configs()[all.rows()[row].config].words;
      double differing = 0;
      for (std::size_t i = 0; i < own.size(); ++i) {
        differing += own[i] != best[i] ? 1 : 0;
      }
      scores[row] = differing;
    }
  }
  return scores;
}

namespace {

std::uint64_t pair_of(std::uint32_t problem, std::uint32_t config) {
  return (std::uint64_t{problem} << 32U) | config;
}

struct Repeated {
  std::vector<std::uint32_t> config;
  std::vector<double> first;
  std::vector<double> second;
};

std::map<std::uint32_t, Repeated> repeated_of(const SparseRecords& records) {
  std::unordered_map<std::uint64_t, std::vector<double>> times;
  std::vector<std::uint64_t> order;
  for (const Dataset::Row& row : records.repeats.rows()) {
    std::vector<double>& own = times[pair_of(row.problem, row.config)];
    if (own.empty()) {
      order.push_back(pair_of(row.problem, row.config));
    }
    own.push_back(static_cast<double>(row.time_ns));
  }
  std::map<std::uint32_t, Repeated> out;
  for (const std::uint64_t pair : order) {
    const std::vector<double>& own = times[pair];
    if (own.size() >= 2) {
      Repeated& matrix = out[static_cast<std::uint32_t>(pair >> 32U)];
      matrix.config.push_back(static_cast<std::uint32_t>(pair));
      matrix.first.push_back(own[0]);
      matrix.second.push_back(own[1]);
    }
  }
  return out;
}

}  // namespace

std::vector<JudgedMatrix> all_schedules(const SparseRecords& records) {
  std::vector<JudgedMatrix> out;
  const auto rows = records.merged.rows_by_problem();
  for (std::uint32_t problem = 0; problem < rows.size(); ++problem) {
    JudgedMatrix& matrix = out.emplace_back(JudgedMatrix{.problem = problem});
    for (const RowIndex row : rows[problem]) {
      matrix.time_ns.push_back(static_cast<double>(records.merged.rows()[row].time_ns));
    }
  }
  return out;
}

std::vector<JudgedMatrix> repeated_schedules(const SparseRecords& records) {
  std::vector<JudgedMatrix> out;
  for (auto& [problem, repeated] : repeated_of(records)) {
    out.push_back({.problem = problem,
                   .time_ns = std::move(repeated.second),
                   .scores = {{"ceiling", std::move(repeated.first)}}});
  }
  return out;
}

void add_scores(const SparseRecords& records, const RowScores& scores, const std::string& name,
                std::vector<JudgedMatrix>& matrices) {
  std::unordered_map<std::uint64_t, double> score_of;
  for (RowIndex row = 0; row < records.merged.size(); ++row) {
    const Dataset::Row& measured = records.merged.rows()[row];
    score_of[pair_of(measured.problem, measured.config)] = scores[row];
  }
  const auto repeated = repeated_of(records);
  const auto rows = records.merged.rows_by_problem();
  for (JudgedMatrix& matrix : matrices) {
    std::vector<double>& own = matrix.scores.emplace_back(name, std::vector<double>()).second;
    const bool is_repeated = matrix.scores.front().first == "ceiling";
    if (is_repeated) {
      for (const std::uint32_t config : repeated.at(matrix.problem).config) {
        own.push_back(score_of.at(pair_of(matrix.problem, config)));
      }
      continue;
    }
    for (const RowIndex row : rows[matrix.problem]) {
      own.push_back(scores[row]);
    }
  }
}

std::vector<TopFigures> judge(const std::vector<JudgedMatrix>& matrices, std::string_view chooser,
                              std::size_t draws, std::uint64_t seed) {
  std::vector<TopFigures> out;
  for (const JudgedMatrix& matrix : matrices) {
    const std::size_t count = matrix.time_ns.size();
    if (count < kDrawn) {
      continue;
    }
    const auto named = std::find_if(matrix.scores.begin(), matrix.scores.end(),
                                    [&](const auto& scores) { return scores.first == chooser; });
    if (named != matrix.scores.end() && std::isnan(named->second.front())) {
      continue;
    }
    TopFigures figures{.problem = matrix.problem};
    Rng rng(seed + matrix.problem);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t draw = 0; draw < draws; ++draw) {
      for (std::size_t i = 0; i < kDrawn; ++i) {
        std::swap(order[i], order[i + rng.below(count - i)]);
      }
      std::vector<std::uint32_t> drawn(order.begin(), order.begin() + kDrawn);
      if (named != matrix.scores.end()) {
        std::stable_sort(drawn.begin(), drawn.end(), [&](std::uint32_t a, std::uint32_t b) {
          return named->second[a] < named->second[b];
        });
      }
      double best = std::numeric_limits<double>::infinity();
      for (const std::uint32_t schedule : drawn) {
        best = std::min(best, matrix.time_ns[schedule]);
      }
      double chosen = std::numeric_limits<double>::infinity();
      std::size_t taken = 0;
      for (std::size_t i = 0; i < kTopCounts.size(); ++i) {
        for (; taken < kTopCounts[i]; ++taken) {
          chosen = std::min(chosen, matrix.time_ns[drawn[taken]]);
        }
        figures.ratio[i] += best / chosen / static_cast<double>(draws);
        figures.chosen[i] += chosen / static_cast<double>(draws);
      }
      figures.best += best / static_cast<double>(draws);
    }
    out.push_back(figures);
  }
  return out;
}

}  // namespace foretune::bench
