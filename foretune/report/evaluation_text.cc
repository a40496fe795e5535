#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/problem/problem.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/figure_text.h"

namespace foretune {
namespace {

using report_internal::clean_text;
using report_internal::gain_text;
using report_internal::Headline;
using report_internal::interval_text;
using report_internal::number_text;
using report_internal::percent_text;
using report_internal::time_text;

constexpr std::size_t kColumns = 100;

enum class Style { kPlain, kBold, kDim, kGood, kFair, kBad };

// As a terminal counts columns: code points, not bytes.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

std::string clip(std::string_view text, std::size_t width) {
  std::string out = clean_text(text);
  if (width_of(out) <= width) {
    return out;
  }
  while (!out.empty() &&
         (width_of(out) > width - 3 || (static_cast<unsigned char>(out.back()) & 0xc0U) == 0xc0U)) {
    out.pop_back();
  }
  return out + "...";
}

Style style_of(double efficiency) {
  if (std::isnan(efficiency)) {
    return Style::kDim;
  }
  return efficiency >= 0.95 ? Style::kGood : efficiency >= 0.8 ? Style::kFair : Style::kBad;
}

class TextReport {
 public:
  TextReport(const Evaluation& evaluation, bool color) : evaluation_(evaluation), color_(color) {}

  std::string write() {
    headline();
    comparison();
    curve();
    portfolio();
    slices();
    worst();
    facts();
    warnings();
    return std::move(out_);
  }

 private:
  void add(std::string_view text, Style style = Style::kPlain) {
    static constexpr std::array<std::string_view, 6> kCodes{"",         "\033[1m",  "\033[2m",
                                                            "\033[32m", "\033[33m", "\033[31m"};
    const bool styled = color_ && style != Style::kPlain;
    if (styled) {
      out_ += kCodes[static_cast<std::size_t>(style)];
    }
    out_ += text;
    if (styled) {
      out_ += "\033[0m";
    }
  }
  void left(std::string_view text, std::size_t width, Style style = Style::kPlain) {
    const std::string clipped = clip(text, width);
    add(clipped, style);
    out_.append(width - width_of(clipped), ' ');
  }
  void right(std::string_view text, std::size_t width, Style style = Style::kPlain) {
    const std::string clipped = clip(text, width);
    out_.append(width - width_of(clipped), ' ');
    add(clipped, style);
  }
  void share(double value, std::size_t width, bool efficiency = true) {
    right(percent_text(value), width, efficiency ? style_of(value) : Style::kPlain);
  }
  void end_line() {
    while (!out_.empty() && out_.back() == ' ') {
      out_.pop_back();
    }
    out_ += '\n';
  }
  void heading(std::string_view text) {
    out_ += '\n';
    add(text, Style::kBold);
    out_ += '\n';
  }
  // Words in lines of at most kColumns, the first after `lead`.
  void wrapped(std::string_view lead, std::string_view text, Style lead_style) {
    add(lead, lead_style);
    std::size_t column = width_of(lead);
    const std::size_t indent = column;
    bool first = true;
    const std::string cleaned = clean_text(text);  // outlives the words, which are views into it
    for (const std::string_view word : split_words(cleaned)) {
      const std::string clipped = clip(word, kColumns - indent);
      const std::size_t width = width_of(clipped);
      if (!first && column + 1 + width > kColumns) {
        out_ += '\n';
        out_.append(indent, ' ');
        column = indent;
        first = true;
      }
      out_ += first ? "" : " ";
      out_ += clipped;
      column += width + (first ? 0 : 1);
      first = false;
    }
    out_ += '\n';
  }

  void headline() {
    const PickerResult& model = evaluation_.model;
    add(concat("Efficiency of the model's picks on ", count_of(model.problems, "problem")),
        Style::kBold);
    add("   (best known time / time of the pick, in %)", Style::kDim);
    out_ += '\n';
    for (const Headline& line : report_internal::headlines(evaluation_)) {
      left("", 2);
      left(line.name, 17);
      share(line.interval.value, 6);
      add("   ");
      left(interval_text(line.interval), 16, Style::kDim);
      left(line.explanation, 56, Style::kDim);
      end_line();
    }
    left("", 2);
    left("hits", 17);
    add(concat(
        "  top 1: ", percent_text(model.top1_hit), "   top 3: ", percent_text(model.top3_hit),
        "   top 5: ", percent_text(model.top5_hit), "   top 10: ", percent_text(model.top10_hit)));
    add("   (ties count)", Style::kDim);
    end_line();
    left("", 2);
    left("log time", 17);
    add(concat("  RMSE ", number_text(evaluation_.rmse_log, 3)));
    if (!std::isnan(evaluation_.rmse_log_absolute)) {
      add(concat(" (absolute ", number_text(evaluation_.rmse_log_absolute, 3), ")"));
    }
    add(concat("   Spearman ", number_text(evaluation_.spearman_mean, 3), " in the mean, ",
               number_text(evaluation_.spearman_median, 3), " in the median of problems"));
    end_line();
    if (!std::isnan(evaluation_.within_stated_error)) {
      left("", 2);
      left("stated error", 17);
      add(concat("  holds ", percent_text(evaluation_.within_stated_error),
                 " % of the errors, twice it ", percent_text(evaluation_.within_twice_stated_error),
                 " %"));
      add("   (68.3 and 95.4 where it is right)", Style::kDim);
      end_line();
    }
    ck_line();
    if (evaluation_.unmeasured_picks > 0) {
      left("", 2);
      left("missing as 0", 17);
      add(concat("  mean ", percent_text(evaluation_.strict_mean_efficiency), "   P10 ",
                 percent_text(evaluation_.strict_p10_efficiency)));
      add(concat("   (", count_of(evaluation_.unmeasured_picks, "pick"),
                 word_for(evaluation_.unmeasured_picks, " was", " were"), " not measured)"),
          Style::kDim);
      end_line();
    }
    out_ += '\n';
    wrapped("", report_internal::summary_text(evaluation_), Style::kPlain);
  }

  void ck_line() {
    const CkMetrics& ck = evaluation_.ck;
    if (ck.problems == 0) {
      return;
    }
    left("", 2);
    left("as CK Tile", 17);
    add(concat("  mean ", percent_text(ck.mean_efficiency), "   P10 ",
               percent_text(ck.p10_efficiency), "   NDCG@1 ", percent_text(ck.ndcg_at_1()),
               "   top 5: ", percent_text(ck.top_k[2]), "   R2 ", number_text(ck.r2, 3), ", log ",
               number_text(ck.r2_log, 3)));
    end_line();
  }

  void portfolio() {
    if (evaluation_.portfolio.empty()) {
      return;
    }
    heading("A portfolio without a model: efficiency when all of its first few are measured");
    left("", 2);
    left("configs", 31, Style::kDim);
    for (const PortfolioPoint& point : evaluation_.portfolio) {
      right(concat(point.configs), 8, Style::kDim);
    }
    end_line();
    portfolio_line("mean", &PortfolioPoint::mean_efficiency);
    portfolio_line("P10", &PortfolioPoint::p10_efficiency);
    portfolio_line("min", &PortfolioPoint::min_efficiency);
  }
  void portfolio_line(std::string_view name, double PortfolioPoint::* value) {
    left("", 2);
    left(name, 31);
    for (const PortfolioPoint& point : evaluation_.portfolio) {
      share(point.*value, 8);
    }
    end_line();
  }

  void comparison_line(const PickerResult& picker, bool is_model) {
    left("", 2);
    left(picker.name, 31, is_model ? Style::kBold : Style::kPlain);
    right(count_text(picker.problems), 9);
    share(picker.mean_efficiency.value, 7);
    right(interval_text(picker.mean_efficiency), 15, Style::kDim);
    share(picker.median_efficiency.value, 7);
    share(picker.p10_efficiency.value, 7);
    share(picker.min_efficiency.value, 7);
    share(picker.top1_hit, 7, false);
    right(is_model ? "" : gain_text(picker.model_gain.value), 8);
    end_line();
  }

  void comparison() {
    heading("Other ways of picking");
    left("", 2);
    left("", 31);
    const std::array<std::pair<std::string_view, std::size_t>, 8> columns{{{"problems", 9},
                                                                           {"mean", 7},
                                                                           {"95 %", 15},
                                                                           {"median", 7},
                                                                           {"P10", 7},
                                                                           {"min", 7},
                                                                           {"top 1", 7},
                                                                           {"gain", 8}}};
    for (const auto& [title, width] : columns) {
      right(title, width, Style::kDim);
    }
    end_line();
    comparison_line(evaluation_.model, true);
    for (const PickerResult& baseline : evaluation_.baselines) {
      comparison_line(baseline, false);
    }
    for (const PickerResult& baseline : evaluation_.baselines) {
      note_on(baseline);
    }
  }

  void note_on(const PickerResult& baseline) {
    std::vector<std::string> notes;
    if (baseline.replaced > 0) {
      notes.push_back(concat("the next choice stood in on ", count_of(baseline.replaced, "problem"),
                             " where the first was not measured"));
    }
    if (baseline.failed > 0) {
      notes.push_back(concat(count_of(baseline.failed, "pick"), " failed"));
    }
    if (baseline.bounds > 0) {
      notes.push_back(concat(count_of(baseline.bounds, "pick"),
                             word_for(baseline.bounds, " was", " were"), " stopped early"));
    }
    if (!notes.empty()) {
      wrapped("    ", concat(baseline.name, ": ", join(notes, ", "), "."), Style::kPlain);
    }
  }

  void curve_line(const PickerResult& picker) {
    if (picker.measured_curve.size() < kCurveLength) {
      return;
    }
    left("", 2);
    left(picker.name, 31);
    for (const std::size_t step : report_internal::kCurveSteps) {
      share(picker.measured_curve[step - 1], 8);
    }
    end_line();
  }

  void curve() {
    heading("Mean efficiency when the first few are measured and the fastest is kept");
    left("", 2);
    left("measured per problem", 31, Style::kDim);
    for (const std::size_t step : report_internal::kCurveSteps) {
      right(concat(step), 8, Style::kDim);
    }
    end_line();
    curve_line(evaluation_.model);
    for (const PickerResult& baseline : evaluation_.baselines) {
      curve_line(baseline);
    }
  }

  void slices() {
    if (evaluation_.slices.empty()) {
      return;
    }
    heading("By kind of problem");
    std::size_t width = 21;
    for (const Slice& slice : evaluation_.slices) {
      width = std::max(width, std::min<std::size_t>(width_of(slice.value) + 2, 42));
    }
    left("", 20 + width);
    for (const std::string_view title : {"problems", "mean", "P10", "min"}) {
      right(title, 9, Style::kDim);
    }
    end_line();
    std::string dimension;
    for (const Slice& slice : evaluation_.slices) {
      left("", 2);
      left(slice.dimension == dimension ? "" : slice.dimension, 18);
      dimension = slice.dimension;
      left(slice.value, width);
      right(count_text(slice.problems), 9);
      share(slice.mean_efficiency, 9);
      share(slice.p10_efficiency, 9);
      share(slice.min_efficiency, 9);
      end_line();
    }
  }

  void config_line(std::string_view what, double time_ns, std::string_view config) {
    left("", 10);
    left(what, 7, Style::kDim);
    right(time_text(time_ns), 9);
    add("  ");
    left(config, kColumns - 28);
    end_line();
  }

  void worst() {
    if (evaluation_.worst.empty()) {
      return;
    }
    heading(concat("The worst ", evaluation_.worst.size()));
    for (const WorstCase& entry : evaluation_.worst) {
      const std::string place = !entry.note.empty() ? entry.note
                                                    : concat("rank ", count_text(entry.rank),
                                                             " of ", count_text(entry.candidates));
      share(entry.efficiency, 8);
      add("  ");
      const std::size_t room = kColumns - 12 - width_of(place);
      const std::string problem = shown_problem(entry.problem);
      const bool fits = width_of(problem) <= room;
      if (fits) {
        left(problem, room);
        add("  ");
      }
      add(clean_text(place), Style::kDim);
      end_line();
      if (!fits) {
        wrapped(std::string(10, ' '), problem, Style::kPlain);
      }
      config_line("picked", entry.pick_ns, entry.pick);
      config_line("best", entry.best_ns, entry.best);
    }
  }

  void facts() {
    if (evaluation_.facts.empty()) {
      return;
    }
    out_ += '\n';
    for (const auto& [name, value] : evaluation_.facts) {
      std::string lead = clip(name, 13);
      lead.append(14 - width_of(lead), ' ');
      wrapped(lead, value, Style::kDim);
    }
  }

  void warnings() {
    if (evaluation_.warnings.empty()) {
      return;
    }
    out_ += '\n';
    for (const std::string& warning : evaluation_.warnings) {
      wrapped("warning: ", warning, Style::kFair);
    }
  }

  const Evaluation& evaluation_;
  bool color_;
  std::string out_;
};

}  // namespace

std::string report_text(const Evaluation& evaluation, bool color) {
  return TextReport(evaluation, color).write();
}

}  // namespace foretune
