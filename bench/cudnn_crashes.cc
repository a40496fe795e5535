#include "bench/cudnn_crashes.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"

namespace foretune::bench {
namespace {

using Pairs = std::set<std::pair<std::string, std::string>>;

std::string trying_path(const std::string& output) { return output + ".trying"; }

Pairs read_pairs(const std::string& path) {
  Pairs pairs;
  if (const auto text = read_text_file(path)) {
    for (const std::string_view line : split(*text, '\n')) {
      const std::vector<std::string_view> parts = split(line, '\t');
      if (parts.size() == 2) {
        pairs.emplace(parts[0], parts[1]);
      }
    }
  }
  return pairs;
}

}  // namespace

std::string text_of(const CudnnConfig& config) {
  return to_text(cudnn_schema(), config.to_config());
}

Result<CudnnCrashes> CudnnCrashes::recover(const std::string& output, const Measurer& measurer,
                                           JournalWriter& journal) {
  CudnnCrashes crashes;
  crashes.output_ = output;
  const std::string path = output + ".crashed";
  crashes.crashes_ = read_pairs(path);
  for (const auto& [problem_text, config_text] : read_pairs(trying_path(output))) {
    crashes.crashes_.emplace(problem_text, config_text);
    FORETUNE_TRY(Problem problem, Problem::parse(problem_text));
    FORETUNE_TRY(Config config, parse_config(cudnn_schema(), config_text));
    std::printf("crashed: %s\n  %s\n", problem_text.c_str(), config_text.c_str());
    const Measurement measurement{.problem = std::move(problem),
                                  .config = std::move(config),
                                  .context = measurer.context(),
                                  .outcome = Outcome::kCrashed,
                                  .stage = Stage::kRun,
                                  .reason = "it ended the process"};
    FORETUNE_TRY_STATUS(journal.append(measurement));
  }
  std::string text;
  for (const auto& [problem, config] : crashes.crashes_) {
    text += concat(problem, "\t", config, "\n");
  }
  FORETUNE_TRY_STATUS(write_text_file_atomically(path, text));
  crashes.end();
  return crashes;
}

bool CudnnCrashes::has(const Problem& problem, const CudnnConfig& config) const {
  return !crashes_.empty() && crashes_.contains({problem.text(), text_of(config)});
}

std::size_t CudnnCrashes::count(const Problem& problem) const {
  const std::string text = problem.text();
  return static_cast<std::size_t>(std::count_if(
      crashes_.begin(), crashes_.end(), [&](const auto& crash) { return crash.first == text; }));
}

Status CudnnCrashes::trying(const Problem& problem, const CudnnConfig& config) const {
  return write_text_file_atomically(trying_path(output_),
                                    concat(problem.text(), "\t", text_of(config), "\n"));
}

void CudnnCrashes::end() const {
  std::error_code error;
  std::filesystem::remove(trying_path(output_), error);
}

}  // namespace foretune::bench
