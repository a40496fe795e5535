// The reader of a family's TOML file. All keys are described in docs/guides/extending/command.md.
//
//   FORETUNE_TRY(const auto spec, parse_command_file(text, "flags.toml", folder));
//
// Internal to the module. Thread safety: free functions without state. Cost: linear in the text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/families/command/command_spec.h"

namespace foretune::command_internal {

// `file` is how errors name it, `folder` what {source} stands for. Errors: kCorrupt for what is no
// TOML or makes no sense: one sentence with file, line and key.
Result<std::shared_ptr<const CommandSpec>> parse_command_file(std::string_view text,
                                                              const std::string& file,
                                                              const std::string& folder);

}  // namespace foretune::command_internal
