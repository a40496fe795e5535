#include "foretune/model/train/internal/distilled_teacher.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "foretune/model/model_scorer.h"

namespace foretune::train_internal {
namespace {

constexpr std::uint32_t kIllegal = std::numeric_limits<std::uint32_t>::max();
// Number of problems in one call of a thread's body, which has a workspace of its own.
constexpr std::size_t kShare = 64;

}  // namespace

Result<DistillationTeacher> DistillationTeacher::create(const Model& model, std::size_t threads) {
  DistillationTeacher teacher(model, threads);
  FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(model.space_text));
  FORETUNE_TRY(teacher.space_, CompiledSpace::create(std::move(definition)));
  FORETUNE_TRY(teacher.scorer_, make_scorer(model));
  for (std::uint32_t i = 0; i < model.pool.size(); ++i) {
    teacher.positions_.emplace(model.pool[i], i);
  }
  return teacher;
}

std::vector<std::uint32_t> DistillationTeacher::forms(std::span<const Problem> problems,
                                                      std::span<const std::uint32_t> candidates,
                                                      ThreadPool& pool) const {
  const Hardware& hardware = model_.fingerprint.hardware;
  std::vector<std::uint32_t> out(problems.size() * candidates.size(), kIllegal);
  pool.run(problems.size(), [&](std::size_t p) {
    const auto fields = problems[p].fields();
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      Config config = model_.pool[candidates[c]];
      const std::span<std::int32_t> words(config.words.begin(), config.words.size());
      if (!space_->is_legal(words, fields, hardware)) {
        continue;
      }
      std::uint32_t& form = out[p * candidates.size() + c];
      form = candidates[c];
      if (space_->canonicalise(words, fields, hardware)) {
        const auto found = positions_.find(config);
        form = found == positions_.end() ? form : found->second;
      }
    }
  });
  return out;
}

Result<std::vector<float>> DistillationTeacher::scores(
    std::span<const Problem> problems, std::span<const std::uint32_t> candidates) const {
  ThreadPool threads(threads_);
  std::vector<std::uint32_t> form = forms(problems, candidates, threads);
  // Only the canonical forms that occur are scored, not the whole pool.
  std::vector<std::uint32_t> needed(form);
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  while (!needed.empty() && needed.back() == kIllegal) {
    needed.pop_back();
  }
  std::vector<std::uint32_t> place(model_.pool.size(), 0);
  ConfigList list(model_.config_schema);
  for (std::uint32_t i = 0; i < needed.size(); ++i) {
    place[needed[i]] = i;
    list.add(model_.pool[needed[i]].words.view());
  }
  std::vector<float> out(form.size(), std::numeric_limits<float>::quiet_NaN());
  if (needed.empty()) {
    return out;
  }
  FORETUNE_TRY(const std::unique_ptr<PreparedPool> prepared,
               scorer_->prepare(list, model_.fingerprint.hardware));
  threads.run((problems.size() + kShare - 1) / kShare, [&](std::size_t share) {
    std::vector<std::byte> workspace(prepared->workspace_bytes());
    std::vector<double> scores(needed.size());
    for (std::size_t p = share * kShare; p < std::min(problems.size(), (share + 1) * kShare); ++p) {
      prepared->score(problems[p], workspace, scores, {});
      for (std::size_t i = p * candidates.size(); i < (p + 1) * candidates.size(); ++i) {
        if (form[i] != kIllegal) {
          out[i] = static_cast<float>(scores[place[form[i]]]);
        }
      }
    }
  });
  return out;
}

}  // namespace foretune::train_internal
