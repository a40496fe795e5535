#include "foretune/cluster/merge.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/cluster/task.h"
#include "foretune/dataset/journal.h"

namespace foretune::cluster {
namespace {

// One row is enough for each; a later stage has a row for each set of metrics.
using RowKey = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::vector<MetricIndex>>;

RowKey key_of(const Dataset& dataset, RowIndex index) {
  const Dataset::Row& row = dataset.rows()[index];
  std::vector<MetricIndex> metrics;
  if (row.is_evaluation()) {
    metrics.push_back(0);  // so that it differs from a row of timing
    for (const Dataset::ExtraMetric& extra : dataset.extras(index)) {
      metrics.push_back(extra.metric);
    }
  }
  return {row.problem, row.config, row.context, std::move(metrics)};
}

// Returns the positions of rows in the order of the plan's problems; those of one problem keep
// their order.
std::vector<RowIndex> planned_order(const RunFolder& run, const Dataset& dataset) {
  std::unordered_map<std::string, std::size_t> position;
  for (const Shard& shard : run.plan().shards) {
    for (const std::string& problem : shard.problems) {
      position.emplace(problem, position.size());
    }
  }
  std::vector<std::size_t> of_problem;
  for (const Problem& problem : dataset.problems()) {
    const auto found = position.find(problem.text());
    of_problem.push_back(found == position.end() ? position.size() : found->second);
  }
  std::vector<RowIndex> order(dataset.size());
  for (RowIndex i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](RowIndex a, RowIndex b) {
    return of_problem[dataset.rows()[a].problem] < of_problem[dataset.rows()[b].problem];
  });
  return order;
}

Result<Dataset> read_all(const RunFolder& run, MergedRun& merged) {
  std::optional<Dataset> all;
  FORETUNE_TRY(const std::vector<std::string> names, run.names("journals"));
  for (const std::string& name : names) {
    const std::string task = std::filesystem::path(name).stem().string();
    ReadReport report;
    FORETUNE_TRY(const std::optional<Dataset> read, run.read_journal(task, &report));
    merged.torn += !read || report.torn_bytes > 0 ? 1U : 0U;
    if (!read) {
      continue;
    }
    ++merged.journals;
    if (!all) {
      all = *read;
    } else if (Status joined = all->merge(*read); !joined) {
      return fail_because(joined.error(), run.journal(task).string());
    }
  }
  if (!all || all->size() == 0) {
    return fail(ErrorCode::kNotFound, "no task of ", run.path().string(), " has measured anything");
  }
  return *std::move(all);
}

}  // namespace

Result<MergedRun> merge_run(const RunFolder& run) {
  MergedRun merged{.dataset = Dataset({}), .conflicts = {}, .rows_by_context = {}};
  FORETUNE_TRY(const Dataset all, read_all(run, merged));
  Dataset out(all.header());
  out.reserve(all.size());
  std::map<RowKey, RowIndex> first;
  for (const RowIndex index : planned_order(run, all)) {
    const Dataset::Row& row = all.rows()[index];
    if ((row.flags & kFlagReference) == 0) {
      const auto [known, is_new] = first.emplace(key_of(all, index), index);
      if (!is_new) {
        ++merged.duplicates;
        const Outcome before = all.rows()[known->second].outcome;
        if (row.outcome != before) {
          merged.conflicts.push_back(
              concat(all.problems()[row.problem].shown_text(), " with ",
                     to_text(all.header().config_schema, all.configs()[row.config]), " was ",
                     to_string(before), " once and ", to_string(row.outcome), " another time"));
        }
        continue;
      }
    }
    out.add(all.measurement(index));
    Context context = all.contexts()[row.context];
    context.fidelity = 0;
    ++merged.rows_by_context[concat(context.text(), ", machine ", hex_text(context.machine))];
  }
  for (const auto& [name, text] : all.notes()) {
    out.set_note(name, text);
  }
  out.mutable_header().created_by = run.plan().command_line;
  merged.dataset = std::move(out);
  return merged;
}

}  // namespace foretune::cluster
