// Measurers of families on the device that tests/fake_gpu plays, for tests with FAKE_GPU.
// Thread safety: free functions.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "foretune/measure/measure.h"

namespace foretune::testing_support {

inline Protocol quick() {
  Protocol protocol;
  protocol.windows = 3;
  protocol.max_windows = 3;
  return protocol;
}

// Starts a worker of the command line with faults of the fake.
inline std::unique_ptr<Measurer> faulty_worker(const std::string& faults, const std::string& family,
                                               const FamilyOptions& options,
                                               const Protocol& protocol = quick()) {
  auto measurer =
      make_worker_measurer({.worker_command = {"/usr/bin/env", "FORETUNE_FAKE_GPU_FAULTS=" + faults,
                                               FORETUNE_CLI, "worker"},
                            .family = family,
                            .family_options = options},
                           protocol, Context{});
  EXPECT_TRUE(measurer) << measurer.error().message;
  return *std::move(measurer);
}

}  // namespace foretune::testing_support
