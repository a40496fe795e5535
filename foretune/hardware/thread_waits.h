// Measures how long threads of this process were ready to run and had no core, as Linux counts it
// for each of them. A time during which they waited for more than a trifle is that of the
// neighbours, not of a kernel. Sleeping is not waiting.
//
//   ThreadWaits waits;
//   run();
//   if (waits.read().longest_ns > 0.05 * elapsed_ns) { ... }
//
// Time that a hypervisor withheld is not included: CpuLoadMeter reports that.
// Thread safety: none. Cost: a read takes some microseconds, one or two for each thread.
#pragma once

#include <cstdint>
#include <map>

#include "foretune/base/descriptor.h"

namespace foretune {

struct Waits {
  double longest_ns = 0;  // of one thread
  double all_ns = 0;      // of all threads together
};

class ThreadWaits {
 public:
  ThreadWaits();
  // Returns false where the system does not count waits.
  [[nodiscard]] bool known() const { return !threads_.empty(); }
  // Returns the waits since the last read, or since this object was made; also those of threads
  // that began meanwhile.
  Waits read();

 private:
  struct Thread {
    Descriptor file;
    std::int64_t waited_ns = 0;
  };
  void look_for_threads();

  std::map<int, Thread> threads_;  // by thread number
  std::uint64_t links_ = 0;        // of the folder of threads: changes with the number of threads
};

}  // namespace foretune
