// The parts of a selector. Internal to the module.
// Thread safety: as select.h says.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/features/feature_table.h"
#include "foretune/metrics/objective.h"
#include "foretune/model/distilled/distilled_ranker.h"
#include "foretune/model/domain_index.h"
#include "foretune/model/scorer.h"
#include "foretune/select/answer_cache.h"
#include "foretune/select/select.h"
#include "foretune/select/workspace_pool.h"
#include "foretune/space/config_index.h"
#include "foretune/space/folded_rules.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

struct Selector::State {
  enum class Form : std::uint8_t {
    kCanonical,
    kRepresented,  // another candidate is its canonical form
    kAlone,        // its canonical form is no candidate
  };
  // All that the exact model needs beyond the model.
  struct Exact {
    // Candidates that the rules on configs alone allow: scored are these.
    std::vector<std::uint32_t> scored;
    ConfigIndex by_words;  // of the same
    std::vector<std::uint32_t> portfolio;
    std::shared_ptr<const PreparedPool> columns;  // of all metrics
    std::shared_ptr<const PreparedPool> pool;     // what the selector follows; may be the same
    std::size_t scores_offset = 0;
    std::size_t pool_offset = 0;
    std::unique_ptr<WorkspacePool> workspaces;
    AnswerCache cache{1024};
  };
  explicit State(ModelParts given) : parts(std::move(given)) {}

  // Makes the selector follow the objective. Before anything is prepared.
  Status follow(const Objective& objective);
  // All that the fast model needs. The model has passed check_header().
  Status prepare_fast(std::shared_ptr<const CompiledSpace> compiled);
  // The exact model, made ready now if it is not yet; nullptr where that fails.
  [[nodiscard]] Exact* exact() noexcept {
    Exact* const made = exact_made.load(std::memory_order_acquire);
    return made != nullptr || exact_failed.load(std::memory_order_acquire) ? made : prepare_exact();
  }
  Exact* prepare_exact() noexcept;
  Result<std::unique_ptr<Exact>> make_exact();

  // Returns true where the answer is in the cache. A call would cost a twentieth of it.
  [[nodiscard, gnu::always_inline]] bool find(const AnswerCache::Key& key,
                                              AnswerCache::Answer& found) const noexcept {
    const Exact* const made = exact_made.load(std::memory_order_acquire);
    return key.size > 0 && made != nullptr && made->cache.find(key, found);
  }
  // Decides and keeps the answer.
  Choice answer(const AnswerCache::Key& key, const Problem& problem) noexcept;
  // The prediction of candidates that are scored, by columns.
  [[nodiscard]] std::vector<std::vector<PredictedMetric>> predict(
      const Exact& exact, const Problem& problem, std::span<const std::uint32_t> candidates) const;
  // Decides without the cache. The scores of all candidates are left in the workspace.
  Choice decide(const Exact& exact, const Problem& problem,
                std::span<std::byte> workspace) const noexcept;
  [[nodiscard]] bool inside_training(const Problem& problem,
                                     std::span<std::byte> workspace) const noexcept;
  // Nothing where the exact model has to decide.
  [[nodiscard]] std::optional<FastChoice> decide_fast(const Problem& problem,
                                                      double max_regret) const noexcept;
  // Among those in canonical form only, or among all others that no candidate stands for.
  void choose(const Exact& exact, const Problem& problem, std::span<const double> scores, Form form,
              Choice& choice) const;
  // Outside of what it was trained on, the model chooses among few configs that are good in many
  // places instead of among all.
  [[nodiscard]] Choice choose_of_portfolio(const Exact& exact, const Problem& problem,
                                           std::span<const double> scores) const;
  [[nodiscard]] bool is_legal(std::uint32_t candidate, const Problem& problem) const {
    return space != nullptr
               ? space->is_legal_for_problem(words_of(candidate), problem.fields(), hardware())
               : is_legal_sequence(candidate, problem);
  }
  [[nodiscard]] bool is_legal_sequence(std::uint32_t candidate, const Problem& problem) const;
  // In which form a candidate stands on this problem, and the candidate that is its canonical one,
  // if there is one. Measured and learned from are canonical forms alone: how the model scores
  // another one says little.
  [[nodiscard]] std::pair<Form, std::uint32_t> form_of(const Exact& exact, std::uint32_t candidate,
                                                       const Problem& problem) const;
  [[nodiscard]] std::span<const std::int32_t> words_of(std::uint32_t candidate) const {
    return model.pool[candidate].words.view();
  }
  [[nodiscard]] const Hardware& hardware() const { return model.fingerprint.hardware; }

  ModelParts parts;  // the body is bytes until the exact model is prepared
  const Model& model = parts.model;
  std::shared_ptr<const CompiledSpace> space;  // nullptr where configs are sequences
  const FeatureTable* table = nullptr;
  std::vector<ScoreColumn> columns;
  // Nothing where the model's own order is what is wanted.
  std::optional<Judge> judge;
  std::optional<DomainIndex> domain;  // where the model has a domain
  // All that the distilled model needs, where there is one: its layout, the places in its portfolio
  // that the rules on configs alone allow, and the other rules for all places.
  DistilledRanker ranker;
  std::vector<std::uint32_t> fast_places;
  FoldedRules fast_rules;

  // Set once and under the mutex, as the body is: whoever sees one of the two may read all.
  std::atomic<Exact*> exact_made{nullptr};
  std::atomic<bool> exact_failed{false};
  ForkSafeMutex preparing;
  std::unique_ptr<Exact> exact_owner;
  Error failure;
};

}  // namespace foretune
