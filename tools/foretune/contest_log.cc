#include "tools/foretune/contest_log.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <system_error>

#include "foretune/base/figures.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"
#include "foretune/problem/problem.h"
#include "foretune/report/contest_report.h"
#include "foretune/report/search_graph.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

// A problem's text may be its name.
std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '/' || c == '='; }, '_');
  return name;
}

Status make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? fail(ErrorCode::kIo, path.string(), ": ", error.message()) : Status();
}

void print_problem(const ContestResult& result, const ContestResults& results) {
  const auto best = std::max_element(
      result.entries.begin(), result.entries.end(),
      [](const ContestEntry& a, const ContestEntry& b) { return a.speed < b.speed; });
  std::string line =
      concat(padded(result.name, 22),
             result.start_speed > 0 ? padded(concat("from ", fixed(result.start_speed, 1)), 12)
                                    : std::string(),
             padded(concat("to ", fixed(best->speed, 1), " ", results.unit), 20));
  if (results.peak > 0) {
    line += padded(concat(fixed(100 * best->speed / results.peak, 1), " %"), 9);
  }
  print(concat(line, best->name, "\n"));
  if (!best->config_text.empty()) {
    print(concat("  best: ", best->config_text, "\n"));
  }
}

}  // namespace

Result<ContestLog> ContestLog::create(Settings settings, std::span<const Contestant> contestants) {
  ContestLog log(std::move(settings));
  log.begin_s_ = wall_seconds();
  const std::filesystem::path folder = log.settings_.folder;
  if (folder.empty()) {
    return log;
  }
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error)) {
    return fail(ErrorCode::kInvalidArgument, folder.string(),
                " is there and not empty; results go into a folder of their own");
  }
  FORETUNE_TRY_STATUS(make_folder(folder / "problems"));
  for (const Contestant& contestant : contestants) {
    FORETUNE_TRY(formats::TensorboardWriter writer,
                 formats::TensorboardWriter::create(folder / "tensorboard" / contestant.name,
                                                    log.begin_s_, "foretune"));
    log.writers_.push_back(std::move(writer));
  }
  return log;
}

Status ContestLog::add(const ContestResults& results, const Space& space) {
  print_problem(results.problems.back(), results);
  return settings_.folder.empty() ? Status() : write_files(results, space);
}

Status ContestLog::write_files(const ContestResults& results, const Space& space) {
  const ContestResult& last = results.problems.back();
  FORETUNE_TRY_STATUS(
      write(std::filesystem::path("problems") / concat(file_name(last.name), ".csv"),
            contest_steps_csv(last, space)));
  FORETUNE_TRY_STATUS(write("results.csv", contest_csv(results)));
  FORETUNE_TRY_STATUS(write("bars.svg", bars_svg(results, settings_.source)));
  FORETUNE_TRY_STATUS(write("violin.svg", violin_svg(results, settings_.source)));
  FORETUNE_TRY_STATUS(write("gain.svg", gain_svg(results, settings_.source)));
  FORETUNE_TRY_STATUS(write_graphs(results, space));
  FORETUNE_TRY_STATUS(write_events(results));
  return write_manifest(results);
}

Status ContestLog::write_graphs(const ContestResults& results, const Space& space) const {
  if (!settings_.has_graphs) {
    return {};
  }
  const ContestResult& last = results.problems.back();
  FORETUNE_TRY_STATUS(make_folder(std::filesystem::path(settings_.folder) / "graphs"));
  for (const ContestEntry& entry : last.entries) {
    FORETUNE_TRY_STATUS(write(
        std::filesystem::path("graphs") / concat(file_name(last.name), "-", entry.name, ".dot"),
        search_graph_dot(space, entry.trace,
                         {.title = shown_problem(last.problem),
                          .source = settings_.source,
                          .unit = results.unit,
                          .peak = results.peak,
                          .max_steps = settings_.max_steps})));
  }
  return {};
}

// Logs the best so far by number of measurements, and the results by problem.
Status ContestLog::write_events(const ContestResults& results) {
  const ContestResult& last = results.problems.back();
  const auto number = static_cast<std::int64_t>(results.problems.size());
  for (std::size_t index = 0; index < writers_.size(); ++index) {
    formats::TensorboardWriter& writer = writers_[index];
    const ContestEntry& entry = last.entries[index];
    const std::vector<ContestStep>& steps = entry.trace.steps;
    double best = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].speed > best || i + 1 == steps.size()) {
        best = std::max(best, steps[i].speed);
        FORETUNE_TRY_STATUS(writer.add_scalar(concat("best_speed/", last.name),
                                              static_cast<std::int64_t>(i + 1), best,
                                              wall_seconds()));
      }
    }
    if (results.peak > 0) {
      FORETUNE_TRY_STATUS(writer.add_scalar("found/share_of_peak", number,
                                            entry.speed / results.peak, wall_seconds()));
    }
    if (last.start_speed > 0) {
      FORETUNE_TRY_STATUS(writer.add_scalar("found/speedup_over_start", number,
                                            entry.speed / last.start_speed, wall_seconds()));
    }
  }
  return {};
}

Status ContestLog::write_manifest(const ContestResults& results) const {
  const CpuFacts facts = read_cpu_facts();
  std::string text = "{\n";
  for (const auto& [key, value] : settings_.manifest) {
    text += concat("  ", json_quoted(key), ": ", value, ",\n");
  }
  std::string names;
  for (const ContestEntry& entry : results.problems.front().entries) {
    names += concat(names.empty() ? "" : ", ", json_quoted(entry.name));
  }
  text += concat("  \"problems\": ", results.problems.size(), ",\n  \"strategies\": [", names,
                 "],\n  \"unit\": ", json_quoted(results.unit),
                 ",\n  \"peak\": ", fixed(results.peak, 3),
                 ",\n  \"cpu\": ", json_quoted(facts.model), ",\n  \"cores\": ", facts.cores,
                 ",\n  \"l2_bytes\": ", facts.l2_bytes, ",\n  \"l3_bytes\": ", facts.l3_bytes,
                 ",\n  \"hypervisor\": ", json_quoted(facts.hypervisor),
                 ",\n  \"began_unix_s\": ", fixed(begin_s_, 0),
                 ",\n  \"took_s\": ", fixed(wall_seconds() - begin_s_, 1), "\n}\n");
  return write("manifest.json", text);
}

Status ContestLog::write(const std::filesystem::path& name, const std::string& text) const {
  return text.empty() ? Status()
                      : write_text_file_atomically(
                            (std::filesystem::path(settings_.folder) / name).string(), text);
}

Status ContestLog::finish(const ContestResults& results) {
  if (results.problems.empty()) {
    return {};
  }
  const bool has_peak = results.peak > 0;
  // A replayed problem may lack the config that searches start from.
  const bool has_start = std::ranges::all_of(
      results.problems, [](const ContestResult& problem) { return problem.start_speed > 0; });
  print(concat("\n", padded("", 12), has_peak ? padded("share of peak", 14) : "",
               has_start ? padded("over the start", 17) : "", padded("measured", 11),
               padded("seconds", 9), "\n"));
  for (std::size_t i = 0; i < results.problems.front().entries.size(); ++i) {
    std::vector<double> share;
    std::vector<double> speedup;
    std::vector<double> measured;
    std::vector<double> seconds;
    for (const ContestResult& problem : results.problems) {
      const ContestEntry& entry = problem.entries[i];
      share.push_back(entry.speed / results.peak);
      speedup.push_back(entry.speed / problem.start_speed);
      measured.push_back(static_cast<double>(entry.trace.steps.size()));
      seconds.push_back(entry.trace.elapsed_s);
    }
    print(concat(padded(results.problems.front().entries[i].name, 12),
                 has_peak ? padded(fixed(geometric_mean(share), 3), 14) : "",
                 has_start ? padded(concat(fixed(geometric_mean(speedup), 2), "x"), 17) : "",
                 padded(fixed(quantile(measured, 0.5), 0), 11),
                 padded(fixed(quantile(seconds, 0.5), 2), 9), "\n"));
  }
  for (formats::TensorboardWriter& writer : writers_) {
    FORETUNE_TRY_STATUS(writer.close());
  }
  if (!settings_.folder.empty()) {
    print(concat("\nwrote ", settings_.folder, "\n"));
  }
  return {};
}

}  // namespace foretune::cli
