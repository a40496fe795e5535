#include "sampler.h"

#include <algorithm>
#include <utility>

namespace foretune::network_training {
namespace {

using Group = std::vector<std::int64_t>;

// Returns the `count` fastest of a problem's rows whose time is known.
Group fastest_rows(const TrainingRows& data, const Group& rows, std::size_t count) {
  Group fast;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(fast),
               [&](std::int64_t row) { return data.censored[static_cast<std::size_t>(row)] == 0; });
  count = std::min(count, fast.size());
  std::partial_sort(fast.begin(), fast.begin() + static_cast<std::ptrdiff_t>(count), fast.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      const float time_a = data.relative[static_cast<std::size_t>(a)];
                      const float time_b = data.relative[static_cast<std::size_t>(b)];
                      return time_a != time_b ? time_a < time_b : a < b;
                    });
  fast.resize(count);
  return fast;
}

// Appends `wanted` of `fast` that are not in the group yet.
void add_fast(Group& group, Group& fast, std::size_t wanted, Rng& rng) {
  rng.shuffle(std::span(fast));
  Group dealt = group;
  std::sort(dealt.begin(), dealt.end());
  for (const std::int64_t row : fast) {
    if (wanted == 0) {
      return;
    }
    if (!std::binary_search(dealt.begin(), dealt.end(), row)) {
      group.push_back(row);
      --wanted;
    }
  }
}

void deal_problem(const TrainingRows& data, Group rows, std::size_t group_size, Rng& rng,
                  std::vector<Group>& groups) {
  if (rows.size() <= group_size) {
    groups.push_back(std::move(rows));
    return;
  }
  const std::size_t extra = group_size / 4;
  const std::size_t dealt = group_size - extra;
  const std::size_t count = (rows.size() + dealt - 1) / dealt;
  Group fast = fastest_rows(data, rows, group_size);
  rng.shuffle(std::span(rows));
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(rows.size() * i / count);
    const auto end = static_cast<std::ptrdiff_t>(rows.size() * (i + 1) / count);
    Group group(rows.begin() + begin, rows.begin() + end);
    add_fast(group, fast, extra, rng);
    groups.push_back(std::move(group));
  }
}

void append_group(EpochPlan& plan, const Group& group, std::size_t batch_begin) {
  const std::size_t first = plan.rows.size() - batch_begin;
  for (std::size_t place = 0; place < plan.places; ++place) {
    const bool is_present = place < group.size();
    plan.position.push_back(is_present ? static_cast<std::int64_t>(first + place) : 0);
    plan.present.push_back(is_present ? 1 : 0);
  }
  plan.rows.insert(plan.rows.end(), group.begin(), group.end());
}

}  // namespace

EpochPlan plan_rows(std::span<const std::int64_t> rows, std::size_t batch_size, Rng& rng) {
  EpochPlan plan{.rows = {rows.begin(), rows.end()}};
  rng.shuffle(std::span(plan.rows));
  const std::size_t count = std::max<std::size_t>(1, (rows.size() + batch_size / 2) / batch_size);
  for (std::size_t i = 0; i < count; ++i) {
    plan.batches.push_back(
        {.begin_row = rows.size() * i / count, .end_row = rows.size() * (i + 1) / count});
  }
  return plan;
}

EpochPlan plan_groups(const TrainingRows& data, const ProblemRows& problems, std::size_t batch_size,
                      std::size_t group_size, Rng& rng) {
  std::vector<Group> groups;
  std::size_t left = 0;
  for (const Group& rows : problems) {
    deal_problem(data, rows, group_size, rng, groups);
  }
  rng.shuffle(std::span(groups));
  EpochPlan plan;
  for (const Group& group : groups) {
    plan.places = std::max(plan.places, group.size());
    left += group.size();
  }
  EpochPlan::Batch batch;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    append_group(plan, groups[i], batch.begin_row);
    left -= groups[i].size();
    batch.end_row = plan.rows.size();
    batch.end_group = i + 1;
    // This batch takes the remaining rows too when they would make a last batch of less than half
    // the size.
    if (left == 0 || (batch.end_row - batch.begin_row >= batch_size && left >= batch_size / 2)) {
      plan.batches.push_back(batch);
      batch = {.begin_row = batch.end_row, .begin_group = batch.end_group};
    }
  }
  return plan;
}

}  // namespace foretune::network_training
