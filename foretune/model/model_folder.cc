#include "foretune/model/model_folder.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/model/joint_model.h"

namespace foretune {
namespace {

// Returns what the model never saw of the problem: "operation backward_data"; empty for nothing.
std::string unseen_label(const Model& model, const Problem& problem) {
  if (!model.domain) {
    return {};
  }
  const ProblemSchema& schema = problem.schema();
  for (const ApplicabilityDomain::Label& label : model.domain->labels) {
    const auto value = static_cast<std::uint64_t>(problem.field(label.field));
    if (value >= 64 || (label.seen >> value & 1U) == 0) {
      const ProblemField& field = schema.fields[label.field];
      return concat(field.name, " ", value < field.labels.size() ? field.labels[value] : "?");
    }
  }
  return {};
}

// Returns how far the model's machine is from this one; nothing when its picks mean nothing here.
std::optional<int> machine_distance(const Fingerprint& trained, const Fingerprint& machine) {
  if (trained.digest() == machine.digest()) {
    return 0;
  }
  const auto value = [](const Fingerprint& of, HardwareValue wanted) {
    return static_cast<int>(of.hardware.get(wanted));
  };
  const int trained_bytes = value(trained, HardwareValue::kVectorBytes);
  const int bytes = value(machine, HardwareValue::kVectorBytes);
  const bool same_cores =
      value(trained, HardwareValue::kCores) == value(machine, HardwareValue::kCores);
  if (trained.device == machine.device && trained_bytes == bytes && same_cores) {
    return 1;
  }
  // The fastest config on two cores says little about sixteen, and a GPU's kernels say little about
  // another's. A CPU runs the kernels of narrower vectors.
  return bytes > 0 && trained_bytes > 0 && trained_bytes <= bytes && same_cores
             ? std::optional(2 + bytes - trained_bytes)
             : std::nullopt;
}

// Returns how far a model is from this machine; a joint one is for any machine of its kind.
std::optional<int> model_distance(const Model& model, const Fingerprint& machine) {
  if (!is_joint(model)) {
    return machine_distance(model.fingerprint, machine);
  }
  constexpr int kLearned = 1;    // behind the model of this machine alone
  constexpr int kOthers = 1000;  // behind all models of similar machines
  const auto is_gpu = [](const Fingerprint& of) {
    return of.hardware.get(HardwareValue::kVectorBytes) == 0;
  };
  if (learned_from(model, machine.digest())) {
    return kLearned;
  }
  return is_gpu(model.fingerprint) == is_gpu(machine) ? std::optional(kOthers) : std::nullopt;
}

}  // namespace

Result<ModelFolder> ModelFolder::open(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_regular_file(error) && is_model_file(at->path())) {
      paths.push_back(at->path());
    }
  }
  if (error) {
    return fail(ErrorCode::kIo, "cannot read the folder ", folder.string(), ": ", error.message());
  }
  std::sort(paths.begin(), paths.end());
  ModelFolder out;
  for (std::filesystem::path& path : paths) {
    Result<ModelParts> parts = read_model_parts(path);
    if (!parts) {
      return fail_because(parts.error(), path.string());
    }
    out.entries_.push_back({.path = std::move(path), .model = std::move(parts->model)});
  }
  if (out.entries_.empty()) {
    return fail(ErrorCode::kNotFound, "there is no model in ", folder.string());
  }
  return out;
}

std::vector<std::filesystem::path> ModelFolder::files() const {
  std::vector<std::filesystem::path> out;
  for (const Entry& entry : entries_) {
    out.push_back(entry.path);
  }
  return out;
}

Result<std::filesystem::path> ModelFolder::choose(const Problem& problem,
                                                  const Fingerprint& machine,
                                                  std::string_view family) const {
  const Entry* best = nullptr;
  int least = 0;
  std::string reasons;
  for (const Entry& entry : entries_) {
    const Model& model = entry.model;
    const auto refuse = [&](std::string_view reason) {
      reasons += concat("; ", entry.path.filename().string(), " ", reason);
    };
    if (model.problem_type != problem.type()) {
      refuse("is for other problems");
    } else if (!family.empty() && model.family != family) {
      refuse(concat("is for the family ", model.family));
    } else if (const std::string unseen = unseen_label(model, problem); !unseen.empty()) {
      refuse(concat("never saw ", unseen));
    } else if (const auto distance = model_distance(model, machine); !distance) {
      refuse(concat("is for ", model.fingerprint.device, " with ",
                    model.fingerprint.hardware.get(HardwareValue::kCores), " cores"));
    } else if (best == nullptr || *distance < least) {
      best = &entry;
      least = *distance;
    }
  }
  if (best == nullptr) {
    return fail(ErrorCode::kNotFound, "no model of the folder is for ", problem.text(), reasons);
  }
  return best->path;
}

}  // namespace foretune
