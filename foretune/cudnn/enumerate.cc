#include "foretune/cudnn/enumerate.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "foretune/base/rng.h"

namespace foretune::cudnn {
namespace {

// The types of knobs that split a sum: SPLIT_K, SPLIT_K_BUF, SPLIT_K_SLC.
constexpr std::array<std::int32_t, 3> kSplitKnobs{0, 12, 17};
// Threads look at the clock after so many combinations.
constexpr std::size_t kChunk = 256;

// The values of the knobs of one engine.
struct Choices {
  std::int32_t engine = 0;
  std::vector<std::int32_t> types;
  std::vector<std::vector<std::int32_t>> values;

  static Choices of(const EngineFacts& facts, const std::vector<std::int32_t>& splits) {
    Choices choices{.engine = facts.index};
    for (const KnobRange& range : facts.knobs) {
      std::vector<std::int32_t> values;
      const bool is_split =
          std::find(kSplitKnobs.begin(), kSplitKnobs.end(), range.type) != kSplitKnobs.end();
      for (std::int64_t value = range.low; value <= range.high;
           value += std::max<std::int64_t>(1, range.step)) {
        const auto narrow = static_cast<std::int32_t>(value);
        if (!is_split || value == range.low ||
            std::find(splits.begin(), splits.end(), narrow) != splits.end()) {
          values.push_back(narrow);
        }
      }
      choices.types.push_back(range.type);
      choices.values.push_back(std::move(values));
    }
    return choices;
  }

  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t count = 1;
    for (const auto& each : values) {
      count *= each.size();
    }
    return count;
  }

  // Returns false when a knob has no place in a config.
  bool unrank(std::uint64_t index, CudnnConfig& config) const {
    config = CudnnConfig::of_engine(engine);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!config.set_knob(types[i], values[i][index % values[i].size()])) {
        return false;
      }
      index /= values[i].size();
    }
    return true;
  }
};

struct Candidate {
  std::uint32_t choices = 0;
  std::uint64_t index = 0;
};

std::vector<Candidate> draw(const std::vector<Choices>& all, const Enumeration& options) {
  std::vector<Candidate> candidates;
  Rng rng(options.seed);
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const std::uint64_t count = all[i].count();
    if (all[i].types.empty()) {
      continue;  // its only config is the engine's own choice
    }
    if (count <= options.max_of_engine) {
      for (std::uint64_t index = 0; index < count; ++index) {
        candidates.push_back({i, index});
      }
      continue;
    }
    std::set<std::uint64_t> drawn;
    while (drawn.size() < options.max_of_engine) {
      drawn.insert(rng.below(count));
    }
    for (const std::uint64_t index : drawn) {
      candidates.push_back({i, index});
    }
  }
  rng.shuffle(std::span(candidates));
  return candidates;
}

}  // namespace

Result<Listed> enumerate(Convolution& convolution,
                         std::span<const std::shared_ptr<const Library>> libraries,
                         const Enumeration& options, const std::function<void()>& enter) {
  const auto begin = std::chrono::steady_clock::now();
  FORETUNE_TRY(const std::vector<EngineFacts> engines, convolution.engines());
  Listed listed;
  std::vector<Choices> all;
  for (const EngineFacts& facts : engines) {
    all.push_back(Choices::of(facts, options.splits));
    listed.combinations += all.back().count();
    listed.configs.push_back(CudnnConfig::of_engine(facts.index));
  }
  const std::vector<Candidate> candidates = draw(all, options);
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> tried = 0;
  std::mutex mutex;
  Status failed;
  const auto is_over = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >
           options.seconds;
  };
  const auto work = [&](const std::shared_ptr<const Library>& library) {
    enter();
    const auto graph = ConvGraph::create(library, convolution.problem());
    if (!graph) {
      const std::lock_guard lock(mutex);
      failed = fail_because(graph.error(), "listing configs");
      return;
    }
    std::vector<CudnnConfig> accepted;
    for (std::size_t first = next.fetch_add(kChunk); first < candidates.size() && !is_over();
         first = next.fetch_add(kChunk)) {
      const std::size_t last = std::min(candidates.size(), first + kChunk);
      for (std::size_t i = first; i < last; ++i) {
        CudnnConfig config;
        if (all[candidates[i].choices].unrank(candidates[i].index, config) &&
            (*graph)->explicit_config(config)) {
          accepted.push_back(config);
        }
      }
      tried += last - first;
    }
    const std::lock_guard lock(mutex);
    listed.configs.insert(listed.configs.end(), accepted.begin(), accepted.end());
  };
  std::vector<std::thread> threads;
  for (const std::shared_ptr<const Library>& library : libraries) {
    threads.emplace_back(work, library);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  FORETUNE_TRY_STATUS(failed);
  listed.tried = tried + static_cast<std::uint64_t>(std::count_if(
                             all.begin(), all.end(),
                             [](const Choices& choices) { return choices.types.empty(); }));
  // Threads append in blocks.
  Rng rng(options.seed + 1);
  rng.shuffle(std::span(listed.configs).subspan(engines.size()));
  return listed;
}

}  // namespace foretune::cudnn
