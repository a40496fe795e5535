// Programs of others that a use case may need: rocminfo, which knows the GPU of this machine, and
// foretune-parquet of the Python package, since nothing here links Arrow.
// Thread safety: any thread may call these functions. Cost: that of the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/workflow/invocation.h"

namespace foretune::workflow {

// Runs a program of the PATH to its end and returns what it prints. Errors: kNotFound when there is
// no such program, kIo with its last words when it fails.
Result<std::string> run_program(const std::vector<std::string>& command);

// Returns true for a file that begins as Parquet does, whatever its name.
bool is_parquet(const std::filesystem::path& path);

// The facts of an import that foretune-parquet takes, each with its option: {"--arch", "gfx950"}.
using ParquetOptions = std::vector<std::string>;
// Errors: kUnsupported when the program is missing; kCorrupt with its last words.
Result<Dataset> read_parquet(const std::filesystem::path& path, const ParquetOptions& options,
                             const Invocation& invocation);
// Replaces an existing file.
Status write_parquet(const Dataset& dataset, const std::filesystem::path& path,
                     const Invocation& invocation);

}  // namespace foretune::workflow
