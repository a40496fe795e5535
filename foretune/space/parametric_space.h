// Spaces given by a table: parameters, the values each may take, and constraints as expressions.
// The definition is data; it is stored in model files, so the selector knows what is legal for a
// problem without the family. Binding it to a problem gives a Space, and unless it is too large to
// be listed an enumerable one.
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
  // Values of each parameter, ascending. Empty domains (all parameters) mean that the space is
  // known only by its constraints, as for imported measurements.
  std::vector<std::vector<std::int32_t>> domains;
  std::vector<Constraint> constraints;
  // Parameter name, expression: the value that says the same, applied in order. A value between
  // those of the domain becomes the next higher one, so that {"mc", "min(mc, round_up(m, mr))"}
  // makes one of all blocks that cover the matrix.
  std::vector<std::pair<std::string, std::string>> canonical;

  // A text form, one line per statement, that parse() reads back; stored in model files. Exact for
  // every definition that CompiledSpace::create() accepts.
  [[nodiscard]] std::string text() const;
  // Checks the form only; create() checks the meaning.
  static Result<SpaceDefinition> parse(std::string_view text);
  bool operator==(const SpaceDefinition&) const = default;
};

// A definition with its expressions compiled. The checks that take spans do not allocate for
// configs of up to kUsualParameters words.
class CompiledSpace {
 public:
  // As many as a data set can hold: so that a definition from a file keeps within bounds.
  static constexpr std::size_t kMaxParameters = 4096;
  static constexpr std::size_t kUsualParameters = 64;
  // Words of a config on the stack; more are on the heap.
  using WordsBuffer = SmallVector<std::int32_t, kUsualParameters>;

  // Errors: kInvalidArgument with the parameter, rule or name that makes no sense.
  static Result<std::shared_ptr<const CompiledSpace>> create(SpaceDefinition definition);

  [[nodiscard]] const SpaceDefinition& definition() const { return definition_; }
  [[nodiscard]] std::uint64_t schema_id() const { return schema_id_; }
  // Whether all constraints hold: the test of the selector's hot path. Says no to another number of
  // words than there are parameters. `fields` are those of a problem of the space's type.
  [[nodiscard]] bool is_legal(std::span<const std::int32_t> words,
                              std::span<const std::int64_t> fields, const Hardware& hardware) const;
  // The constraints that depend on config and hardware only: checked once per pool of candidates.
  [[nodiscard]] bool is_legal_config(std::span<const std::int32_t> words,
                                     const Hardware& hardware) const;
  // The rest, which depends on the problem.
  [[nodiscard]] bool is_legal_for_problem(std::span<const std::int32_t> words,
                                          std::span<const std::int64_t> fields,
                                          const Hardware& hardware) const;
  // The same with the reason, schema and domains checked too.
  [[nodiscard]] Support why_not(const Config& config, const Problem& problem,
                                const Hardware& hardware) const;
  // The first constraint that does not hold, as a position in definition().constraints; nothing for
  // a legal config. The order is that of why_not(). `words` as in is_legal(), one per parameter.
  [[nodiscard]] std::optional<std::size_t> broken_constraint(std::span<const std::int32_t> words,
                                                             std::span<const std::int64_t> fields,
                                                             const Hardware& hardware) const;
  // The representative of all configs that mean the same: the canonical rules applied until nothing
  // changes. A legal config whose representative were illegal is its own, and so is every config
  // for which the rules contradict each other. canonical(canonical(c)) == canonical(c).
  [[nodiscard]] Config canonical(Config config, const Problem& problem,
                                 const Hardware& hardware) const;
  // The same in place; whether the words changed. Whether they would.
  bool canonicalise(std::span<std::int32_t> words, std::span<const std::int64_t> fields,
                    const Hardware& hardware) const;
  [[nodiscard]] bool is_canonical(std::span<const std::int32_t> words,
                                  std::span<const std::int64_t> fields,
                                  const Hardware& hardware) const;

 private:
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
  // Until nothing changes; false when the rules go round in circles.
  [[nodiscard]] bool apply_canonical(std::span<std::int32_t> words,
                                     std::span<const std::int64_t> fields,
                                     const Hardware& hardware) const;

  SpaceDefinition definition_;
  std::uint64_t schema_id_ = 0;
  std::vector<Rule> config_rules_;   // depend on config and hardware only
  std::vector<Rule> problem_rules_;  // depend on the problem too
  // Positions in the two lists, by the last parameter of the rule: what can be checked that early.
  std::vector<std::vector<std::size_t>> config_rules_at_;
  std::vector<std::vector<std::size_t>> problem_rules_at_;
  std::vector<Canonical> canonical_;
};

class ParametricSpace final : public Space, public EnumerableSpace {
 public:
  // Lists all legal canonical configs once (a depth-first walk that checks each constraint as
  // soon as its parameters are set). A space where this would take too long (more than four million
  // configs, or a second or so) is not listed: enumerable() is then nullptr, and configs can only
  // be drawn, walked to and asked about. Errors: kInvalidArgument for a problem of another type or
  // empty domains.
  static Result<std::unique_ptr<ParametricSpace>> bind(
      std::shared_ptr<const CompiledSpace> compiled, const Problem& problem,
      const Hardware& hardware);

  const ConfigSchema& schema() const override;
  Support why_not(const Config& config) const override;
  // Every listed config is equally likely. Where there is no list, so is every legal canonical one
  // as long as about one combination of values in a hundred is such a config; where fewer are,
  // those that few others resemble come more often, and kNotFound says only that a long search was
  // vain.
  Result<Config> sample(Rng& rng) const override;
  // One parameter of the canonical config changed: a number to the next value on either side that
  // is legal and means something else, a label to every such other label. Canonical and distinct.
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
