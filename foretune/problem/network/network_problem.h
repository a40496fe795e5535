// A network as a problem: the time of a call with some images, and the share of images that it
// classifies rightly.
//
//   network images=64 layers=22 payload=...
//   network images=64 payload=@resnet20.ftt      the file says the rest (payload_store.h)
//
// The payload is a task (graph/task.h): a network with the images that judge it. The group is the
// origin, so that variants of one network stay together. Thread safety: plain values.
#pragma once

#include <cstdint>

#include "foretune/problem/problem.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

inline constexpr ProblemType kNetworkProblem{4};  // in files: never renumber

// Positions of the fields.
enum class NetworkField : std::uint8_t {
  kImages,        // of a call
  kLayers,        // operations that have knobs
  kMultiplyAdds,  // of an image, in thousands
  kOrigin,        // a number of the network, for groups
};

// The numbers that describe a task, in the order of its descriptor.
enum class NetworkValue : std::uint8_t {
  kOperations,
  kWeightBytes,
  kInputElements,
  kClasses,
  kTuningImages,
  kTestImages,
};

const PayloadInfo& network_payload_info();

}  // namespace foretune
