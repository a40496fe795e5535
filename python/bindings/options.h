// The options of the library's use cases (foretune/workflow/options.h) as keywords.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>
#include <vector>

#include "foretune/workflow/options.h"
#include "python/bindings/bindings.h"

namespace foretune::python {

// Values by the option's name, written as on the command line.
using OptionTexts = std::map<std::string, std::vector<std::string>>;

// Sets the options of `arguments`, which visit() declares. Raises what set_option() and
// check_effects() refuse.
template <class Visit>
void set_options(const Visit& visit, const OptionTexts& texts) {
  workflow::OptionList list;
  visit(list);
  for (const auto& [name, values] : texts) {
    checked(workflow::set_option(list, name, values));
  }
  checked(workflow::check_effects(list));
}

// Returns a dictionary for each option: "name", "kind" ("switch", "int", "float", "str" or "list"),
// "help", "default" (text, empty without one), "choices", "value" and "section".
nb::list describe_options(const workflow::OptionList& list);

}  // namespace foretune::python
