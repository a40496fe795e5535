// The family "network-cpu": a neural network on this CPU, whose layers may compute less. A config
// has a knob for each convolution and product with weights (network_space.h); its time is that of a
// call with the problem's images, and the metrics qos_tune and qos_test are its quality on those
// for tuning and for testing.
//
// The parameter knobs=CATALOGUE names the knobs that are offered (graph/run/knob.h; "default"
// unless given), tuning_images=N how many images judge a config (all unless given), quality=NAME by
// what (graph/quality.h; the accuracy unless given), threads=N the threads.
//
// Thread safety: as Family.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/family/family.h"

namespace foretune {

// Errors: kInvalidArgument for a parameter that makes no sense and for more threads than cores;
// those of opening payload folders.
Result<std::unique_ptr<Family>> create_network_cpu(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& network_cpu_family();

}  // namespace foretune
