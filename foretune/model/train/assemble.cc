#include "foretune/model/train/assemble.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_engine.h"
#include "foretune/model/training_range.h"
#include "foretune/space/parametric_space.h"

namespace foretune::train_internal {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// Returns the expression with the device's numbers in place of hw.x.
std::string with_numbers(std::string_view expression, const Hardware& device) {
  std::string out;
  while (!expression.empty()) {
    const std::size_t begin = std::min(expression.find("hw."), expression.size());
    out += expression.substr(0, begin);
    expression.remove_prefix(begin);
    if (expression.empty()) {
      break;
    }
    constexpr std::size_t kPrefix = 3;
    std::size_t end = kPrefix;
    while (end < expression.size() && is_name_character(expression[end])) {
      ++end;
    }
    const auto value = parse_hardware_value(expression.substr(kPrefix, end - kPrefix));
    out += value ? concat(static_cast<std::int64_t>(device.get(*value)))
                 : std::string(expression.substr(0, end));
    expression.remove_prefix(end);
  }
  return out;
}

// The most candidates of a model. With more than that, it only has the measured ones.
constexpr std::size_t kMaxPool = 16384;

// Returns every config that no rule about configs alone forbids, when the space lists its values
// and there are not too many; else nothing.
std::vector<Config> legal_configs(const CompiledSpace& space, const Hardware& hardware) {
  const auto& domains = space.definition().domains;
  std::vector<Config> out;
  std::vector<std::size_t> position(domains.size(), 0);
  Config config{.schema = space.schema_id(), .words = Config::Words(domains.size())};
  double combinations = domains.empty() ? 0 : 1;
  for (const auto& domain : domains) {
    combinations *= static_cast<double>(domain.size());
  }
  if (combinations == 0 || combinations > 2e6) {
    return out;
  }
  while (true) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
      config.words[i] = domains[i][position[i]];
    }
    if (space.is_legal_config(config.words.view(), hardware)) {
      out.push_back(config);
      if (out.size() > kMaxPool) {
        return {};
      }
    }
    std::size_t i = 0;
    while (i < domains.size() && ++position[i] == domains[i].size()) {
      position[i++] = 0;
    }
    if (i == domains.size()) {
      return out;
    }
  }
}

// Adds the canonical forms of the pool's configs on the problems of the data set. On a new problem
// the selector scores canonical forms, so the forms for similar problems must be candidates too.
void add_canonical_forms(const CompiledSpace& space, const Dataset& dataset,
                         std::unordered_set<Config>& seen, std::vector<Config>& pool) {
  constexpr std::size_t kMaxProblems = 128;
  const std::size_t count = dataset.problems().size();
  const std::size_t step = (count + kMaxProblems - 1) / kMaxProblems;
  const std::size_t given = pool.size();
  for (std::size_t p = 0; p < count && !space.definition().canonical.empty(); p += step) {
    const Problem& problem = dataset.problems()[p];
    const Hardware& hardware = dataset.hardware_of(problem);
    for (std::size_t i = 0; i < given && pool.size() < kMaxPool; ++i) {
      if (space.is_legal(pool[i].words.view(), problem.fields(), hardware)) {
        Config form = space.canonical(pool[i], problem, hardware);
        if (seen.insert(form).second) {
          pool.push_back(std::move(form));
        }
      }
    }
  }
}

// Marks the configs that were timed, or only `portfolio` and the `best_of_problem` fastest of each
// problem, unless that is 0. There may be very many sequences, since hardly any is measured twice:
// then it is 8. Marks only `portfolio` where all other candidates are given.
std::vector<bool> pool_members(const Dataset& dataset, std::span<const std::uint32_t> portfolio,
                               const TrainOptions& options) {
  constexpr std::size_t kBestOfMany = 8;
  std::size_t best_of_problem = options.best_of_problem;
  std::vector<bool> timed(dataset.configs().size(), false);
  for (const Dataset::Row& row : dataset.rows()) {
    timed[row.config] = timed[row.config] || row.is_timed();
  }
  const bool is_sequence = dataset.header().config_schema.kind == SchemaKind::kSequence;
  if (best_of_problem == 0 && is_sequence &&
      static_cast<std::size_t>(std::count(timed.begin(), timed.end(), true)) > kMaxPool) {
    best_of_problem = kBestOfMany;
  }
  if (best_of_problem == 0 && !options.only_more_candidates) {
    return timed;
  }
  std::vector<std::vector<std::pair<float, std::uint32_t>>> of_problem(dataset.problems().size());
  for (const Dataset::Row& row : dataset.rows()) {
    if (row.is_timed() && !options.only_more_candidates) {
      of_problem[row.problem].emplace_back(row.time_ns, row.config);
    }
  }
  std::vector<bool> kept(timed.size(), false);
  for (const std::uint32_t config : portfolio) {
    kept[config] = true;
  }
  for (auto& times : of_problem) {
    std::sort(times.begin(), times.end());
    for (std::size_t i = 0; i < std::min(best_of_problem, times.size()); ++i) {
      kept[times[i].second] = true;
    }
  }
  return kept;
}

// Returns the machines that the model learns from.
std::vector<Fingerprint> machines_of(const Dataset& dataset) {
  std::vector<Fingerprint> out = dataset.told_apart();
  if (out.empty()) {
    out.push_back(dataset.header().fingerprint);
  }
  return out;
}

bool is_legal_somewhere(const CompiledSpace& space, const Config& config,
                        std::span<const Fingerprint> machines) {
  return std::any_of(machines.begin(), machines.end(), [&](const Fingerprint& machine) {
    return space.is_legal_config(config.words.view(), machine.hardware);
  });
}

// Adds configs that no measurement has. Errors: kMismatch for another schema; kInvalidArgument for
// one that the rules forbid on every problem.
Status add_candidates(std::span<const Config> configs, const Dataset& dataset,
                      const CompiledSpace* space, std::span<const Fingerprint> machines,
                      std::unordered_set<Config>& seen, std::vector<Config>& pool) {
  const DatasetHeader& header = dataset.header();
  for (const Config& config : configs) {
    if (config.schema != header.config_schema.id()) {
      return fail(ErrorCode::kMismatch, "a candidate is no config of ", header.config_schema.name);
    }
    if (space != nullptr && !is_legal_somewhere(*space, config, machines)) {
      return fail(ErrorCode::kInvalidArgument, "the rules of the data set forbid the candidate ",
                  to_text(header.config_schema, config), " on every problem");
    }
    if (seen.insert(config).second) {
      pool.push_back(config);
    }
  }
  return {};
}

Result<std::vector<Config>> make_pool(const Dataset& dataset,
                                      std::span<const std::uint32_t> portfolio,
                                      const TrainOptions& options) {
  const std::vector<bool> members = pool_members(dataset, portfolio, options);
  std::vector<Config> pool;
  std::unordered_set<Config> seen;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] && seen.insert(dataset.configs()[i]).second) {
      pool.push_back(dataset.configs()[i]);
    }
  }
  std::shared_ptr<const CompiledSpace> space;
  if (!dataset.header().space_text.empty()) {
    FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(dataset.header().space_text));
    FORETUNE_TRY(space, CompiledSpace::create(std::move(definition)));
  }
  const std::vector<Fingerprint> machines = machines_of(dataset);
  FORETUNE_TRY_STATUS(
      add_candidates(options.more_candidates, dataset, space.get(), machines, seen, pool));
  if (space != nullptr) {
    std::vector<Config> all;
    for (const Fingerprint& machine : machines) {
      const std::vector<Config> legal = options.best_of_problem > 0 || options.only_more_candidates
                                            ? std::vector<Config>()
                                            : legal_configs(*space, machine.hardware);
      all.insert(all.end(), legal.begin(), legal.end());
    }
    if (all.empty()) {
      add_canonical_forms(*space, dataset, seen, pool);
    }
    for (Config& config : all) {
      if (seen.insert(config).second) {
        pool.push_back(std::move(config));
      }
    }
  }
  // The order must not depend on the order of the measurements.
  std::sort(pool.begin(), pool.end());
  return pool;
}

// Returns the range of every problem feature. A column that some problems lack has no limits.
std::vector<std::pair<double, double>> problem_ranges(const TrainingSet& set,
                                                      const FeatureTable& table) {
  const std::size_t columns = feature_count(table, FeatureKind::kProblem);
  std::vector<std::pair<double, double>> ranges(
      columns, {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()});
  std::vector<bool> is_missing(columns, false);
  for (std::size_t row = 0; row < set.size(); ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const double value = set.matrix.values[row * set.matrix.columns + column];
      is_missing[column] = is_missing[column] || std::isnan(value);
      ranges[column].first = std::min(ranges[column].first, value);
      ranges[column].second = std::max(ranges[column].second, value);
    }
  }
  for (std::size_t column = 0; column < columns; ++column) {
    ranges[column] = is_missing[column] ? kNoLimits : ranges[column];
  }
  return ranges;
}

// Returns the problems with at least one example in the training set.
std::vector<Problem> problems_of(const Dataset& dataset, const TrainingSet& set) {
  std::vector<bool> is_used(dataset.problems().size(), false);
  for (const std::uint32_t problem : set.problem) {
    is_used[problem] = true;
  }
  std::vector<Problem> out;
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    if (is_used[i]) {
      out.push_back(dataset.problems()[i]);
    }
  }
  return out;
}

}  // namespace

Status check_role(const Dataset& dataset) {
  if (dataset.header().role == DatasetRole::kValidation) {
    return fail(ErrorCode::kMismatch,
                "this is a validation set; a model made with it could not be judged by it");
  }
  return {};
}

SpaceDefinition space_with_numbers(const SpaceDefinition& space, const Hardware& device) {
  SpaceDefinition out = space;
  for (Constraint& constraint : out.constraints) {
    constraint.expression = with_numbers(constraint.expression, device);
  }
  for (auto& [parameter, expression] : out.canonical) {
    expression = with_numbers(expression, device);
  }
  return out;
}

Model model_without_data(const DatasetHeader& header, const FeatureTable& table) {
  Model model;
  model.family = header.family;
  model.problem_type = header.problem_type;
  model.problem_schema = find_problem_schema(header.problem_type)->id();
  model.config_schema = header.config_schema;
  model.space_text = header.space_text;
  if (model.space_text.empty() && header.config_schema.kind == SchemaKind::kParametric) {
    model.space_text = SpaceDefinition{
        .schema = header.config_schema,
        .problem_type = header.problem_type,
        .domains = {},
        .constraints = {},
        .canonical = {}}.text();
  }
  model.feature_table = table.name();
  model.feature_table_id = feature_table_id(table);
  model.feature_text = table.definition();
  model.fingerprint = header.fingerprint;
  return model;
}

Result<Model> make_model(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                         const TrainOptions& options) {
  DatasetHeader header = dataset.header();
  header.fingerprint = engine_fingerprint(table, header.fingerprint);
  if (header.fingerprint != dataset.header().fingerprint && !header.space_text.empty()) {
    FORETUNE_TRY(const SpaceDefinition space, SpaceDefinition::parse(header.space_text));
    header.space_text = space_with_numbers(space, dataset.header().fingerprint.hardware).text();
  }
  Model model = model_without_data(header, table);
  model.machines = dataset.told_apart();
  const std::vector<std::uint32_t> portfolio = greedy_portfolio(dataset, options.portfolio_size);
  FORETUNE_TRY(model.pool, make_pool(dataset, portfolio, options));
  std::unordered_map<Config, std::uint32_t> position;
  for (std::uint32_t i = 0; i < model.pool.size(); ++i) {
    position.emplace(model.pool[i], i);
  }
  for (const std::uint32_t config : portfolio) {
    model.portfolio.push_back(position.at(dataset.configs()[config]));
  }
  model.problem_range = problem_ranges(set, table);
  model.domain = ApplicabilityDomain::fit(problems_of(dataset, set));
  model.seed = options.seed;
  model.data_fingerprint = dataset.fingerprint();
  return model;
}

}  // namespace foretune::train_internal
