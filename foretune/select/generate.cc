#include "foretune/select/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_set>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/model_scorer.h"
#include "foretune/space/config_words.h"
#include "foretune/space/space.h"

namespace foretune {
namespace {

class Generator {
 public:
  Generator(const Model& model, const Problem& problem, const FeatureTable& table,
            const Space& space, const GenerateOptions& options)
      : model_(model), problem_(problem), table_(table), space_(space), options_(options) {}

  Result<GeneratedConfigs> run() {
    FORETUNE_TRY(const bool is_policy, add_policy());
    if (!is_policy) {
      for (const std::uint32_t candidate : model_.portfolio) {
        add(model_.pool[candidate]);
      }
      for (const Config& config : space_.proposals(options_.proposals)) {
        add(config);
      }
    }
    FORETUNE_TRY_STATUS(score_added());
    GeneratedConfigs out;
    for (std::size_t round = 0; !is_policy && round < options_.rounds; ++round) {
      if (elapsed_s() > options_.seconds) {
        out.ran_out_of_time = true;
        break;
      }
      const std::size_t count = std::min(options_.beam, best_.size());
      for (std::size_t i = 0; i < count; ++i) {
        if (expanded_.insert(best_[i].config).second) {
          for (const Config& config : space_.neighbours(best_[i].config)) {
            add(config);
          }
        }
      }
      if (added_.empty()) {
        break;
      }
      FORETUNE_TRY_STATUS(score_added());
    }
    if (best_.empty()) {
      return fail(ErrorCode::kUnsupported, "no config for '", problem_.shown_text(),
                  "' could be generated");
    }
    best_.resize(std::min(best_.size(), std::max<std::size_t>(1, options_.kept)));
    out.considered = considered_;
    for (Scored& scored : best_) {
      out.texts.push_back(space_.describe(scored.config));
      out.configs.push_back(std::move(scored.config));
      out.scores.push_back(scored.score);
    }
    return out;
  }

 private:
  struct Scored {
    double score;
    Config config;
  };

  [[nodiscard]] double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  // A policy knows what is worth a look: nothing else is scored. Returns false for other kinds.
  Result<bool> add_policy() {
    FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model_.kind));
    if (kind->make_proposer == nullptr) {
      return false;
    }
    FORETUNE_TRY(const std::unique_ptr<ConfigProposer> proposer,
                 kind->make_proposer(model_, problem_, model_.fingerprint.hardware));
    Rng rng(model_.seed);
    for (const Config& config : proposer->propose(std::max<std::size_t>(1, options_.kept), rng)) {
      add(config);
    }
    return true;
  }

  void add(const Config& config) {
    Config same = space_.canonical(config);
    if (seen_.insert(same).second && space_.why_not(same) &&
        table_.may_run(problem_, model_.fingerprint.hardware, same)) {
      added_.push_back(std::move(same));
    }
  }

  Status score_added() {
    if (added_.empty()) {
      return {};
    }
    FORETUNE_TRY(const std::vector<double> scores, score_configs(model_, problem_, added_));
    for (std::size_t i = 0; i < scores.size(); ++i) {
      best_.push_back({scores[i], std::move(added_[i])});
    }
    considered_ += scores.size();
    added_.clear();
    std::sort(best_.begin(), best_.end(), [](const Scored& a, const Scored& b) {
      return a.score != b.score ? a.score < b.score : a.config < b.config;
    });
    return {};
  }

  const Model& model_;
  const Problem& problem_;
  const FeatureTable& table_;
  const Space& space_;
  const GenerateOptions& options_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::unordered_set<Config> seen_;
  std::unordered_set<Config> expanded_;
  std::vector<Config> added_;  // not scored yet
  std::vector<Scored> best_;
  std::size_t considered_ = 0;
};

}  // namespace

Result<GeneratedConfigs> generate_configs(const Model& model, const Problem& problem,
                                          const GenerateOptions& options) {
  if (problem.type() != model.problem_type) {
    FORETUNE_TRY(const Model other, for_problem_type(model, problem.type()));
    return generate_configs(other, problem, options);
  }
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  const std::unique_ptr<Space> space = table->space(problem, model.fingerprint.hardware);
  if (space == nullptr) {
    return fail(ErrorCode::kUnsupported, "the feature table ", table->name(),
                " knows no space from which configs of ", model.config_schema.name,
                " could be generated");
  }
  return Generator(model, problem, *table, *space, options).run();
}

Result<Model> for_problem_type(const Model& model, ProblemType type) {
  if (type == model.problem_type) {
    return model;
  }
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  const ProblemSchema* const schema = find_problem_schema(type);
  if (kind->make_proposer == nullptr || schema == nullptr ||
      !table->supports(type, model.config_schema)) {
    return fail(ErrorCode::kMismatch, "the model is not for ",
                schema == nullptr ? "such" : schema->name, " problems");
  }
  Model out = model;
  out.problem_type = type;
  out.problem_schema = schema->id();
  return out;
}

Model with_pool(const Model& model, std::vector<Config> pool) {
  Model out = model;
  out.pool = std::move(pool);
  out.portfolio.clear();
  if (const auto kind = find_model_kind(out.kind); kind && (*kind)->with_pool != nullptr) {
    out.body = (*kind)->with_pool(out);
  }
  return out;
}

}  // namespace foretune
