#include "foretune/families/families.h"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/registry.h"
#include "foretune/base/text.h"
#include "foretune/families/command/command_family.h"
#include "foretune/families/load_recorded.h"
#include "foretune/families/recorded/recorded.h"
#include "foretune/features/feature_table.h"
#include "foretune/features/plain_table.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

#define FORETUNE_FAMILY(name) const FamilyEntry& name##_family();
#include "foretune/families/families.inc"
#undef FORETUNE_FAMILY

namespace {

Support recorded_available(const FamilyOptions& options) {
  if (options.data_path.empty()) {
    return Support::no("it replays a data set, and none was named");
  }
  std::error_code error;
  if (!std::filesystem::exists(options.data_path, error)) {
    return Support::no("there is no file ", options.data_path);
  }
  return Support::yes();
}

Result<std::unique_ptr<Family>> load_recorded(const FamilyOptions& options) {
  std::string device;
  for (const auto& [key, value] : options.parameters) {
    if (key != "device") {
      return fail(ErrorCode::kInvalidArgument, "recorded has no option '", key,
                  "'; it has: device");
    }
    device = value;
  }
  FORETUNE_TRY(RecordedTable table, load_recorded_table(options.data_path, device));
  return make_recorded(std::move(table));
}

Registry<FamilyEntry>& table() {
#define FORETUNE_FAMILY(name) &name##_family(),
  static Registry<FamilyEntry> families({
#include "foretune/families/families.inc"
  });
#undef FORETUNE_FAMILY
  return families;
}

Result<const FamilyEntry*> find_entry(std::string_view name) {
  std::vector<std::string> names;
  for (const FamilyEntry* const entry : families()) {
    if (entry->name == name) {
      return entry;
    }
    names.push_back(entry->name);
  }
  const std::string near = nearest_word(name, names);
  return fail(ErrorCode::kNotFound, "there is no family '", name, "'",
              near.empty() ? concat("; there are ", join(names, ", "))
                           : concat("; did you mean '", near, "'?"));
}

Result<std::unique_ptr<Family>> create_of(const FamilyEntry& entry, const FamilyOptions& options) {
  if (options.build_jobs > 0 && !entry.builds) {
    return fail(ErrorCode::kInvalidArgument, "the family ", entry.name,
                " builds nothing, so there are no build jobs to share out");
  }
  if (!options.data_path.empty() && !entry.replays) {
    return fail(ErrorCode::kInvalidArgument, "the family ", entry.name,
                " replays nothing, so it needs no data");
  }
  FORETUNE_TRY(std::unique_ptr<Family> family, entry.create(options));
  const int most = family->info().max_threads;
  if (options.threads > 0 && most != options.threads) {
    return fail(ErrorCode::kInvalidArgument, "kernels of the family ", entry.name, " use ", most,
                most == 1 ? " thread" : " threads", ", which cannot be changed to ",
                options.threads);
  }
  return family;
}

}  // namespace

// Its rows come from a data set, which no family reads itself.
const FamilyEntry& recorded_family() {
  static const FamilyEntry entry{.name = "recorded",
                                 .description = "replays the measurements of a data set file",
                                 .available = recorded_available,
                                 .create = load_recorded,
                                 .replays = true};
  return entry;
}

std::span<const FamilyEntry* const> families() { return table().rows(); }

Status register_family(FamilyEntry entry) {
  const std::string name = entry.name;
  return table().add(std::make_unique<FamilyEntry>(std::move(entry)),
                     [&](const FamilyEntry& known) { return known.name == name; })
             ? Status()
             : fail(ErrorCode::kInvalidArgument, "there is a family ", quoted(name, 40),
                    " already");
}

Status register_command_family(const std::filesystem::path& path) {
  FORETUNE_TRY(CommandFamilyParts parts, read_command_family(path));
  const std::string& name = parts.entry.name;
  const auto is_taken = [&](const FamilyEntry* entry) { return entry->name == name; };
  if (std::any_of(families().begin(), families().end(), is_taken)) {
    return fail(ErrorCode::kInvalidArgument, path.string(), ": there is a family ", name,
                " already");
  }
  // Rows of the tables stay for ever, and with them what they point to.
  static std::mutex mutex;
  static std::deque<std::shared_ptr<const void>> kept;
  {
    const std::lock_guard lock(mutex);
    kept.push_back(parts.keep);
  }
  const auto in_file = [&](const Status& status) {
    return status ? status : Status(fail_because(status.error(), path.string()));
  };
  FORETUNE_TRY_STATUS(in_file(register_problem_type(parts.problem_type)));
  FORETUNE_TRY_STATUS(in_file(register_feature_table(
      make_plain_table(parts.feature_table, parts.problem_type, parts.config_schema))));
  return in_file(register_family(std::move(parts.entry)));
}

Result<std::unique_ptr<Family>> create_family(std::string_view name, const FamilyOptions& options) {
  FORETUNE_TRY(const FamilyEntry* const entry, find_entry(name));
  if (const Support support = entry->available(options); !support) {
    return fail(ErrorCode::kUnsupported, "the family ", name,
                " is not available: ", support.reason());
  }
  return create_of(*entry, options);
}

Result<std::unique_ptr<Family>> create_detached_family(std::string_view name,
                                                       const FamilyOptions& options) {
  FORETUNE_TRY(const FamilyEntry* const entry, find_entry(name));
  return create_of(*entry, options);
}

std::span<const Problem> known_problems(const Family& family) {
  const std::span<const Problem> recorded = recorded_problems(family);
  return recorded.empty() ? command_problems(family) : recorded;
}

}  // namespace foretune
