// The table of all families: the only place that knows them all. An absent family is a row that
// says why.
// Thread safety: rows are constant, and may be added at any time.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/problem.h"

namespace foretune {

// The families of this build, then those that were added.
std::span<const FamilyEntry* const> families();
// Adds a family for the rest of the process. Errors: kInvalidArgument for a name that is taken.
Status register_family(FamilyEntry entry);
// Reads the file of a family of commands (docs/guides/extending/command.md) and adds its problem
// type, feature table and family for the rest of the process:
//
//   FORETUNE_TRY_STATUS(register_command_family("examples/command/compiler_flags/flags.toml"));
//   FORETUNE_TRY(const auto family, create_family("compiler-flags", options));
//
// Errors: those of read_command_family(), and kInvalidArgument for names that are taken.
Status register_command_family(const std::filesystem::path& path);
// Errors: kNotFound for an unknown name (with the nearest one), kUnsupported with the reason,
// kInvalidArgument for build jobs of a family that builds nothing, data for one that replays none,
// and a number of threads that the family's kernels cannot be limited to.
Result<std::unique_ptr<Family>> create_family(std::string_view name, const FamilyOptions& options);
// The same without asking whether the family can run here: for its spaces and defaults.
Result<std::unique_ptr<Family>> create_detached_family(std::string_view name,
                                                       const FamilyOptions& options);
// The problems that a family is limited to (those a recorded one has data for, those that one of
// commands lists); empty when it takes any. Valid as long as the family.
std::span<const Problem> known_problems(const Family& family);

}  // namespace foretune
