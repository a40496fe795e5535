// A family of kernels that are programs: a TOML file names the parameters, how to build and run a
// config, and where its metrics stand. No C++ is needed (docs/guides/extending/command.md).
//
//   FORETUNE_TRY(const CommandFamilyParts parts, read_command_family("flags.toml"));
//   FORETUNE_TRY_STATUS(register_family(parts.entry));
//
// families.h has register_command_family(), which adds all of it. A program that crashes, hangs or
// prints a wrong result is an outcome of its config; it runs in a process of its own, so nothing
// else is harmed. The commands of a file run with the rights of whoever reads it.
// Thread safety: reading is a free function; the family's const members may be called at once.
// Cost: reading compiles the rules; every run starts a process.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/config.h"

namespace foretune {

// The parts that a file defines, to be registered in this order: type, table of features, family.
struct CommandFamilyParts {
  // Points into `keep`, which has to stay for as long as the type does.
  ProblemTypeInfo problem_type;
  ConfigSchema config_schema;
  std::string feature_table;  // the name that the family's info gives
  FamilyEntry entry;          // creates families once the type is registered
  std::shared_ptr<const void> keep;
};

// Errors: kNotFound and kIo of the file, kCorrupt where it is no TOML or a key makes no sense: one
// sentence with file, line and key.
Result<CommandFamilyParts> read_command_family(const std::filesystem::path& path);

// The problems that a family of commands lists, since it draws none; empty for every other family.
// Valid as long as the family.
std::span<const Problem> command_problems(const Family& family);

}  // namespace foretune
