// A named, versioned table of features per (problem type, config schema): the inputs of a model. A
// model stores the table's id and refuses another one. Every column states its dependencies, so a
// scorer computes each only as often as needed: once per pool, once per problem, or per candidate.
// The table describes a config without preparing it and without the family.
// Thread safety: tables are constant. Cost: extraction does not allocate, except for sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/config_words.h"
#include "foretune/space/space.h"

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
  bool is_categorical = false;   // a code whose order means nothing
  // The position of the column in a model trained elsewhere, for a table that reproduces the
  // features of such models; -1 in tables of our own.
  std::int16_t foreign_position = -1;
  // The version of the table that added the column. Columns of later versions are at the end of
  // their kind, and older models continue without them.
  std::uint32_t since = 1;
  // True when problems may lack it; then its value is NaN. All other values are finite.
  bool may_be_missing = false;
};

// Columns are in the order problem, config, interaction.
class FeatureTable {
 public:
  virtual ~FeatureTable() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const FeatureInfo> columns() const = 0;
  // Returns the text of a table that is data (expression_table.h), which model files carry; empty
  // for a table that is code.
  virtual std::string_view definition() const { return {}; }
  // Returns yes when the table describes configs of this schema; otherwise says why not.
  virtual Support supports(ProblemType type, const ConfigSchema& schema) const = 0;

  // Each function writes the columns of its kind, in table order. `out` has exactly that many
  // places.
  virtual void problem_row(const Problem& problem, const Hardware& hardware,
                           std::span<double> out) const = 0;
  virtual void config_row(std::span<const std::int32_t> words, std::span<double> out) const = 0;
  // Column-major: out[column * stride + i] for candidate i.
  virtual void interaction_columns(const Problem& problem, const Hardware& hardware,
                                   ConfigWords configs, std::span<double> out,
                                   std::size_t stride) const = 0;
  // Returns the positions of the values of a config that the interaction columns depend on: where
  // these agree, the columns agree for every problem. A pool then computes them once. Returns
  // nothing when any value may matter.
  virtual std::optional<std::vector<std::size_t>> interaction_values() const {
    return std::nullopt;
  }
  // Returns the configs of a problem, for tables of sequences: no list of values describes the
  // legal ones. Returns nullptr when the table has no space.
  virtual std::unique_ptr<Space> space(const Problem& /*problem*/,
                                       const Hardware& /*hardware*/) const {
    return nullptr;
  }
  // Returns no, with the reason, for a legal config that is known to fail without a try.
  virtual Support may_run(const Problem& /*problem*/, const Hardware& /*hardware*/,
                          const Config& /*config*/) const {
    return Support::yes();
  }
};

std::size_t feature_count(const FeatureTable& table, FeatureKind kind);
// Returns a hash of the table's name, its definition and the names of the columns of its first
// version. A column whose meaning changes gets another name and another `since`.
std::uint64_t feature_table_id(const FeatureTable& table);
// Writes one full row, for training and tests.
void feature_row(const FeatureTable& table, const Problem& problem, const Hardware& hardware,
                 const Config& config, std::span<double> out);

// Models trained elsewhere list their features in their own order, which mostly mixes problem and
// config. A table that reproduces them has the same columns in the order of kinds, so that a scorer
// computes each only as often as needed. Returns the position in columns() of each of the foreign
// model's features, in its order; empty for a table of our own.
std::vector<std::uint16_t> foreign_order(const FeatureTable& table);
// Returns these positions for a model that names its features: any of the table's columns in any
// order. Errors: kMismatch with the names that the table does not have.
Result<std::vector<std::uint16_t>> find_columns(const FeatureTable& table,
                                                std::span<const std::string_view> names);

// Return all tables, those of this build first, and one by name. Errors: kNotFound with all names.
std::span<const FeatureTable* const> feature_tables();
// Adds a table for the rest of the process. Errors: kInvalidArgument for a name that is taken.
Status register_feature_table(std::unique_ptr<const FeatureTable> table);
Result<const FeatureTable*> find_feature_table(std::string_view name);

}  // namespace foretune
