// A search strategy in one file: walks downhill from a random config, and starts again where no
// neighbour is better. docs/guides/extending/strategy.md walks through it.
#include "foretune/search/strategy.h"

#include <cstdio>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace {

using namespace foretune;  // NOLINT(google-build-using-namespace): an example of user code

class Downhill final : public Strategy {
 public:
  explicit Downhill(const Space& space) : space_(space) {}

  std::vector<Config> ask(std::size_t count, Rng& rng) override {
    std::vector<Config> batch;
    const std::vector<Config> candidates =
        best_ ? space_.neighbours(*best_) : std::vector<Config>();
    for (const Config& config : candidates) {
      if (batch.size() < count && known_.emplace(config, kUnmeasured).second) {
        batch.push_back(config);
      }
    }
    if (batch.empty()) {
      restart(batch, rng);
    }
    return batch;
  }

  void tell(std::span<const Trial> finished) override {
    for (const Trial& trial : finished) {
      // A failed or censored trial is known not to be better; that is all a walk needs.
      const double value = trial.value && !trial.censored ? *trial.value : kUnmeasured;
      known_[trial.config] = value;
      if (value < best_value_) {
        best_value_ = value;
        best_ = trial.config;
      }
    }
  }

 private:
  static constexpr double kUnmeasured = std::numeric_limits<double>::infinity();

  void restart(std::vector<Config>& batch, Rng& rng) {
    best_.reset();
    best_value_ = kUnmeasured;
    for (int attempt = 0; attempt < 100 && batch.empty(); ++attempt) {
      const Result<Config> config = space_.sample(rng);
      if (config && known_.emplace(*config, kUnmeasured).second) {
        batch.push_back(*config);
      }
    }
  }

  const Space& space_;
  std::unordered_map<Config, double> known_;
  std::optional<Config> best_;
  double best_value_ = kUnmeasured;
};

// A bowl with its bottom at x = 5, y = 2: the walk has to find it.
Result<bool> finds_the_bottom() {
  FORETUNE_TRY(auto compiled,
               CompiledSpace::create(
                   {.schema = {.name = "bowl", .version = 1, .parameters = {{"x", {}}, {"y", {}}}},
                    .problem_type = kGemmProblem,
                    .domains = {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}},
                    .constraints = {},
                    .canonical = {}}));
  FORETUNE_TRY(const Problem problem, Problem::parse("gemm m=1 n=1 k=1"));
  FORETUNE_TRY(const auto space, ParametricSpace::bind(compiled, problem, Hardware{}));
  Downhill strategy(*space);
  Rng rng(7);
  for (int round = 0; round < 12; ++round) {
    std::vector<Trial> trials;
    for (const Config& config : strategy.ask(4, rng)) {
      const double dx = config.words[0] - 5;
      const double dy = config.words[1] - 2;
      std::printf("%s\n", to_text(space->schema(), config).c_str());
      if (dx == 0 && dy == 0) {
        return true;
      }
      trials.push_back({.config = config, .value = dx * dx + dy * dy, .censored = false});
    }
    strategy.tell(trials);
  }
  return false;
}

}  // namespace

int main() {
  const Result<bool> found = finds_the_bottom();
  return found && *found ? 0 : 1;
}
