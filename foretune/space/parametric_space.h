// Spaces given by a table: parameters, the values each may take, and constraints as expressions.
// The definition is data; it is stored in model files, so the selector knows what is legal for a
// problem without the family. Binding it to a problem gives an enumerable Space.
//
//   SpaceDefinition definition{.schema = schema, .problem_type = ProblemType::kGemm,
//                              .domains = {{4, 8}, {1, 2}}, .constraints = {{"mr <= m", "..."}}};
//   FORETUNE_TRY(auto compiled, CompiledSpace::create(definition));
//   auto space = ParametricSpace::bind(compiled, problem, hardware);
//
// Thread safety: immutable after creation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/expression.h"
#include "foretune/space/space.h"

namespace foretune {

struct Constraint {
  std::string expression;  // legal when it is not 0
  std::string reason;      // "the register block needs more than 32 vector registers"
  bool operator==(const Constraint&) const = default;
};

struct SpaceDefinition {
  ConfigSchema schema;
  ProblemType problem_type = ProblemType::kGemm;
  // Values of each parameter, ascending. Empty domains (all parameters) mean that the space is
  // known only by its constraints, as for imported measurements.
  std::vector<std::vector<std::int32_t>> domains;
  std::vector<Constraint> constraints;
  // parameter name, expression: the canonical value of a parameter, applied in order.
  std::vector<std::pair<std::string, std::string>> canonical;

  // A text form, one line per statement, that parse() reads back; stored in model files.
  [[nodiscard]] std::string text() const;
  static Result<SpaceDefinition> parse(std::string_view text);
  bool operator==(const SpaceDefinition&) const = default;
};

class CompiledSpace {
 public:
  static Result<std::shared_ptr<const CompiledSpace>> create(SpaceDefinition definition);

  [[nodiscard]] const SpaceDefinition& definition() const { return definition_; }
  [[nodiscard]] std::uint64_t schema_id() const { return schema_id_; }
  // Whether all constraints hold. Does not allocate: the test of the selector's hot path.
  [[nodiscard]] bool is_legal(std::span<const std::int32_t> words,
                              std::span<const std::int64_t> fields,
                              const Hardware& hardware) const;
  // Constraints that depend on the problem only need the rest of the candidates to be checked.
  [[nodiscard]] bool is_legal_config(std::span<const std::int32_t> words,
                                     const Hardware& hardware) const;
  [[nodiscard]] bool is_legal_for_problem(std::span<const std::int32_t> words,
                                          std::span<const std::int64_t> fields,
                                          const Hardware& hardware) const;
  // The rules whose last parameter is `parameter`: what a walk over the parameters checks there.
  [[nodiscard]] bool holds_at(int parameter, std::span<const std::int32_t> words,
                              std::span<const std::int64_t> fields,
                              const Hardware& hardware) const;
  // The same with the reason, schema and domains checked too.
  [[nodiscard]] Support why_not(const Config& config, const Problem& problem,
                                const Hardware& hardware) const;
  [[nodiscard]] Config canonical(Config config, const Problem& problem,
                                 const Hardware& hardware) const;

 private:
  CompiledSpace() = default;
  struct Rule {
    Expression expression;
    std::size_t constraint = 0;
  };
  struct Canonical {
    std::size_t parameter = 0;
    Expression expression;
  };
  friend class ParametricSpace;
  SpaceDefinition definition_;
  std::uint64_t schema_id_ = 0;
  std::vector<Rule> config_rules_;   // depend on config and hardware only
  std::vector<Rule> problem_rules_;  // depend on the problem too
  std::vector<Canonical> canonical_;
};

class ParametricSpace final : public Space, public EnumerableSpace {
 public:
  // Lists all legal canonical configs once (a depth-first walk that checks each constraint as
  // soon as its parameters are set). Errors: kInvalidArgument for a problem of another type or
  // empty domains.
  static Result<std::unique_ptr<ParametricSpace>> bind(
      std::shared_ptr<const CompiledSpace> compiled, const Problem& problem,
      const Hardware& hardware);

  const ConfigSchema& schema() const override;
  Support why_not(const Config& config) const override;
  Result<Config> sample(Rng& rng) const override;
  std::vector<Config> neighbours(const Config& config) const override;
  Config canonical(const Config& config) const override;
  const EnumerableSpace* enumerable() const override { return this; }
  std::uint64_t count() const override { return legal_.size(); }
  Config unrank(std::uint64_t index) const override;

 private:
  ParametricSpace(std::shared_ptr<const CompiledSpace> compiled, Problem problem,
                  Hardware hardware);
  std::shared_ptr<const CompiledSpace> compiled_;
  Problem problem_;
  Hardware hardware_;
  // Mixed-radix numbers of the legal canonical configs, ascending.
  std::vector<std::uint64_t> legal_;
};

}  // namespace foretune
