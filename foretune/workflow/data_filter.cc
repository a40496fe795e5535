#include "foretune/workflow/data_filter.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/hardware/hardware.h"
#include "foretune/interop/ck/ck_engine.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/ck_words.h"

namespace foretune::workflow {
namespace {

bool has_text(const Problem& problem, std::string_view field, std::string_view text) {
  const auto at = problem.schema().find(field);
  return at && problem.field_text(*at) == text;
}

// True for "gemm" or "conv", for the label of the field op, and for composable_kernel's names:
// "gemm_universal", "bwd_data", "grouped_conv", "grouped_conv_bwd_data".
bool has_operation(const Problem& problem, std::string_view op) {
  if (op == problem.schema().name || has_text(problem, "op", our_label("op", op))) {
    return true;
  }
  const auto named = parse_ck_operation(op);
  return named && named->type == problem.type() &&
         (named->label.empty() || has_text(problem, "op", named->label));
}

// StreamK's kernels compute the same problems as others, but have other configs.
bool may_be_kernels_of(const ConfigSchema& schema, std::string_view op) {
  const std::string_view streamk = ck_operation(ck_gemm_streamk_schema());
  return op == streamk || op == ck_operation(ck_gemm_schema())
             ? (schema == ck_gemm_streamk_schema()) == (op == streamk)
             : true;
}

// True for a word of the instruction sets, a name of the device, and the machine's digest.
bool is_of(const Fingerprint& device, std::string_view arch) {
  const auto known = known_device(arch);
  if (device.device == arch || hex_text(device.digest()) == arch ||
      (known && known->device == device.device)) {
    return true;
  }
  const std::vector<std::string_view> words = split(device.isa, ' ');
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return word == arch || word.substr(0, word.find(':')) == arch;
  });
}

// Returns the measurements of the machines that the name fits.
Dataset of_arch(Dataset dataset, std::string_view arch) {
  Result<std::vector<Fingerprint>> machines = dataset.machines();
  if (!machines) {
    machines = std::vector{dataset.header().fingerprint};
  }
  const std::size_t all = machines->size();
  std::erase_if(*machines, [&](const Fingerprint& machine) { return !is_of(machine, arch); });
  if (machines->size() == all) {
    return dataset;
  }
  std::optional<Dataset> out;
  for (const Fingerprint& machine : *machines) {
    const Dataset part = dataset.of_machine(machine);
    if (!out) {
      out = part;
    } else if (const Status merged = out->merge(part); !merged) {
      FORETUNE_CHECK(false);  // parts of one data set fit each other
    }
  }
  return out ? *std::move(out) : Dataset(dataset.header());
}

}  // namespace

void DataFilter::visit(OptionList& list) {
  list.add("op", op, "NAME",
           "learn from problems of this operation alone: gemm, conv, a label of their field op, or "
           "composable_kernel's name, as grouped_conv_forward")
      .also("operation")
      .accept({"direction"});
  list.add("dtype", dtype, "TYPE",
           "learn from problems of this data type alone: bf16, f8e4m3, or composable_kernel's "
           "name, as fp8");
  list.add(
      "arch", arch, "NAME",
      "learn from the measurements of this device alone: gfx950, h200, an instruction set of a "
      "CPU, or the digest of a machine, as inspect shows it");
}

Dataset DataFilter::apply(Dataset dataset) const {
  if (takes_all()) {
    return dataset;
  }
  if (!may_be_kernels_of(dataset.header().config_schema, op)) {
    return Dataset(dataset.header());
  }
  if (!arch.empty()) {
    dataset = of_arch(std::move(dataset), arch);
  }
  std::vector<bool> keep;
  for (const Problem& problem : dataset.problems()) {
    keep.push_back((op.empty() || has_operation(problem, op)) &&
                   (dtype.empty() || has_text(problem, "dtype", our_label("dtype", dtype))));
  }
  return dataset.filter_problems(keep);
}

Result<Dataset> DataFilter::apply_to_all(Dataset dataset) const {
  Dataset out = apply(std::move(dataset));
  if (!takes_all() && out.size() == 0) {
    std::string what;
    for (const auto& [name, value] : {std::pair<std::string_view, const std::string&>{"op", op},
                                      {"dtype", dtype},
                                      {"arch", arch}}) {
      what += value.empty() ? std::string() : concat(" --", name, " ", value);
    }
    return fail(ErrorCode::kNotFound, "no measurement passes", what);
  }
  return out;
}

}  // namespace foretune::workflow
