// Spaces given by a table: parameters, the values each may take, and constraints as expressions.
// The definition is data; model files store it, so the selector knows which configs are legal for a
// problem without the family. Binding it to a problem gives a Space, which is enumerable unless it
// is too large to be listed.
//
//   SpaceDefinition definition{.schema = schema, .problem_type = kGemmProblem,
//                              .domains = {{4, 8}, {1, 2}}, .constraints = {{"mr <= m", "..."}}};
//   FORETUNE_TRY(auto compiled, CompiledSpace::create(definition));
//   auto space = ParametricSpace::bind(compiled, problem, hardware);
//
// Thread safety: immutable after creation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/small_vector.h"
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
  ProblemType problem_type{};
  // Values of each parameter, ascending. When the domains of all parameters are empty, the space is
  // known only by its constraints, as for imported measurements.
  std::vector<std::vector<std::int32_t>> domains;
  std::vector<Constraint> constraints;
  // Parameter name, and an expression for the value that means the same; applied in order. A result
  // between two values of the domain becomes the higher one, so that {"mc", "min(mc, round_up(m,
  // mr))"} merges all blocks that cover the matrix into one.
  std::vector<std::pair<std::string, std::string>> canonical;

  // Returns a text form, one line per statement, that parse() reads back; model files store it. The
  // round trip is exact for every definition that CompiledSpace::create() accepts.
  [[nodiscard]] std::string text() const;
  // Checks the form only; create() checks the meaning.
  static Result<SpaceDefinition> parse(std::string_view text);
  bool operator==(const SpaceDefinition&) const = default;
};

// A definition with its expressions compiled. The checks that take spans do not allocate for
// configs of up to kUsualParameters values.
class CompiledSpace {
 public:
  // As many as a data set can hold; bounds the definitions that files can give.
  static constexpr std::size_t kMaxParameters = 4096;
  static constexpr std::size_t kUsualParameters = 64;
  // Holds the values of a config on the stack, or on the heap when there are more.
  using WordsBuffer = SmallVector<std::int32_t, kUsualParameters>;

  // Errors: kInvalidArgument with the parameter, rule or name that makes no sense.
  static Result<std::shared_ptr<const CompiledSpace>> create(SpaceDefinition definition);

  [[nodiscard]] const SpaceDefinition& definition() const { return definition_; }
  [[nodiscard]] std::uint64_t schema_id() const { return schema_id_; }
  // Returns true when all constraints hold: the test of the selector's hot path. Returns false when
  // the number of values is not the number of parameters. `fields` are those of a problem of the
  // space's type.
  [[nodiscard]] bool is_legal(std::span<const std::int32_t> words,
                              std::span<const std::int64_t> fields, const Hardware& hardware) const;
  // Checks the constraints that depend on config and hardware only: once per pool of candidates.
  [[nodiscard]] bool is_legal_config(std::span<const std::int32_t> words,
                                     const Hardware& hardware) const;
  // Checks the other constraints, which depend on the problem.
  [[nodiscard]] bool is_legal_for_problem(std::span<const std::int32_t> words,
                                          std::span<const std::int64_t> fields,
                                          const Hardware& hardware) const;
  // Checks all constraints, the schema and the domains, and gives the reason for a refusal.
  [[nodiscard]] Support why_not(const Config& config, const Problem& problem,
                                const Hardware& hardware) const;
  // Returns the first constraint that does not hold, as a position in definition().constraints;
  // nothing for a legal config. The order is that of why_not(). `words` has one entry per
  // parameter.
  [[nodiscard]] std::optional<std::size_t> broken_constraint(std::span<const std::int32_t> words,
                                                             std::span<const std::int64_t> fields,
                                                             const Hardware& hardware) const;
  // Returns the representative of all configs that mean the same: applies the canonical rules until
  // nothing changes. A legal config whose representative would be illegal represents itself, and so
  // does every config for which the rules contradict each other.
  // canonical(canonical(c)) == canonical(c).
  [[nodiscard]] Config canonical(Config config, const Problem& problem,
                                 const Hardware& hardware) const;
  // Does the same in place and returns true when the values changed. is_canonical() returns true
  // when they would not change.
  bool canonicalise(std::span<std::int32_t> words, std::span<const std::int64_t> fields,
                    const Hardware& hardware) const;
  [[nodiscard]] bool is_canonical(std::span<const std::int32_t> words,
                                  std::span<const std::int64_t> fields,
                                  const Hardware& hardware) const;

 private:
  friend class FoldedRules;
  friend class SpaceWalk;
  struct Rule {
    Expression expression;
    std::size_t constraint = 0;
  };
  struct Canonical {
    std::size_t parameter = 0;
    Expression expression;
  };
  CompiledSpace() = default;
  [[nodiscard]] const Rule* broken_rule(std::span<const std::int32_t> words,
                                        std::span<const std::int64_t> fields,
                                        const Hardware& hardware) const;
  [[nodiscard]] std::int32_t canonical_word(const Canonical& rule,
                                            std::span<const std::int32_t> words,
                                            std::span<const std::int64_t> fields,
                                            const Hardware& hardware) const;
  // Applies the rules until nothing changes; returns false when they go round in circles.
  [[nodiscard]] bool apply_canonical(std::span<std::int32_t> words,
                                     std::span<const std::int64_t> fields,
                                     const Hardware& hardware) const;

  SpaceDefinition definition_;
  std::uint64_t schema_id_ = 0;
  std::vector<Rule> config_rules_;   // depend on config and hardware only
  std::vector<Rule> problem_rules_;  // depend on the problem too
  // The order in which a walk sets the parameters, and for each of its steps the positions in the
  // two lists of the rules that can be checked after it.
  std::vector<std::size_t> order_;
  std::vector<std::vector<std::size_t>> config_rules_at_;
  std::vector<std::vector<std::size_t>> problem_rules_at_;
  std::vector<Canonical> canonical_;
};

class ParametricSpace final : public Space, public EnumerableSpace {
 public:
  // Lists all legal canonical configs once: a depth-first walk that checks each constraint as
  // soon as its parameters are set, those first that few values and many constraints have. A space
  // where this would take too long (more than four million configs, or about a second) is not
  // listed: enumerable() then returns nullptr, and only sample(), neighbours(), canonical() and
  // why_not() are left. Errors: kInvalidArgument for a problem of another type or empty domains.
  static Result<std::unique_ptr<ParametricSpace>> bind(
      std::shared_ptr<const CompiledSpace> compiled, const Problem& problem,
      const Hardware& hardware);

  const ConfigSchema& schema() const override;
  Support why_not(const Config& config) const override;
  // Every listed config is equally likely. Without a list, every legal canonical config is equally
  // likely as long as about one combination of values in a hundred is such a config. Where fewer
  // are, configs with few similar ones come more often, and kNotFound says only that a long search
  // found nothing.
  Result<Config> sample(Rng& rng) const override;
  // Returns canonical, distinct configs that differ from the canonical config in one parameter: a
  // number changes to the next value on either side that is legal and means something else, a label
  // to every other label that is.
  std::vector<Config> neighbours(const Config& config) const override;
  Config canonical(const Config& config) const override;
  const EnumerableSpace* enumerable() const override { return legal_ ? this : nullptr; }
  // Both abort unless enumerable().
  std::uint64_t count() const override;
  Config unrank(std::uint64_t index) const override;

 private:
  ParametricSpace(std::shared_ptr<const CompiledSpace> compiled, Problem problem,
                  Hardware hardware);
  std::shared_ptr<const CompiledSpace> compiled_;
  Problem problem_;
  Hardware hardware_;
  // Mixed-radix numbers of the legal canonical configs, ascending; nothing when there are too many.
  std::optional<std::vector<std::uint64_t>> legal_;
};

}  // namespace foretune
