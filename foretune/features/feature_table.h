// A named, versioned table of features per (problem type, config schema): what a model sees. A
// model stores the table's id and refuses another one. Every column says what it depends on, so a
// scorer computes each only as often as needed: once per pool, once per problem, or per candidate.
// A config is described without preparing it; the family is never asked.
// Thread safety: tables are constant. Cost: extraction does not allocate, but for sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  // The place that the column has in a model trained elsewhere, for a table that reproduces the
  // features of such models; -1 in tables of our own.
  std::int16_t foreign_position = -1;
  // The version of the table that added the column. Later columns than the first stand at the end
  // of their kind, and models from before go on without them.
  std::uint32_t since = 1;
  // Problems may lack it: its value is NaN then. All others are finite.
  bool may_be_missing = false;
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
  // Column-major: out[column * stride + i] for candidate i.
  virtual void interaction_columns(const Problem& problem, const Hardware& hardware,
                                   ConfigWords configs, std::span<double> out,
                                   std::size_t stride) const = 0;
  // The configs of a problem, for tables of sequences: which are legal is nowhere written down as a
  // table of values. nullptr: the table knows no space.
  virtual std::unique_ptr<Space> space(const Problem& /*problem*/,
                                       const Hardware& /*hardware*/) const {
    return nullptr;
  }
  // Says no, with the reason, to a legal config that is known to fail without being tried.
  virtual Support may_run(const Problem& /*problem*/, const Hardware& /*hardware*/,
                          const Config& /*config*/) const {
    return Support::yes();
  }
};

std::size_t feature_count(const FeatureTable& table, FeatureKind kind);
// Hash of the table's name and the names of its first columns. A column whose meaning changes gets
// another name and another `since`.
std::uint64_t feature_table_id(const FeatureTable& table);
// One full row, for training and tests.
void feature_row(const FeatureTable& table, const Problem& problem, const Hardware& hardware,
                 const Config& config, std::span<double> out);

// Models trained elsewhere list their features in an order of their own, mostly problem and config
// mixed. A table that reproduces them holds the same columns in the order of kinds, so that a
// scorer computes each only as often as needed, and says where each belongs: the position in
// columns() of each of the foreign model's features, in its order. Empty for a table of our own.
std::vector<std::uint16_t> foreign_order(const FeatureTable& table);
// The same for a model that names its features: any of the table's columns in any order. Errors:
// kMismatch with the names that the table does not have.
Result<std::vector<std::uint16_t>> find_columns(const FeatureTable& table,
                                                std::span<const std::string_view> names);
// One full row in the foreign order, which the table must have: what the foreign model sees.
void foreign_row(const FeatureTable& table, const Problem& problem, const Hardware& hardware,
                 const Config& config, std::span<double> out);

// All tables, those of this build first, and one by name. Errors: kNotFound with all names.
std::span<const FeatureTable* const> feature_tables();
// Adds a table for the rest of the process. Errors: kInvalidArgument for a name that is taken.
Status register_feature_table(std::unique_ptr<const FeatureTable> table);
Result<const FeatureTable*> find_feature_table(std::string_view name);

}  // namespace foretune
