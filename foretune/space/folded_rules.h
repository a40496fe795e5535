// Legality of a few known configs, checked again and again for new problems. The parameters, the
// hardware and the fields that never change are filled into the rules once; mostly little is left,
// and much of that is the same for several configs, which then share the outcome.
//
//   FoldedRules rules(*space, hardware, fields);   // `fields`: those that are known
//   rules.add(config.words.view());                // number 0
//   FoldedRules::Outcomes outcomes;                // one for each problem
//   rules.is_legal(0, problem.fields(), outcomes)
//
// Thread safety: const members may be called from several threads, each with its own outcomes.
// Cost: is_legal() does not allocate; add() takes some ten us for a space with long rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "foretune/hardware/hardware.h"
#include "foretune/space/expression.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

class FoldedRules {
 public:
  // The outcomes that are known for one problem. Rules beyond these are evaluated whenever they are
  // asked.
  class Outcomes {
    friend class FoldedRules;
    static constexpr std::size_t kKept = 256;
    std::array<std::uint8_t, kKept> kept_{};  // 0: not evaluated yet
  };

  FoldedRules() = default;
  // `fields` has the values of known fields, and nothing for the others; empty where none is known.
  FoldedRules(std::shared_ptr<const CompiledSpace> space, const Hardware& hardware,
              std::vector<std::optional<std::int64_t>> fields = {});

  // Adds a config; they are numbered from 0.
  void add(std::span<const std::int32_t> words);

  // Returns what CompiledSpace::is_legal_for_problem() returns for the config and the hardware.
  // `fields` are those of a problem of the space's type, with the values that are known.
  [[nodiscard]] bool is_legal(std::size_t config, std::span<const std::int64_t> fields,
                              Outcomes& outcomes) const noexcept;

  [[nodiscard]] std::size_t size() const { return configs_.size(); }
  // Returns the number of different rules that depend on a problem, over all configs.
  [[nodiscard]] std::size_t rules() const { return rules_.size(); }

 private:
  struct Checks {
    std::size_t first = 0;  // in checks_
    std::size_t count = 0;
    bool never = false;  // a rule fails whatever the problem is
  };
  // How a rule ended that was filled in.
  struct Filled {
    bool never = false;
    std::optional<std::uint32_t> rule;  // none where it always holds
  };
  Filled fill_in(std::size_t rule, std::span<const std::int32_t> words);

  std::shared_ptr<const CompiledSpace> space_;
  Hardware hardware_;
  std::vector<std::optional<std::int64_t>> fields_;
  std::vector<Expression> rules_;
  std::vector<std::uint32_t> checks_;  // rules, those of one config after those of another
  std::vector<Checks> configs_;
  // By rule of the space and the values of its parameters: many configs have the same.
  std::map<std::pair<std::size_t, std::vector<std::int32_t>>, Filled> filled_;
};

}  // namespace foretune
