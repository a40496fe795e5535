#include "foretune/model/train/internal/network_predictions.h"

#include <cstddef>
#include <map>

#include "foretune/interop/ck/ck_engine.h"
#include "foretune/model/network/network_scorer.h"

namespace foretune::train_internal {

Result<std::vector<double>> network_predictions(const Network& network, const Dataset& dataset,
                                                const FeatureTable& table, const TrainingSet& set,
                                                std::span<const std::uint32_t> examples) {
  std::map<std::uint32_t, std::vector<std::size_t>> of_problem;  // positions in `examples`
  for (std::size_t i = 0; i < examples.size(); ++i) {
    of_problem[set.problem[examples[i]]].push_back(i);
  }
  const std::vector<Network> networks{network};
  const Hardware hardware = engine_fingerprint(table, dataset.header().fingerprint).hardware;
  std::vector<double> out(examples.size());
  for (const auto& [problem, positions] : of_problem) {
    ConfigList list(dataset.header().config_schema);
    for (const std::size_t position : positions) {
      const Config& config = dataset.configs()[dataset.rows()[set.row[examples[position]]].config];
      list.add(config.words.view());
    }
    FORETUNE_TRY(const std::unique_ptr<PreparedPool> pool,
                 prepare_networks(networks, table, 0, list, hardware));
    std::vector<std::byte> workspace(pool->workspace_bytes());
    std::vector<double> scores(positions.size());
    pool->score(dataset.problems()[problem], workspace, scores, {});
    for (std::size_t i = 0; i < positions.size(); ++i) {
      out[positions[i]] = scores[i];
    }
  }
  return out;
}

}  // namespace foretune::train_internal
