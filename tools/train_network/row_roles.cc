#include "row_roles.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "foretune/base/hash.h"
#include "foretune/base/rng.h"

namespace foretune::network_training {
namespace {

constexpr std::uint64_t kStopStream = 1;

constexpr auto kTraining = static_cast<std::uint8_t>(RowRole::kTraining);
constexpr auto kStop = static_cast<std::uint8_t>(RowRole::kStop);
constexpr auto kHeldOut = static_cast<std::uint8_t>(RowRole::kHeldOut);

// Returns how many candidates decide when to stop: when a share is wanted, at least one decides and
// at least one is left to learn from.
std::size_t stop_count(std::size_t candidates, double share) {
  if (share <= 0 || candidates < 2) {
    return 0;
  }
  const auto count = std::llround(share * static_cast<double>(candidates));
  return std::clamp<std::size_t>(static_cast<std::size_t>(count), 1, candidates - 1);
}

// Gives kStop to a share of the items that are kTraining. Items of one group get the same role;
// without groups each item is a group of its own.
void draw_stop(std::vector<std::uint8_t>& roles, const std::vector<std::uint32_t>& groups,
               const TrainOptions& options) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == kTraining) {
      candidates.push_back(groups.empty() ? i : groups[i]);
    }
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  Rng rng = Rng(options.seed).split(kStopStream);
  rng.shuffle(std::span(candidates));
  candidates.resize(stop_count(candidates.size(), options.stop_share));
  std::sort(candidates.begin(), candidates.end());
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const std::size_t group = groups.empty() ? i : groups[i];
    if (roles[i] == kTraining && std::binary_search(candidates.begin(), candidates.end(), group)) {
      roles[i] = kStop;
    }
  }
}

std::vector<std::uint8_t> roles_by_sample(const TrainingRows& rows, const TrainOptions& options) {
  std::vector<std::uint8_t> roles(rows.size(), kTraining);
  if (options.held_out_fold >= 0) {
    const std::uint64_t folds =
        rows.fold.empty()
            ? 1
            : std::uint64_t{1} + *std::max_element(rows.fold.begin(), rows.fold.end());
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const bool is_held_out =
          mix64(i + 1) % folds == static_cast<std::uint64_t>(options.held_out_fold);
      roles[i] = is_held_out ? kHeldOut : kTraining;
    }
  }
  draw_stop(roles, {}, options);
  return roles;
}

}  // namespace

std::vector<std::uint8_t> row_roles(const TrainingRows& rows, const TrainOptions& options) {
  if (options.splits_rows) {
    return roles_by_sample(rows, options);
  }
  // Problems without rows must not use up the share.
  std::vector<std::uint8_t> problems(rows.fold.size(), kHeldOut);
  for (const std::uint32_t problem : rows.problem) {
    const bool is_held_out =
        options.held_out_fold >= 0 &&
        rows.fold[problem] == static_cast<std::uint32_t>(options.held_out_fold);
    problems[problem] = is_held_out ? kHeldOut : kTraining;
  }
  draw_stop(problems, rows.group, options);
  std::vector<std::uint8_t> roles;
  roles.reserve(rows.size());
  for (const std::uint32_t problem : rows.problem) {
    roles.push_back(problems[problem]);
  }
  return roles;
}

}  // namespace foretune::network_training
