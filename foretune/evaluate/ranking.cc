#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/objective_scorer.h"
#include "foretune/model/scorer.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

// Up to this many configs outside the model's pool are scored with every problem. With more, each
// problem gets its own pool, since hardly any config of a vast space is measured twice.
constexpr std::size_t kMaxShared = 20000;

class WorkingPool {
 public:
  static Result<WorkingPool> create(const Scorer& scorer, const std::vector<const Config*>& configs,
                                    const ConfigSchema& schema, const Hardware& hardware) {
    ConfigList list(schema);
    list.reserve(configs.size());
    for (const Config* config : configs) {
      list.add(config->words.view());
    }
    WorkingPool out;
    FORETUNE_TRY(out.pool_, scorer.prepare(list, hardware));
    out.columns_.assign(scorer.columns().begin(), scorer.columns().end());
    out.scores_.resize(configs.size());
    return out;
  }

  // Scores by the judge's objective, unless it is null.
  Result<std::span<const double>> score(const Problem& problem, const Judge* judge) {
    std::shared_ptr<const PreparedPool> pool = pool_;
    if (judge != nullptr) {
      FORETUNE_TRY(pool, objective_pool(pool_, columns_, *judge));
    }
    workspace_.resize(std::max(workspace_.size(), pool->workspace_bytes()));
    pool->score(problem, workspace_, scores_, {});
    return std::span<const double>(scores_);
  }

 private:
  std::shared_ptr<const PreparedPool> pool_;
  std::vector<ScoreColumn> columns_;
  std::vector<std::byte> workspace_;
  std::vector<double> scores_;
};

Status check_fits(const Model& model, const Dataset& dataset) {
  const DatasetHeader& header = dataset.header();
  if (header.family != model.family) {
    return fail(ErrorCode::kMismatch, "the model picks configs of family ", model.family,
                ", the data set has measurements of ", header.family);
  }
  if (header.problem_type != model.problem_type) {
    return fail(ErrorCode::kMismatch, "the model was trained on problems of another type than the ",
                "data set's");
  }
  if (header.config_schema != model.config_schema) {
    return fail(ErrorCode::kMismatch, "the data set holds configs of ", header.config_schema.name,
                " v", header.config_schema.version, ", the model was trained for ",
                model.config_schema.name, " v", model.config_schema.version);
  }
  return {};
}

// Ranks as the selector would with the same model, over measured configs only.
class ModelRanking {
 public:
  // `judge`, unless null, has the objective of the data set's view.
  ModelRanking(const Model& model, const Dataset& dataset, const DatasetJudge* judge)
      : model_(model), dataset_(dataset), judge_(judge), times_(dataset) {
    for (const Problem& problem : dataset.problems()) {
      if (!hardware_.contains(problem.machine())) {
        hardware_.emplace(problem.machine(), seen_hardware(model, dataset, problem));
      }
    }
  }

  Result<std::vector<RankedProblem>> rank() {
    FORETUNE_TRY(scorer_, make_scorer(model_));
    FORETUNE_TRY_STATUS(read_space());
    FORETUNE_TRY_STATUS(number_configs());
    std::vector<RankedProblem> out;
    for (std::uint32_t problem = 0; problem < dataset_.problems().size(); ++problem) {
      if (times_.candidates(problem).empty() ||
          (judge_ != nullptr && judge_->of(problem) == nullptr)) {
        continue;
      }
      FORETUNE_TRY(RankedProblem ranked, rank_problem(problem));
      out.push_back(std::move(ranked));
    }
    return out;
  }

 private:
  static constexpr std::size_t kNotShared = static_cast<std::size_t>(-1);

  Status read_space() {
    if (model_.space_text.empty()) {
      return {};
    }
    const Result<SpaceDefinition> definition = SpaceDefinition::parse(model_.space_text);
    if (!definition) {
      return fail_because(definition.error(), "the space of the model");
    }
    Result<std::shared_ptr<const CompiledSpace>> compiled = CompiledSpace::create(*definition);
    if (!compiled) {
      return fail_because(compiled.error(), "the space of the model");
    }
    space_ = *std::move(compiled);
    return {};
  }

  [[nodiscard]] bool is_sequence() const {
    return model_.config_schema.kind == SchemaKind::kSequence;
  }

  bool describes(const Config& config) const {
    return config.schema == model_.config_schema.id() &&
           (is_sequence() || config.words.size() == model_.config_schema.parameters.size());
  }

  // The pool comes first, so that equal scores are ordered as the selector orders them.
  Status number_configs() {
    if (is_sequence()) {
      // Sequences have no list of candidates, so any measured config may be picked. Each problem
      // has its own.
      position_of_config_.assign(dataset_.configs().size(), kNotShared);
      return {};
    }
    std::unordered_map<Config, std::size_t> positions;
    for (const Config& config : model_.pool) {
      if (!describes(config)) {
        return fail(ErrorCode::kMismatch, "the pool of the model has a config of another schema");
      }
      positions.emplace(config, shared_.size());
      in_pool_.insert(config);
      shared_.push_back(&config);
    }
    const bool share_all = dataset_.configs().size() <= kMaxShared;
    position_of_config_.assign(dataset_.configs().size(), kNotShared);
    for (std::uint32_t i = 0; i < dataset_.configs().size(); ++i) {
      const Config& config = dataset_.configs()[i];
      config_ids_.emplace(config, i);
      if (const auto found = positions.find(config); found != positions.end()) {
        position_of_config_[i] = found->second;
      } else if (share_all && describes(config)) {
        position_of_config_[i] = shared_.size();
        shared_.push_back(&config);
      }
    }
    return {};
  }

  struct Scored {
    bool outside_pool = false;
    double score = 0;
    std::size_t position = 0;
    std::uint32_t config = 0;
    auto operator<=>(const Scored&) const = default;
  };

  Result<RankedProblem> rank_problem(std::uint32_t id) {
    RankedProblem out;
    out.problem = id;
    std::span<const double> shared_scores;
    if (!shared_.empty()) {
      FORETUNE_TRY(WorkingPool* const pool, shared_pool(dataset_.problems()[id]));
      FORETUNE_TRY(shared_scores, pool->score(dataset_.problems()[id], judge_for(id)));
    }
    std::vector<Scored> scored;
    if (!is_sequence()) {
      scored = rank_pool(id, shared_scores, out);
    }
    if (scored.empty() && space_ && !out.pick_unmeasured && !model_.pool.empty()) {
      return out;  // nothing in the pool is legal, so the selector would not pick either
    }
    FORETUNE_TRY_STATUS(add_others(id, shared_scores, scored));
    std::sort(scored.begin(), scored.end());
    for (const Scored& entry : scored) {
      out.configs.push_back(entry.config);
      // A config that is predicted to violate a bound has a rank but no value.
      out.scores.push_back(keeps_bounds(entry.score) ? entry.score
                                                     : std::numeric_limits<double>::infinity());
    }
    return out;
  }

  [[nodiscard]] const Hardware& hardware_for(const Problem& problem) const {
    return hardware_.at(problem.machine());
  }

  // Returns the pool as the machine of the problem sees it.
  Result<WorkingPool*> shared_pool(const Problem& problem) {
    auto found = shared_pools_.find(problem.machine());
    if (found == shared_pools_.end()) {
      FORETUNE_TRY(WorkingPool pool, WorkingPool::create(*scorer_, shared_, model_.config_schema,
                                                         hardware_for(problem)));
      found = shared_pools_.emplace(problem.machine(), std::move(pool)).first;
    }
    return &found->second;
  }

  [[nodiscard]] const Judge* judge_for(std::uint32_t problem) const {
    return judge_ == nullptr ? nullptr : judge_->of(problem);
  }

  // True when the selector has a candidate in canonical form; then it considers no other forms.
  [[nodiscard]] bool has_canonical(const Problem& problem) const {
    const Hardware& hardware = hardware_for(problem);
    return space_ && std::any_of(model_.pool.begin(), model_.pool.end(), [&](const Config& config) {
             return space_->is_legal(config.words.view(), problem.fields(), hardware) &&
                    space_->is_canonical(config.words.view(), problem.fields(), hardware);
           });
  }

  // Ranks the measured configs that the selector may pick. Without one in canonical form, the best
  // represents all in the pool that are equivalent on this problem.
  std::vector<Scored> rank_pool(std::uint32_t id, std::span<const double> scores,
                                RankedProblem& out) const {
    const Problem& problem = dataset_.problems()[id];
    const Hardware& hardware = hardware_for(problem);
    std::unordered_map<std::uint32_t, Scored> best;
    std::optional<std::pair<double, std::size_t>> best_unmeasured;
    const bool canonical_only = has_canonical(problem);
    for (std::size_t i = 0; i < model_.pool.size(); ++i) {
      std::optional<std::uint32_t> config = id_of(model_.pool[i]);
      if (space_) {
        if (!space_->is_legal(model_.pool[i].words.view(), problem.fields(), hardware)) {
          continue;
        }
        const Config same = space_->canonical(model_.pool[i], problem, hardware);
        if (same != model_.pool[i] && (canonical_only || in_pool_.contains(same))) {
          continue;
        }
        if (!config || times_.find(id, *config) == nullptr) {
          config = id_of(same);
        }
      }
      if (config && times_.find(id, *config) != nullptr) {
        const Scored entry{false, scores[i], i, *config};
        const auto [found, is_new] = best.emplace(*config, entry);
        found->second = std::min(found->second, entry);
      } else if (space_ && (!best_unmeasured || std::pair(scores[i], i) < *best_unmeasured)) {
        best_unmeasured = std::pair(scores[i], i);
      }
    }
    std::vector<Scored> scored;
    for (const auto& [config, entry] : best) {
      scored.push_back(entry);
    }
    const auto first = std::min_element(scored.begin(), scored.end());
    out.pick_unmeasured =
        best_unmeasured &&
        (first == scored.end() || *best_unmeasured < std::pair(first->score, first->position));
    return scored;
  }

  // Appends the measured configs outside the pool. They cannot be picked, but show how well the
  // model ranks.
  Status add_others(std::uint32_t id, std::span<const double> shared_scores,
                    std::vector<Scored>& scored) const {
    const bool has_pool = !model_.pool.empty() && !is_sequence();
    std::unordered_set<std::uint32_t> seen;
    for (const Scored& entry : scored) {
      seen.insert(entry.config);
    }
    std::vector<const Config*> own;
    std::vector<std::uint32_t> own_ids;
    for (const MeasuredCandidate& candidate : times_.candidates(id)) {
      const std::size_t position = position_of_config_[candidate.config];
      if (seen.contains(candidate.config)) {
        continue;
      }
      if (position != kNotShared) {
        scored.push_back({has_pool, shared_scores[position], position, candidate.config});
      } else if (describes(dataset_.configs()[candidate.config])) {
        own.push_back(&dataset_.configs()[candidate.config]);
        own_ids.push_back(candidate.config);
      }
    }
    if (!own.empty()) {
      FORETUNE_TRY(WorkingPool pool, WorkingPool::create(*scorer_, own, model_.config_schema,
                                                         hardware_for(dataset_.problems()[id])));
      FORETUNE_TRY(const std::span<const double> scores,
                   pool.score(dataset_.problems()[id], judge_for(id)));
      for (std::size_t i = 0; i < own.size(); ++i) {
        scored.push_back({has_pool, scores[i], shared_.size() + own_ids[i], own_ids[i]});
      }
    }
    return {};
  }

  [[nodiscard]] std::optional<std::uint32_t> id_of(const Config& config) const {
    const auto found = config_ids_.find(config);
    return found == config_ids_.end() ? std::nullopt : std::optional(found->second);
  }

  const Model& model_;
  const Dataset& dataset_;
  const DatasetJudge* judge_;
  MeasuredTimes times_;
  std::unique_ptr<Scorer> scorer_;
  std::shared_ptr<const CompiledSpace> space_;
  std::vector<const Config*> shared_;
  std::vector<std::size_t> position_of_config_;
  std::unordered_map<Config, std::uint32_t> config_ids_;
  std::unordered_set<Config> in_pool_;
  std::map<std::uint64_t, Hardware> hardware_;         // by machine
  std::map<std::uint64_t, WorkingPool> shared_pools_;  // likewise
};

}  // namespace

bool knows_device(const Model& model, const Fingerprint& measured_on) {
  // On the machine of the training data, the model's own measured numbers describe it.
  if (measured_on.device.empty() || measured_on.digest() == model.fingerprint.digest()) {
    return true;
  }
  // A foreign model learned the numbers that its makers assumed for the device.
  const auto table = feature_table_of(model);
  return table && !foreign_order(**table).empty() && measured_on.isa == model.fingerprint.isa;
}

const Hardware& seen_hardware(const Model& model, const Dataset& dataset, const Problem& problem) {
  const Fingerprint& machine = dataset.machine_of(problem);
  return model.machines.empty() && knows_device(model, machine) ? model.fingerprint.hardware
                                                                : machine.hardware;
}

Result<std::vector<RankedProblem>> rank_with_model(const Model& model, const Dataset& dataset,
                                                   const DatasetJudge* judge) {
  FORETUNE_TRY_STATUS(check_fits(model, dataset));
  if (model.config_schema.kind == SchemaKind::kParametric &&
      model.config_schema.parameters.empty()) {
    return fail(ErrorCode::kUnsupported, "configs of ", model.config_schema.name,
                " have no parameters to rank them by");
  }
  return ModelRanking(model, dataset, judge).rank();
}

std::vector<RankedProblem> rank_with_scores(const Dataset& dataset,
                                            std::span<const double> scores) {
  FORETUNE_CHECK(scores.size() == dataset.size());
  std::vector<RankedProblem> out;
  const std::vector<std::vector<RowIndex>> by_problem = dataset.rows_by_problem();
  for (std::uint32_t problem = 0; problem < by_problem.size(); ++problem) {
    std::vector<std::pair<double, std::uint32_t>> scored;
    std::unordered_set<std::uint32_t> seen;
    for (const RowIndex index : by_problem[problem]) {
      const std::uint32_t config = dataset.rows()[index].config;
      // Rows of the same config in another context add nothing: the first score counts.
      if (!std::isnan(scores[index]) && seen.insert(config).second) {
        scored.emplace_back(scores[index], config);
      }
    }
    if (scored.empty()) {
      continue;
    }
    std::sort(scored.begin(), scored.end());
    RankedProblem ranked;
    ranked.problem = problem;
    for (const auto& [score, config] : scored) {
      ranked.configs.push_back(config);
      ranked.scores.push_back(score);
    }
    out.push_back(std::move(ranked));
  }
  return out;
}

}  // namespace foretune
