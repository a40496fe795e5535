// Reads the part of a family's file that describes problems and configs: fields, parameters and
// rules. Part of the reader (command_file.h).
// Internal to the module. Thread safety: free functions without state.
#pragma once

#include "foretune/base/result.h"
#include "foretune/families/command/command_spec.h"
#include "foretune/families/command/toml_section.h"

namespace foretune::command_internal {

// Each fills its part of `spec` from the whole document. Errors: kCorrupt. Rules are
// checked against all the rest, so they come last.
Status read_problem(const TomlSection& root, CommandSpec& spec);
Status read_parameters(const TomlSection& root, CommandSpec& spec);
Status read_rules(const TomlSection& root, CommandSpec& spec);

// A word of a-z, 0-9 and _ that begins with a letter, as names of fields and parameters are.
bool is_name(std::string_view text);

}  // namespace foretune::command_internal
