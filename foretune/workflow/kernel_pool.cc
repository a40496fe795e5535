#include "foretune/workflow/kernel_pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <system_error>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/ck_words.h"
#include "foretune/interop/tables/dataset_folder.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/known_spaces.h"
#include "foretune/space/parametric_space.h"
#include "foretune/workflow/datasets.h"

namespace foretune::workflow {
namespace {

// Larger spaces are searched, not listed.
constexpr std::uint64_t kMaxListed = 100000;

Result<std::vector<std::string>> names_in_folder(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().stem().string();
    if (entry->is_directory(error) || name.empty() || name.front() == '.') {
      continue;
    }
    constexpr std::string_view kLibrary = "lib";
    if (name.starts_with(kLibrary) && entry->path().extension() == ".so") {
      name.erase(0, kLibrary.size());
    }
    names.push_back(std::move(name));
  }
  if (error) {
    return fail(ErrorCode::kIo, "cannot list ", folder.string(), ": ", error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Calls `use` with every combination of values.
template <class Use>
void for_each_combination(const std::vector<std::vector<std::int32_t>>& domains, const Use& use) {
  Config::Words words(domains.size());
  std::vector<std::size_t> places(domains.size(), 0);
  for (;;) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
      words[i] = domains[i][places[i]];
    }
    use(words);
    std::size_t next = domains.size();
    while (next > 0 && ++places[next - 1] == domains[next - 1].size()) {
      places[--next] = 0;
    }
    if (next == 0) {
      return;
    }
  }
}

bool has_label(const Problem& problem, std::string_view field, const std::string& label) {
  const auto index = problem.schema().find(field);
  return label.empty() || (index && problem.field_text(*index) == label);
}

// "gfx950:sramecc+:xnack-" is a gfx950.
std::string_view without_flags(std::string_view isa) { return isa.substr(0, isa.find(':')); }

// Returns nothing when no problem matches.
std::optional<Dataset> matching_part(const Dataset& dataset, const PoolFilter& filter) {
  const DatasetHeader& header = dataset.header();
  const std::string_view isa = without_flags(header.fingerprint.isa);
  if ((header.role == DatasetRole::kValidation && !filter.takes_validation) ||
      (filter.schema != nullptr && header.config_schema != *filter.schema) ||
      (!filter.arch.empty() && !isa.empty() && isa != without_flags(filter.arch))) {
    return std::nullopt;
  }
  std::vector<bool> keep;
  for (const Problem& problem : dataset.problems()) {
    keep.push_back(has_label(problem, "dtype", filter.dtype) &&
                   has_label(problem, "op", filter.operation));
  }
  if (std::find(keep.begin(), keep.end(), true) == keep.end()) {
    return std::nullopt;
  }
  return std::find(keep.begin(), keep.end(), false) == keep.end() ? dataset
                                                                  : dataset.filter_problems(keep);
}

}  // namespace

Result<std::vector<std::string>> read_kernel_names(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return names_in_folder(path);
  }
  FORETUNE_TRY(const std::string text, read_text_file(path));
  std::vector<std::string> names;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view name = trim(line.substr(0, line.find('|')));
    if (!name.empty() && name.front() != '#') {
      names.emplace_back(name);
    }
  }
  return names;
}

Result<std::vector<std::string>> kernels_for(const ForeignModels& models,
                                             const std::vector<std::string>& names,
                                             const Invocation& invocation) {
  std::vector<std::string> out;
  std::string reason;
  for (const std::string& name : names) {
    if (const auto parsed = models.parse_kernel(name)) {
      out.push_back(name);
    } else if (reason.empty()) {
      reason = parsed.error().message;
    }
  }
  if (out.empty()) {
    return fail(ErrorCode::kNotFound, "none of ", names.size(), " names is a kernel for the models",
                reason.empty() ? "" : ": ", reason);
  }
  if (out.size() < names.size()) {
    invocation.remark(concat(names.size() - out.size(), " of ", names.size(),
                             " names are no kernels for the models: ", reason));
  }
  return out;
}

std::vector<std::string> known_kernels(const ForeignModels& models) {
  std::vector<std::string> names;
  const auto dtype = parse_ck_dtype(models.directory().dtype);
  auto definition = known_space_of(models.config_schema(), models.fingerprint().isa);
  if (models.problem_type() != kConvProblem || !dtype || !definition) {
    return names;
  }
  std::uint64_t combinations = 1;
  for (const std::vector<std::int32_t>& values : definition->domains) {
    combinations *= values.size();
  }
  const std::vector<std::vector<std::int32_t>> domains = definition->domains;
  const auto space = CompiledSpace::create(*std::move(definition));
  if (!space || domains.empty() || combinations == 0 || combinations > kMaxListed) {
    return names;
  }
  // Not the numbers that the models were trained with, which may be wrong.
  const auto device = known_device(models.directory().arch);
  const Hardware hardware = device ? device->hardware : Hardware();
  const std::string_view label = our_label("op", models.directory().direction);
  const ConvOperation operation = parse_conv_operation(label).value_or(ConvOperation::kForward);
  for_each_combination(domains, [&](const Config::Words& words) {
    if ((*space)->is_legal_config(words.view(), hardware)) {
      const auto name =
          ck_conv_name({.variant = static_cast<CkConvVariant>(operation),
                        .dtype = *dtype,
                        .spatial_dims = 2,
                        .config = {.schema = models.config_schema().id(), .words = words}});
      if (name) {
        names.push_back(*name);
      }
    }
  });
  return names;
}

Result<std::optional<Dataset>> read_pool_data(const std::filesystem::path& path,
                                              const PoolFilter& filter,
                                              const Invocation& invocation) {
  FORETUNE_TRY(const DatasetFiles files, find_datasets(path));
  std::optional<Dataset> all;
  for (const std::filesystem::path& file : files.datasets) {
    FORETUNE_TRY(const Dataset dataset, import_any(file, nullptr, invocation));
    std::optional<Dataset> part = matching_part(dataset, filter);
    if (!part) {
      continue;
    }
    invocation.remark(concat("read ", file.string(), ": ", count_text(part->size()),
                             " measurements of ", count_text(part->problems().size()),
                             " problems"));
    if (!all) {
      all = std::move(part);
    } else if (const Status merged = all->merge(*part); !merged) {
      return fail_because(merged.error(), file.string());
    }
  }
  return all;
}

}  // namespace foretune::workflow
