// The options that share the work of a command out among tasks.
// Thread safety: used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cluster/launch.h"
#include "foretune/cluster/run_folder.h"
#include "foretune/workflow/options.h"

namespace foretune::cluster {

struct ClusterArguments {
  bool slurm = false;
  std::optional<std::int64_t> local;
  std::string run;
  std::optional<std::int64_t> shard_size;
  std::optional<double> lease;
  bool share_cores = false;
  std::optional<std::int64_t> nodes;
  std::int64_t gpus = 0;
  std::optional<std::int64_t> cpus;
  std::string partition;
  std::string time;
  std::string mail;
  std::string template_file;
  std::string job_name = "foretune";
  std::string app;
  std::string summary;

  void visit(workflow::OptionList& list);
  [[nodiscard]] bool is_shared_out() const { return slurm || local.has_value(); }
  [[nodiscard]] std::size_t tasks() const;
  // Returns the folder of the run: --run, or the data set's name with .run.
  [[nodiscard]] std::filesystem::path folder(const std::filesystem::path& output) const;
  // Returns --shard-size, or as many problems as give every task eight shards, and at least one.
  [[nodiscard]] std::size_t problems_per_shard(std::size_t problems) const;
  // `command` starts a task: program and subcommand. Errors: those of the template's file and of
  // slurm_launcher().
  [[nodiscard]] Result<std::unique_ptr<Launcher>> launcher(const RunFolder& folder,
                                                           std::vector<std::string> command) const;
};

}  // namespace foretune::cluster
