// A named, versioned table of features per (problem type, config schema): what a model sees. A
// model stores the table's id and refuses another one. Every column says what it depends on, so a
// scorer computes each only as often as needed: once per pool, once per problem, or per candidate.
// A config is described without preparing it; the family is never asked.
// Thread safety: tables are constant. Cost: extraction does not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

// Stored in files: never renumber.
enum class FeatureKind : std::uint8_t {
  kProblem = 0,      // constant over the configs of a problem (hardware facts included)
  kConfig = 1,       // constant over the problems
  kInteraction = 2,  // depends on both
};

struct FeatureInfo {
  std::string_view name;
  FeatureKind kind;
  std::string_view description;  // with the unit
};

// Columns stand in the order problem, config, interaction.
class FeatureTable {
 public:
  virtual ~FeatureTable() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const FeatureInfo> columns() const = 0;
  // Whether configs of this schema are described by the table.
  virtual Support supports(ProblemType type, const ConfigSchema& schema) const = 0;

  // Each writes the columns of its kind, in table order. `out` has exactly that many places.
  virtual void problem_row(const Problem& problem, const Hardware& hardware,
                           std::span<double> out) const = 0;
  virtual void config_row(std::span<const std::int32_t> words, std::span<double> out) const = 0;
  // Column-major: out[column * stride + i] for candidate i. `words` holds the configs one after
  // another, `width` words each.
  virtual void interaction_columns(const Problem& problem, const Hardware& hardware,
                                   std::span<const std::int32_t> words, std::size_t width,
                                   std::span<double> out, std::size_t stride) const = 0;
};

std::size_t feature_count(const FeatureTable& table, FeatureKind kind);
// Hash of name and column names: changes with every change of meaning (rename the column then).
std::uint64_t feature_table_id(const FeatureTable& table);
// One full row, for training and tests.
void feature_row(const FeatureTable& table, const Problem& problem, const Hardware& hardware,
                 const Config& config, std::span<double> out);

// All tables of this build, and one by name (kNotFound with the nearest).
std::span<const FeatureTable* const> feature_tables();
Result<const FeatureTable*> find_feature_table(std::string_view name);

}  // namespace foretune
