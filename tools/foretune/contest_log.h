// Prints and writes the results of a comparison of strategies: a line per problem, a summary, and a
// folder of tables, plots and logs.
//
//   FORETUNE_TRY(ContestLog log, ContestLog::create({.folder = "results"}, contestants));
//   FORETUNE_TRY_STATUS(log.add(results, *space));   // after each problem
//   FORETUNE_TRY_STATUS(log.finish(results));
//
// Thread safety: used by the main thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/formats/tensorboard_events.h"
#include "foretune/space/space.h"
#include "foretune/tune/strategy_contest.h"

namespace foretune::cli {

class ContestLog {
 public:
  struct Settings {
    std::string folder;  // new or empty folder; without one nothing is written
    std::string source;  // one line below figures: program, device, date
    bool has_graphs = false;
    std::size_t max_steps = 10;  // actions of one change in a graph
    // Facts about the run for the manifest, in order; values are JSON.
    std::vector<std::pair<std::string, std::string>> manifest;
  };

  // Errors: kInvalidArgument for a folder that is not empty; kIo.
  static Result<ContestLog> create(Settings settings, std::span<const Contestant> contestants);

  // Prints the last problem of `results`, and rewrites the folder, so that it is complete whenever
  // a run ends. Errors: kIo.
  Status add(const ContestResults& results, const Space& space);
  // Prints the summary over all problems. Errors: kIo.
  Status finish(const ContestResults& results);

 private:
  explicit ContestLog(Settings settings) : settings_(std::move(settings)) {}

  Status write_files(const ContestResults& results, const Space& space);
  Status write_graphs(const ContestResults& results, const Space& space) const;
  Status write_manifest(const ContestResults& results) const;
  Status write_events(const ContestResults& results);
  Status write(const std::filesystem::path& name, const std::string& text) const;

  Settings settings_;
  double begin_s_ = 0;
  std::vector<formats::TensorboardWriter> writers_;  // per contestant
};

}  // namespace foretune::cli
