// The text of `foretune tune`.
#include "foretune/report/tune_report.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/problem/problem_type.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/tune_analysis.h"

namespace foretune {
namespace {

using report_internal::analyse_tuning;
using report_internal::clean_text;
using report_internal::config_text;
using report_internal::metric_gain_text;
using report_internal::metric_value;
using report_internal::right;
using report_internal::TuneAnalysis;

constexpr std::size_t kTextWidth = 100;
constexpr std::size_t kTimeEnd = 16;  // the column of times in the list of the finalists
constexpr std::size_t kConfigIndent = 8;
constexpr std::size_t kHang = 4;  // of a line that goes on

std::string rate_text(const Problem& problem, double time_ns) {
  const std::optional<ProblemWork> work = problem_work(problem);
  return work ? concat("  ", fixed(work->flops / time_ns, 1), " GFLOP/s") : std::string();
}

std::string measured_line(const TuneResult& result) {
  const CollectProgress& progress = result.progress;
  return concat("measured ", count_of(progress.measured, "time"),
                report_internal::tried_text(result), ", ", seconds_text(progress.elapsed_s), "\n");
}

// Without a description, long sequences are cut.
std::string shown_config(const ConfigSchema& schema, const TunedConfig& tuned) {
  const bool is_described = !tuned.text.empty() && tuned.text != to_text(schema, tuned.config);
  return is_described ? tuned.text : shown_text(schema, tuned.config);
}

// Returns "12.5 %", and "24.4 x" where a percentage would be hard to read.
std::string slower_text(double ratio) {
  return ratio < 10 ? concat(fixed(100 * (ratio - 1), 1), " %") : concat(fixed(ratio, 1), " x");
}

// For the time alone.
std::string times_text(const Problem& problem, const TuneResult& result,
                       const ConfigSchema& schema) {
  const TunedConfig& best = result.finalists.front();
  std::string out = concat(problem.shown_text(), "\n", measured_line(result));
  out +=
      concat("best: ", config_text(schema, best), "\n      ", nanoseconds_text(best.time_ns),
             rate_text(problem, best.time_ns),
             result.by_default ? concat("  ", fixed(result.by_default->time_ns / best.time_ns, 2),
                                        " times as fast as the default config")
                               : std::string(),
             "\n  rank      time  spread  slower  config\n");
  // The best is named even where tuning asked for nothing but the time.
  if (const auto packing = report_internal::packing_of(result, best)) {
    out.insert(out.find("\n  rank"),
               concat("\n      packing takes ", nanoseconds_text(packing->pack_ns),
                      ", pays after: ", report_internal::packing_text(packing)));
  }
  const auto row = [&](std::string_view label, const TunedConfig& tuned) {
    const std::string time = nanoseconds_text(tuned.time_ns);
    return concat(
        label, right(time, kTimeEnd - label.size()),
        right(concat(fixed(100 * tuned.spread, 1), " %"), 8),
        right(&tuned == &best ? std::string("-") : slower_text(tuned.time_ns / best.time_ns), 8),
        "  ", shown_config(schema, tuned), "\n");
  };
  for (std::size_t i = 0; i < result.finalists.size(); ++i) {
    out += row(right(concat(i + 1), 6), result.finalists[i]);
  }
  return result.by_default ? out + row("default", *result.by_default) : out;
}

// Words in lines of at most kTextWidth, the first after `indent`, all others after `hang` blanks.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t hang) {
  std::string out(indent, ' ');
  std::size_t width = indent;
  bool is_first = true;
  for (const std::string_view word : split_words(text)) {
    if (!is_first && width + 1 + word.size() > kTextWidth) {
      out += concat("\n", std::string(hang, ' '), word);
      width = hang + word.size();
    } else {
      out += concat(is_first ? "" : " ", word);
      width += word.size() + (is_first ? 0 : 1);
    }
    is_first = false;
  }
  return out + "\n";
}

class FinalistsTable {
 public:
  FinalistsTable(const TuneResult& result, const TuneAnalysis& analysis, const ConfigSchema& schema)
      : result_(result), judge_(*result.judge), schema_(schema) {
    for (std::size_t i = 0; i < result.finalists.size(); ++i) {
      labels_.push_back(concat(analysis.knee == i ? "knee " : "", i + 1));
      rows_.push_back(&result.finalists[i]);
    }
    if (result.by_default) {
      labels_.emplace_back("default");
      rows_.push_back(&*result.by_default);
    }
    columns_.push_back({"rank"});
    columns_.back().cells = labels_;
    for (const MetricInfo& info : judge_.metrics()) {
      add_metric(info);
    }
    add_packing();
  }

  [[nodiscard]] std::string text() const {
    std::vector<std::string> lines(rows_.size() + 1);
    for (const Column& column : columns_) {
      std::size_t width = column.name.size();
      for (const std::string& cell : column.cells) {
        width = std::max(width, cell.size());
      }
      lines[0] += right(column.name, width + 2);
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        lines[i + 1] += right(column.cells[i], width + 2);
      }
    }
    std::vector<std::string> configs{"config"};
    std::size_t longest = 0;
    for (const TunedConfig* row : rows_) {
      configs.push_back(clean_text(shown_config(schema_, *row)));
      longest = std::max(longest, configs.back().size());
    }
    const bool fits = lines[0].size() + 2 + longest <= kTextWidth;
    std::string out;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string_view figures(lines[i].data(), lines[i].find_last_not_of(' ') + 1);
      out += fits ? concat(lines[i], "  ", configs[i], "\n")
                  : concat(figures, "\n",
                           i == 0 ? "" : wrapped(configs[i], kConfigIndent, kConfigIndent));
    }
    return out;
  }

 private:
  struct Column {
    std::string name;
    std::vector<std::string> cells;  // one a row
  };

  // Where packing is an aim or bounded, and something was packed.
  void add_packing() {
    Column packing{"pays after"};
    bool is_packed = false;
    for (const TunedConfig* row : rows_) {
      const auto found = report_internal::packing_of(result_, *row);
      is_packed = is_packed || found;
      packing.cells.push_back(report_internal::packing_text(found));
    }
    const auto names_packing = [](const MetricInfo& info) { return info.name == kPackNs; };
    if (is_packed && std::ranges::any_of(judge_.metrics(), names_packing)) {
      columns_.push_back(std::move(packing));
    }
  }

  void add_metric(const MetricInfo& info) {
    Column values{info.name};
    Column spreads{"spread"};
    Column gains{"gain"};
    bool has_spread = false;
    const double by_default =
        result_.by_default ? metric_value(result_.by_default->values, info.name) : 0;
    for (const TunedConfig* row : rows_) {
      const MetricValue* const found = find_metric(row->values, info.name);
      const double value = metric_value(row->values, info.name);
      values.cells.push_back(metric_text(value, info.unit));
      has_spread = has_spread || (found != nullptr && found->spread > 0);
      spreads.cells.push_back(found == nullptr ? std::string(report_internal::kNoNumber)
                                               : concat(fixed(100 * found->spread, 1), " %"));
      gains.cells.push_back(result_.by_default && row == &*result_.by_default
                                ? std::string()
                                : metric_gain_text(judge_, info, value, by_default));
    }
    columns_.push_back(std::move(values));
    if (has_spread) {
      columns_.push_back(std::move(spreads));
    }
    if (result_.by_default) {
      columns_.push_back(std::move(gains));
    }
  }

  const TuneResult& result_;
  const Judge& judge_;
  const ConfigSchema& schema_;
  std::vector<std::string> labels_;
  std::vector<const TunedConfig*> rows_;
  std::vector<Column> columns_;
};

}  // namespace

std::string tune_text(const Problem& problem, const TuneResult& result,
                      const ConfigSchema& schema) {
  const Objective& objective = result.judge->objective();
  if (objective == Objective::time()) {
    return times_text(problem, result, schema);
  }
  const TuneAnalysis analysis = analyse_tuning(result);
  std::string out = concat(problem.shown_text(), "\n", measured_line(result));
  out += wrapped(concat("objective: ", objective.text()), 0, kHang);
  for (const std::string& line : report_internal::bound_lines(result)) {
    out += wrapped(concat("bound: ", line), 0, kHang);
  }
  if (const std::string met = report_internal::bounds_met_text(result, analysis); !met.empty()) {
    out += concat(met, "\n");
  }
  if (objective.is_pareto()) {
    out += concat("front: ", report_internal::front_text(result, analysis), "\n");
    out += wrapped(concat("hypervolume: ", report_internal::hypervolume_text(result, analysis)), 0,
                   kHang);
  } else {
    out += concat("best: ", clean_text(config_text(schema, result.finalists.front())), "\n");
  }
  if (analysis.now_missed > 0) {
    out += concat(report_internal::now_missed_text(analysis), "\n");
  }
  return out + FinalistsTable(result, analysis, schema).text();
}

}  // namespace foretune
