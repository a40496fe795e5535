#include "foretune/workflow/outside_program.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "foretune/base/child_process.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"

namespace foretune::workflow {
namespace {

constexpr std::string_view kParquetProgram = "foretune-parquet";

// A folder of our own below that for temporary files, which goes with everything in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::error_code error;
    const std::filesystem::path base = std::filesystem::temp_directory_path(error);
    std::string pattern = (base / "foretune-XXXXXX").string();
    if (error || ::mkdtemp(pattern.data()) == nullptr) {
      return fail(ErrorCode::kIo, "no folder for temporary files can be made below ",
                  base.string());
    }
    return TemporaryFolder(std::move(pattern));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, std::filesystem::path())) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Returns the program beside ours, or the one on the PATH.
std::string parquet_program(const Invocation& invocation) {
  if (!invocation.worker_command.empty()) {
    const std::filesystem::path beside =
        std::filesystem::path(invocation.worker_command.front()).parent_path() / kParquetProgram;
    std::error_code error;
    if (std::filesystem::exists(beside, error)) {
      return beside.string();
    }
  }
  return std::string(kParquetProgram);
}

Status run_parquet(const std::filesystem::path& file, const std::vector<std::string>& arguments,
                   const Invocation& invocation) {
  std::vector<std::string> command{parquet_program(invocation)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Result<std::string> printed = run_program(command);
  if (printed) {
    return {};
  }
  if (printed.error().code == ErrorCode::kNotFound) {
    return fail(
        ErrorCode::kUnsupported, file.string(), ": a Parquet file; ", kParquetProgram,
        " of the Python package (pip install foretune[parquet]) reads and writes CK Tile's, "
        "and it is not on the PATH");
  }
  return fail(ErrorCode::kCorrupt, file.string(), ": ", printed.error().message);
}

}  // namespace

Result<std::string> run_program(const std::vector<std::string>& command) {
  constexpr std::chrono::minutes kLimit{10};
  auto child = ChildProcess::start(command);
  if (!child) {
    return fail(ErrorCode::kNotFound, "there is no program ", command.front());
  }
  std::vector<std::byte> output;
  const ChildProcess::Deadline deadline = std::chrono::steady_clock::now() + kLimit;
  ChildProcess::Read read = ChildProcess::Read::kData;
  while (read == ChildProcess::Read::kData) {
    read = (*child)->receive(output, deadline);
  }
  const std::string end = (*child)->obituary();
  if (read != ChildProcess::Read::kEnded || !end.starts_with("ended with exit code 0")) {
    return fail(ErrorCode::kIo, command.front(), " ", end);
  }
  return std::string(reinterpret_cast<const char*>(output.data()), output.size());
}

bool is_parquet(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic(4, '\0');
  file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return file && magic == "PAR1";
}

Result<Dataset> read_parquet(const std::filesystem::path& path, const ParquetOptions& options,
                             const Invocation& invocation) {
  FORETUNE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
  const std::filesystem::path converted = folder.path() / "data.ftd";
  std::vector<std::string> arguments{"import"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {path.string(), converted.string()});
  FORETUNE_TRY_STATUS(run_parquet(path, arguments, invocation));
  return read_dataset(converted);
}

Status write_parquet(const Dataset& dataset, const std::filesystem::path& path,
                     const Invocation& invocation) {
  FORETUNE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
  const std::filesystem::path data = folder.path() / "data.ftd";
  FORETUNE_TRY_STATUS(write_dataset(dataset, data));
  return run_parquet(path, {"export", "--overwrite", data.string(), path.string()}, invocation);
}

}  // namespace foretune::workflow
