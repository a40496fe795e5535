#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/evaluate/internal/baselines.h"

namespace foretune::evaluate_internal {
namespace {

constexpr double kOtherLabel = 4;  // octaves
constexpr auto kNoColumn = static_cast<std::size_t>(-1);

// Sums of one config over the problems where it has a row.
struct ConfigRecord {
  std::size_t measured = 0;
  std::size_t seen = 0;  // measured or refused
  double sum = 0;
};

// Returns evenly spaced problems where there are thousands, since these give the same result.
std::vector<std::uint32_t> thinned(const std::vector<std::uint32_t>& problems) {
  if (problems.size() <= kMaxProblems) {
    return problems;
  }
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < kMaxProblems; ++i) {
    out.push_back(problems[i * problems.size() / kMaxProblems]);
  }
  return out;
}

// Estimates the unmeasured pairs from the measured ones.
class Records {
 public:
  Records(const Dataset& training, const MeasuredTimes& times,
          const std::vector<std::uint32_t>& problems)
      : records_(training.configs().size()), problems_(static_cast<double>(problems.size())) {
    double sum = 0;
    std::size_t measured = 0;
    for (const std::uint32_t problem : problems) {
      for (const MeasuredCandidate& candidate : times.candidates(problem)) {
        ConfigRecord& record = records_[candidate.config];
        ++record.seen;
        if (candidate.state != MeasuredState::kRefused) {
          const double efficiency = times.compare(problem, candidate).efficiency;
          ++record.measured;
          record.sum += efficiency;
          sum += efficiency;
          ++measured;
        }
      }
    }
    overall_ = sum / static_cast<double>(measured);
    std::vector<double> coverages;
    for (const ConfigRecord& record : records_) {
      if (record.seen > 0) {
        coverages.push_back(static_cast<double>(record.seen) / problems_);
      }
    }
    usual_coverage_ = quantile(coverages, 0.9);
  }

  // Returns the efficiency of a legal config where it was not measured.
  [[nodiscard]] double estimate(std::uint32_t config) const {
    const ConfigRecord& record = records_[config];
    return (record.sum + kShrinkage * overall_) /
           (static_cast<double>(record.measured) + kShrinkage);
  }

  // Returns the probability that a config is legal where it was not measured. A config with fewer
  // rows than most is missing for a reason. If all legal pairs were measured with the usual
  // coverage u, a config with coverage c is legal with probability c / u, and legal but missing
  // with c (1 - u) / u out of the 1 - c.
  [[nodiscard]] double chance_of_legal(std::uint32_t config) const {
    const double coverage = static_cast<double>(records_[config].seen) / problems_;
    return coverage >= usual_coverage_
               ? 1.0
               : coverage * (1 - usual_coverage_) / (usual_coverage_ * (1 - coverage));
  }

  // Returns measured config ids by estimate, best first.
  [[nodiscard]] std::vector<std::uint32_t> by_estimate() const {
    std::vector<std::uint32_t> order;
    for (std::uint32_t c = 0; c < records_.size(); ++c) {
      if (records_[c].measured > 0) {
        order.push_back(c);
      }
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(-estimate(a), a) < std::pair(-estimate(b), b);
    });
    return order;
  }

 private:
  std::vector<ConfigRecord> records_;
  double problems_;
  double overall_ = 0;
  double usual_coverage_ = 0;
};

}  // namespace

// Rows are problems, columns are configs that may become part of a portfolio.
struct TrainedBaselines::Estimates {
  std::vector<std::uint32_t> columns;  // config ids
  std::vector<std::uint32_t> others;   // measured configs without a column, best first
  std::vector<float> efficiency;       // problem-major
};

std::shared_ptr<const CompiledSpace> known_space(const Dataset& dataset, const Model* model) {
  for (const std::string* text :
       {&dataset.header().space_text, model == nullptr ? nullptr : &model->space_text}) {
    if (text == nullptr || text->empty()) {
      continue;
    }
    Result<SpaceDefinition> definition = SpaceDefinition::parse(*text);
    if (!definition || definition->problem_type != dataset.header().problem_type) {
      continue;
    }
    Result<std::shared_ptr<const CompiledSpace>> compiled =
        CompiledSpace::create(*std::move(definition));
    if (compiled && (*compiled)->schema_id() == dataset.header().config_schema.id()) {
      return *std::move(compiled);
    }
  }
  return nullptr;
}

TrainedBaselines::TrainedBaselines(const Dataset& training, const MeasuredTimes& times,
                                   const std::vector<bool>& use, const CompiledSpace* space)
    : training_(training), times_(times) {
  for (std::uint32_t p = 0; p < training.problems().size(); ++p) {
    if (use[p] && times.has_oracle(p)) {
      problems_.push_back(p);
    }
  }
  if (problems_.empty()) {
    return;
  }
  for (std::uint32_t c = 0; c < training.configs().size(); ++c) {
    ids_.emplace(training.configs()[c], c);
  }
  const Estimates estimates = estimate(thinned(problems_), space);
  order_by_mean(estimates);
  choose_portfolio(estimates);
}

TrainedBaselines::Estimates TrainedBaselines::estimate(const std::vector<std::uint32_t>& problems,
                                                       const CompiledSpace* space) const {
  Estimates out;
  const Records records(training_, times_, problems);
  std::vector<bool> is_winner(training_.configs().size(), false);
  for (const std::uint32_t problem : problems) {
    is_winner[times_.oracle_config(problem)] = true;
  }
  std::vector<std::size_t> column_of(training_.configs().size(), kNoColumn);
  for (const std::uint32_t config : records.by_estimate()) {
    if (out.columns.size() < kMaxConfigs || is_winner[config]) {
      column_of[config] = out.columns.size();
      out.columns.push_back(config);
    } else {
      out.others.push_back(config);
    }
  }
  out.efficiency.resize(problems.size() * out.columns.size());
  for (std::size_t p = 0; p < problems.size(); ++p) {
    const std::span row(&out.efficiency[p * out.columns.size()], out.columns.size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      const double estimate = records.estimate(out.columns[c]);
      row[c] = static_cast<float>(
          space == nullptr ? records.chance_of_legal(out.columns[c]) * estimate
                           : efficiency_by_space(*space, problems[p], out.columns[c], estimate));
    }
    for (const MeasuredCandidate& candidate : times_.candidates(problems[p])) {
      if (column_of[candidate.config] != kNoColumn) {
        row[column_of[candidate.config]] =
            static_cast<float>(times_.compare(problems[p], candidate).efficiency);
      }
    }
  }
  return out;
}

double TrainedBaselines::efficiency_by_space(const CompiledSpace& space, std::uint32_t problem,
                                             std::uint32_t config, double estimate) const {
  const Problem& value = training_.problems()[problem];
  const Hardware& hardware = training_.hardware_of(value);
  const Config& words = training_.configs()[config];
  if (!space.is_legal(words.words.view(), value.fields(), hardware)) {
    return 0;
  }
  // An equivalent config may have been measured in its place.
  const auto same = ids_.find(space.canonical(words, value, hardware));
  const MeasuredCandidate* candidate =
      same == ids_.end() ? nullptr : times_.find(problem, same->second);
  return candidate == nullptr ? estimate : times_.compare(problem, *candidate).efficiency;
}

void TrainedBaselines::order_by_mean(const Estimates& estimates) {
  const std::size_t columns = estimates.columns.size();
  std::vector<double> sums(columns, 0);
  for (std::size_t i = 0; i < estimates.efficiency.size(); ++i) {
    sums[i % columns] += static_cast<double>(estimates.efficiency[i]);
  }
  std::vector<std::size_t> order(columns);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(-sums[a], estimates.columns[a]) < std::pair(-sums[b], estimates.columns[b]);
  });
  for (const std::size_t column : order) {
    by_mean_.push_back(estimates.columns[column]);
  }
  by_mean_.insert(by_mean_.end(), estimates.others.begin(), estimates.others.end());
}

void TrainedBaselines::choose_portfolio(const Estimates& estimates) {
  const std::size_t columns = estimates.columns.size();
  const std::size_t problems = estimates.efficiency.size() / columns;
  std::vector<float> reached(problems, 0);
  std::vector<bool> chosen(training_.configs().size(), false);
  while (portfolio_.size() < std::min(kPortfolioLength, columns)) {
    std::vector<double> sums(columns, 0);
    for (std::size_t p = 0; p < problems; ++p) {
      const float* row = &estimates.efficiency[p * columns];
      for (std::size_t c = 0; c < columns; ++c) {
        sums[c] += static_cast<double>(std::max(reached[p], row[c]));
      }
    }
    std::size_t best = columns;
    for (std::size_t c = 0; c < columns; ++c) {
      if (!chosen[estimates.columns[c]] && (best == columns || sums[c] > sums[best])) {
        best = c;
      }
    }
    chosen[estimates.columns[best]] = true;
    portfolio_.push_back(estimates.columns[best]);
    for (std::size_t p = 0; p < problems; ++p) {
      reached[p] = std::max(reached[p], estimates.efficiency[p * columns + best]);
    }
  }
  for (const std::uint32_t config : by_mean_) {
    if (!chosen[config]) {
      portfolio_.push_back(config);
    }
  }
}

double log_distance(const Problem& a, const Problem& b) {
  if (a.type() != b.type()) {
    return std::numeric_limits<double>::infinity();
  }
  const std::span<const ProblemField> fields = a.schema().fields;
  double sum = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    double step = 0;
    if (!fields[i].labels.empty()) {
      step = a.field(i) == b.field(i) ? 0 : kOtherLabel;
    } else {
      const auto size = [i](const Problem& problem) {
        return static_cast<double>(std::max<std::int64_t>(problem.field(i), 0));
      };
      // A size of 0 (a padding) has no logarithm, hence the half. It hardly matters for other
      // sizes.
      step = std::log2((size(a) + 0.5) / (size(b) + 0.5));
    }
    sum += step * step;
  }
  return std::sqrt(sum);
}

std::vector<std::uint32_t> TrainedBaselines::nearest(const Problem& problem) const {
  std::vector<std::pair<double, std::uint32_t>> distances;
  distances.reserve(problems_.size());
  for (const std::uint32_t id : problems_) {
    distances.emplace_back(log_distance(problem, training_.problems()[id]), id);
  }
  std::sort(distances.begin(), distances.end());
  std::vector<std::uint32_t> out;
  out.reserve(distances.size());
  for (const auto& [distance, id] : distances) {
    out.push_back(id);
  }
  return out;
}

}  // namespace foretune::evaluate_internal
