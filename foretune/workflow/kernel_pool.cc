#include "foretune/workflow/kernel_pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <system_error>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_engine.h"
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
  Dataset part = filter.data.apply(dataset);
  return part.problems().empty() ? std::nullopt : std::optional<Dataset>(std::move(part));
}

// Returns those of the names of which `parse` makes something. A remark counts the others. Errors:
// kNotFound when there is none.
template <class Parse>
Result<std::vector<std::string>> fitting_names(const std::vector<std::string>& names,
                                               std::string_view purpose, const Parse& parse,
                                               const Invocation& invocation) {
  std::vector<std::string> out;
  std::string reason;
  for (const std::string& name : names) {
    if (const auto parsed = parse(name)) {
      out.push_back(name);
    } else if (reason.empty()) {
      reason = parsed.error().message;
    }
  }
  if (out.empty()) {
    return fail(ErrorCode::kNotFound, "none of ", count_of(names.size(), "name"),
                " is a kernel for ", purpose, reason.empty() ? "" : ": ", reason);
  }
  if (out.size() < names.size()) {
    invocation.remark(
        concat(names.size() - out.size(), " of ", count_of(names.size(), "name"),
               word_for(names.size() - out.size(), " is no kernel for ", " are no kernels for "),
               purpose, ": ", reason));
  }
  return out;
}

// True when a problem has the value in the field, or no problem has the field.
bool has_value(const Dataset& dataset, std::string_view field, std::int64_t value) {
  return dataset.problems().empty() ||
         std::any_of(dataset.problems().begin(), dataset.problems().end(),
                     [&](const Problem& problem) {
                       const auto at = problem.schema().find(field);
                       return !at || problem.field(*at) == value;
                     });
}

Status check_kernel(const CkKernel& kernel, std::string_view name, const Dataset& dataset) {
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::kMismatch, "no problem of the data set has the ", what, " of kernel ",
                quoted(name, 200));
  };
  if (!has_value(dataset, "dtype", static_cast<std::int64_t>(kernel.dtype))) {
    return refuse("data type");
  }
  if (kernel.layout && !has_value(dataset, "layout", static_cast<std::int64_t>(*kernel.layout))) {
    return refuse("layout");
  }
  // Variants are numbered as the operations of a convolution are.
  if (kernel.variant && !has_value(dataset, "op", static_cast<std::int64_t>(*kernel.variant))) {
    return refuse("direction");
  }
  return {};
}

Result<Config> config_of_kernel(const std::string& name, const Dataset& dataset) {
  const ConfigSchema& schema = dataset.header().config_schema;
  if (ck_operation(schema).empty()) {
    auto config = parse_config(schema, name);
    return config ? std::move(config)
                  : fail_because(config.error(), "candidate ", quoted(name, 200));
  }
  FORETUNE_TRY(CkKernel kernel, parse_ck_kernel(schema, name));
  FORETUNE_TRY_STATUS(check_kernel(kernel, name, dataset));
  return std::move(kernel.config);
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
  const auto parse = [&](const std::string& name) { return models.parse_kernel(name); };
  return fitting_names(names, "the models", parse, invocation);
}

Result<std::vector<Config>> configs_of_kernels(std::span<const std::string> names,
                                               const Dataset& dataset) {
  std::vector<Config> out;
  for (const std::string& name : names) {
    FORETUNE_TRY(out.emplace_back(), config_of_kernel(name, dataset));
  }
  return out;
}

Result<std::vector<Config>> read_candidates(const std::filesystem::path& path,
                                            const Dataset& dataset, const Invocation& invocation) {
  FORETUNE_TRY(std::vector<std::string> names, read_kernel_names(path));
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const auto parse = [&](const std::string& name) { return config_of_kernel(name, dataset); };
    FORETUNE_TRY(names, fitting_names(names, "the data", parse, invocation));
  }
  return configs_of_kernels(names, dataset);
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
    invocation.remark(concat("read ", file.string(), ": ", count_of(part->size(), "measurement"),
                             " of ", count_of(part->problems().size(), "problem")));
    if (!all) {
      all = std::move(part);
    } else if (const Status merged = all->merge(*part); !merged) {
      return fail_because(merged.error(), file.string());
    }
  }
  return all;
}

}  // namespace foretune::workflow
