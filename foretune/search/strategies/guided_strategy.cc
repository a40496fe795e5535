// A beam follows a model's scores through all levels of a sequential space. The best-scored configs
// that it passes are measured, and the model learns from them.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/search/picking.h"
#include "foretune/search/walk.h"

namespace foretune {
namespace {

constexpr std::size_t kFirst = 16;      // random configs, for a model that has not learned anything
constexpr std::size_t kMinBatch = 6;    // between two lessons ...
constexpr std::size_t kBatchShare = 8;  // ... and at least one for this many known ones
constexpr std::size_t kBeamPerWidth = 16;
constexpr int kMaxMisses = 200;

class Guide {
 public:
  Guide(WalkContext& context, const StrategyOptions& options)
      : context_(context),
        learner_(*options.learner),
        width_(kBeamPerWidth * std::max<std::size_t>(1, options.width)),
        exploration_(options.exploration) {}

  // Returns unknown configs to measure next; empty when hardly any is left.
  std::vector<Config> batch() {
    std::vector<Config> ranked = best_unknown();
    const std::size_t count = ranked.empty() && context_.measured() <= 1
                                  ? kFirst
                                  : std::max(kMinBatch, context_.measured() / kBatchShare);
    std::vector<Config> out;
    std::unordered_set<Config> chosen;
    std::size_t next = 0;
    for (int misses = 0; out.size() < count && misses < kMaxMisses;) {
      const bool is_guided = next < ranked.size() && context_.rng().uniform() >= exploration_;
      Config config =
          is_guided ? std::move(ranked[next++]) : context_.canonical(context_.random_walk().state);
      if (!context_.is_known(config) && chosen.insert(config).second) {
        out.push_back(std::move(config));
      } else {
        ++misses;
      }
    }
    return out;
  }

  void learn(std::span<const Config> measured) {
    for (const Config& config : measured) {
      if (const double value = context_.value(config); std::isfinite(value)) {
        trials_.push_back({.config = config, .value = value});
      }
    }
    // When learning fails the model stays unchanged.
    (void)learner_.learn(trials_);
  }

 private:
  struct Scored {
    double score;
    WalkNode node;
    Config meaning;
  };

  // Returns the unknown configs that the beam passes, best-scored first.
  std::vector<Config> best_unknown() {
    std::vector<Scored> passed;
    std::vector<WalkNode> beam{context_.start()};
    std::unordered_set<Config> seen{context_.canonical(beam.front().state)};
    while (!beam.empty()) {
      std::vector<Scored> level;
      for (const WalkNode& node : beam) {
        for (const Scored& child : around(node)) {
          if (seen.insert(child.meaning).second) {
            level.push_back(child);
          }
        }
      }
      if (!score(level)) {
        return {};
      }
      std::sort(level.begin(), level.end(), is_better);
      beam.clear();
      for (std::size_t i = 0; i < level.size(); ++i) {
        if (i < width_) {
          beam.push_back(level[i].node);
        }
        if (!context_.is_known(level[i].meaning)) {
          passed.push_back(std::move(level[i]));
        }
      }
    }
    std::sort(passed.begin(), passed.end(), is_better);
    std::vector<Config> out;
    for (Scored& scored : passed) {
      out.push_back(std::move(scored.meaning));
    }
    return out;
  }

  // Returns the states that one change leads to. Beams after the same lesson mostly pass the same
  // states.
  const std::vector<Scored>& around(const WalkNode& node) {
    const auto [found, is_new] = around_.try_emplace({node.state, node.steps});
    if (is_new) {
      for (WalkNode& child : context_.changed(node, 1)) {
        Config meaning = context_.canonical(child.state);
        found->second.push_back({0, std::move(child), std::move(meaning)});
      }
    }
    return found->second;
  }

  bool score(std::vector<Scored>& level) {
    std::vector<Config> configs;
    configs.reserve(level.size());
    for (const Scored& scored : level) {
      configs.push_back(scored.meaning);
    }
    const std::vector<double> scores = learner_.score(configs);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      level[i].score = scores[i];
    }
    return scores.size() == level.size();
  }

  // The order must not depend on the order of arrival.
  static bool is_better(const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score < b.score : a.meaning < b.meaning;
  }

  WalkContext& context_;
  ConfigLearner& learner_;
  std::size_t width_;
  double exploration_;
  std::vector<Trial> trials_;
  std::map<std::pair<Config, std::size_t>, std::vector<Scored>> around_;
};

}  // namespace

Walk walk_guided(WalkContext& context, StrategyOptions options) {
  Guide guide(context, options);
  std::vector<Config> batch{context.start().state};
  while (!batch.empty()) {
    co_await context.measure(batch);
    guide.learn(batch);
    batch = guide.batch();
  }
}

}  // namespace foretune
