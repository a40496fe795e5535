// Where the programs lie that are linked to libtorch. Thread safety: a free function.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace foretune::workflow {

// Returns the path of a program beside our own one, as installed or as built: as built it lies in a
// folder named after it, without "foretune-" and with underscores. The path need not exist.
std::filesystem::path trainer_program(std::string_view name, const std::string& own_path);

}  // namespace foretune::workflow
