#include "foretune/report/internal/plot_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune::report_internal {
namespace {

std::vector<double> known_of(std::span<const double> values) {
  std::vector<double> out;
  std::copy_if(values.begin(), values.end(), std::back_inserter(out),
               [](double value) { return value > 0 && std::isfinite(value); });
  return out;
}

MethodSummary summary_of(const ContestResults& results, std::size_t index) {
  MethodSummary out{.index = index, .name = results.problems.front().entries[index].name};
  std::vector<double> search_s;
  std::vector<double> best_s;
  for (const ContestResult& problem : results.problems) {
    const ContestEntry& method = problem.entries[index];
    const bool is_known = method.speed > 0 && problem.start_speed > 0;
    out.speeds.push_back(method.speed);
    out.speedups.push_back(is_known ? method.speed / problem.start_speed : 0);
    search_s.push_back(method.trace.elapsed_s);
    best_s.push_back(seconds_to_best(method.trace));
  }
  out.mean_speed = mean_of_known(out.speeds);
  out.mean_speedup = mean_of_known(out.speedups);
  out.mean_search_s = mean_of_known(search_s);
  out.mean_seconds_to_best = mean_of_known(best_s);
  return out;
}

}  // namespace

std::vector<MethodSummary> by_speed(const ContestResults& results) {
  std::vector<MethodSummary> out;
  if (results.problems.empty()) {
    return out;
  }
  for (std::size_t i = 0; i < results.problems.front().entries.size(); ++i) {
    out.push_back(summary_of(results, i));
  }
  std::stable_sort(out.begin(), out.end(), [](const MethodSummary& a, const MethodSummary& b) {
    return a.mean_speed > b.mean_speed;
  });
  if (!out.empty() && !(out.front().mean_speed > 0)) {
    out.clear();
  }
  return out;
}

double mean_of_known(std::span<const double> values) {
  const std::vector<double> known = known_of(values);
  return known.empty() ? 0 : geometric_mean(known);
}

std::optional<BootstrapInterval> interval_of_mean(std::span<const double> values) {
  constexpr std::size_t kFewest = 4;
  constexpr std::size_t kSamples = 1000;
  const std::vector<double> known = known_of(values);
  Rng rng(1);
  return known.size() < kFewest
             ? std::nullopt
             : std::optional(bootstrap_interval(known, geometric_mean, kSamples, rng));
}

double seconds_to_best(const ContestTrace& trace) {
  return trace.best < trace.steps.size() && trace.steps[trace.best].speed > 0
             ? trace.steps[trace.best].elapsed_s
             : 0;
}

std::string short_number(double value) {
  return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string times_text(double value) { return concat(short_number(value), "\u00d7"); }

std::string duration_text(double seconds) {
  struct Unit {
    double seconds;
    std::string_view name;
  };
  static constexpr std::array kUnits{Unit{3600, " h"}, Unit{60, " min"}, Unit{1, " s"},
                                     Unit{1e-3, " ms"}};
  for (const Unit& unit : kUnits) {
    // Two minutes are better told in seconds.
    const double least = unit.seconds > 1 ? 3 * unit.seconds : 0.9995 * unit.seconds;
    if (seconds >= least) {
      const double amount = seconds / unit.seconds;
      std::string number = fixed(amount, amount < 9.95 && unit.seconds <= 1 ? 1 : 0);
      if (number.ends_with(".0")) {
        number.resize(number.size() - 2);
      }
      return concat(number, unit.name);
    }
  }
  return concat(fixed(seconds * 1e6, 0), " us");
}

std::string shortened(std::string_view text, double size, double width) {
  using formats::text_width;
  if (text_width(text, size) <= width) {
    return std::string(text);
  }
  while (!text.empty() && text_width(text, size) + size > width) {
    // A letter with all of its bytes.
    do {
      text.remove_suffix(1);
    } while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80U) != 0);
  }
  return concat(text, "\u2026");
}

}  // namespace foretune::report_internal
