// The options of a use case: one struct whose visit() names every field once. The command line and
// its help, shell completion, the Python keywords, their stub and the reference pages all come from
// that list; an unknown option is an error.
//
//   struct PredictOptions {
//     std::string model;
//     std::int64_t top = 5;
//     bool measure = false;
//     std::int64_t rounds = 15;
//     void visit(OptionList& list) {
//       list.add("model", model, "FILE", "model file").require();
//       list.add("top", top, "N", "configs to list");
//       list.add_switch("measure", measure, "time them");
//       list.add("rounds", rounds, "N", "of timing them")
//           .only({"with --measure", [this] { return measure; }});
//     }
//   };
//
// Thread safety: one thread at a time may use a list.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::workflow {

// When an option has an effect: `phrase` says it ("with --active"), `holds` decides it once all
// options have their values. The default one always holds.
struct Condition {
  std::string phrase;
  std::function<bool()> holds;
};

struct Option {
  using Target =
      std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                   std::optional<std::int64_t>*, std::optional<double>*>;
  std::string name;                         // without the dashes
  std::string other_name;                   // alias; may be empty
  std::vector<std::string> accepted_names;  // further aliases, which no help lists
  char letter = '\0';                       // short name, as in -o; '\0' for none
  std::string value_name;                   // "N", "FILE"; empty for a switch
  std::string help;
  Target target;
  std::string default_text;  // shown in help; empty when there is none
  std::vector<std::string> choices;
  bool required = false;
  bool positional = false;
  bool has_flag = false;  // a positional that may also be given with its name before it
  bool hidden = false;
  bool one_by_one = false;  // a list of which each value has the option's name before it
  bool given = false;       // the user gave it
  std::string section;      // heading in the help, with its condition; empty for "Options"
  std::vector<Condition> conditions;  // giving the option when one does not hold is an error
  // Why the option has no effect at all, though other programs' command lines have it; else empty.
  std::string unused_because;
  std::optional<std::int64_t> minimum;
  std::optional<std::int64_t> maximum;

  Option& require() {
    required = true;
    return *this;
  }
  Option& choose(std::vector<std::string> values) {
    choices = std::move(values);
    return *this;
  }
  Option& at_least(std::int64_t value) {
    minimum = value;
    return *this;
  }
  Option& at_most(std::int64_t value) {
    maximum = value;
    return *this;
  }
  Option& also(std::string name_too) {
    other_name = std::move(name_too);
    return *this;
  }
  // Names that other programs' command lines have.
  Option& accept(std::vector<std::string> names) {
    accepted_names = std::move(names);
    return *this;
  }
  Option& short_as(char one_letter) {
    letter = one_letter;
    return *this;
  }
  Option& also_by_name() {
    has_flag = true;
    return *this;
  }
  Option& repeat() {
    one_by_one = true;
    return *this;
  }
  Option& hide() {
    hidden = true;
    return *this;
  }
  Option& only(Condition when) {
    conditions.push_back(std::move(when));
    return *this;
  }
  Option& unused(std::string because) {
    unused_because = std::move(because);
    return *this;
  }
  [[nodiscard]] bool is_switch() const { return std::holds_alternative<bool*>(target); }
};

class OptionList {
 public:
  Option& add(std::string name, Option::Target target, std::string value_name, std::string help);
  Option& add_switch(std::string name, bool& target, std::string help) {
    return add(std::move(name), &target, "", std::move(help));
  }
  Option& add(std::string name, std::int64_t& target, std::string value_name, std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, double& target, std::string value_name, std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, std::string& target, std::string value_name, std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, std::vector<std::string>& target, std::string value_name,
              std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, std::optional<std::int64_t>& target, std::string value_name,
              std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, std::optional<double>& target, std::string value_name,
              std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  // A value without a name, in order of declaration; a list takes all that remain.
  template <class T>
  Option& add_positional(std::string name, T& target, std::string help) {
    Option& option = add(std::move(name), target, "", std::move(help));
    option.positional = true;
    return option;
  }
  // Starts a section: the next options are listed below the title and have an effect only when
  // `condition` holds.
  void section(std::string title, Condition condition = {});

  [[nodiscard]] const std::deque<Option>& options() const { return options_; }
  [[nodiscard]] std::deque<Option>& options() { return options_; }

 private:
  std::deque<Option> options_;
  std::string section_;
  Condition condition_;
};

// Gives the option called `name` these values, one unless it is a list, as the command line would.
// Errors: kInvalidArgument for an unknown name (with the nearest) and for values without sense.
Status set_option(OptionList& list, std::string_view name, const std::vector<std::string>& values);
// Returns the values of an option as text; set_option() with them gives the same value again.
std::vector<std::string> option_texts(const Option& option);
// Checks conditions once all options have their values. Errors: kInvalidArgument for given options
// without an effect.
Status check_effects(const OptionList& list);
// Returns that error for options whose effect a list cannot check: `names` with their dashes.
tl::unexpected<Error> without_effect(const std::vector<std::string>& names,
                                     std::string_view phrase);

// Gives the option these values. Errors: kInvalidArgument for values that make no sense.
Status assign_option(const Option& option, const std::vector<std::string>& values);

}  // namespace foretune::workflow
