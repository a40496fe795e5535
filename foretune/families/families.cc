#include "foretune/families/families.h"

#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"
#include "foretune/families/cublaslt/cublaslt.h"
#include "foretune/families/load_recorded.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/families/null/null.h"
#include "foretune/families/recorded/recorded.h"
#include "foretune/families/triton/triton.h"

namespace foretune {
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

constexpr auto kFamilies = std::to_array<FamilyEntry>({
    {"cpu-gemm", "matrix products on this CPU, with our own kernels", cpu_gemm_available,
     make_cpu_gemm},
    {.name = "cublaslt",
     .description = "matrix products by NVIDIA's cuBLASLt, with an algorithm of our choice",
     .available = cublaslt_available,
     .create = make_cublaslt,
     .on_device = true},
    {.name = "triton",
     .description = "matrix products by Triton's kernels, or by NVIDIA's library",
     .available = triton_available,
     .create = make_triton,
     .on_device = true},
    {.name = "recorded",
     .description = "replays the measurements of a data set file",
     .available = recorded_available,
     .create = load_recorded,
     .replays = true},
    {"null", "times by formula, faults on request: for tests without hardware", null_available,
     make_null},
    {"loop-nest", "loop nests on this CPU, compiled as a schedule says", loop_nest_available,
     make_loop_nest},
});

Result<const FamilyEntry*> find_entry(std::string_view name) {
  std::vector<std::string> names;
  for (const FamilyEntry& entry : kFamilies) {
    if (entry.name == name) {
      return &entry;
    }
    names.emplace_back(entry.name);
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

std::span<const FamilyEntry> families() { return kFamilies; }

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

std::span<const Problem> known_problems(const Family& family) { return recorded_problems(family); }

}  // namespace foretune
