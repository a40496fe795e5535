#include "foretune/workflow/output.h"

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/measure/dataset_header.h"

namespace foretune::workflow {

Result<OutputPaths> output_paths(const std::string& output, const Invocation& invocation) {
  if (output.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--output is empty");
  }
  OutputPaths paths;
  const std::filesystem::path path(output);
  FORETUNE_TRY(paths.format, parse_exchange_format(invocation.format));
  paths.journal = path;
  paths.journal.replace_extension(".ftd");
  if (paths.format == ExchangeFormat::kForetune) {
    if (path.extension() != ".ftd" && !path.extension().empty()) {
      return fail(ErrorCode::kInvalidArgument, "--output ", output,
                  " is not a .ftd file; to write it as well, say --format csv, json or msgpack");
    }
    return paths;
  }
  paths.exported = path;
  if (path.extension() == ".ftd" || path.extension().empty()) {
    paths.exported->replace_extension(concat(".", to_string(paths.format)));
  }
  return paths;
}

Status refuse_existing(const std::string& path, bool overwrite) {
  if (!overwrite && std::filesystem::exists(path)) {
    return fail(ErrorCode::kInvalidArgument, path, " exists; --overwrite replaces it");
  }
  return {};
}

DatasetHeader dataset_header(const FamilyInfo& info, DatasetRole role,
                             const Invocation& invocation) {
  DatasetHeader header = header_of(info);
  header.role = role;
  header.seed = invocation.seed;
  header.created_by = invocation.command_line;
  return header;
}

Result<std::unique_ptr<JournalWriter>> open_journal(const std::filesystem::path& path,
                                                    const DatasetHeader& header,
                                                    const Invocation& invocation) {
  if (path.has_parent_path()) {
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
  }
  FORETUNE_TRY(auto journal, JournalWriter::open(path, header));
  if (journal->recovered_bytes() > 0) {
    invocation.warn(concat(path.string(), " ended in a torn record of ",
                           count_of(journal->recovered_bytes(), "byte"), ", which was cut off"));
  }
  return journal;
}

std::vector<std::pair<std::string, std::string>> machine_facts(const Fingerprint& fingerprint) {
  return {{"device", fingerprint.device},
          {"isa", fingerprint.isa},
          {"system", fingerprint.system},
          {"hardware", fingerprint.hardware.text()}};
}

}  // namespace foretune::workflow
