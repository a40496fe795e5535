// Joint models: those that learned from several machines and pick for any, by its facts.
//
//   if (is_joint(model)) {
//     adapt_to_machine(model, this_machine_for(model));
//   }
//
// Selector::open() does so. Thread safety: free functions without state.
#pragma once

#include <cstdint>

#include "foretune/hardware/hardware.h"
#include "foretune/model/model_file.h"

namespace foretune {

[[nodiscard]] inline bool is_joint(const Model& model) { return !model.machines.empty(); }

// Returns true when measurements of the machine with this digest were among the training data.
bool learned_from(const Model& model, std::uint64_t machine);

// Makes a joint model pick for `machine`. It drops the distilled model unless that learned the
// picks for hardware of the same numbers.
void adapt_to_machine(Model& model, const Fingerprint& machine);

// Returns the facts of this machine for a joint model of CPUs. Peaks are not measured: they are
// those of the most similar machine of the training data. For a model of GPUs it returns
// model.fingerprint.
Fingerprint this_machine_for(const Model& model);

}  // namespace foretune
