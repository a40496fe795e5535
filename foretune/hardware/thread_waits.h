// How long threads of this process were ready to run and had no core, by what Linux counts for each
// of them: a time during which that was more than a trifle is one of the neighbours, not of a
// kernel. Sleeping is not waiting.
//
//   ThreadWaits waits;
//   run();
//   if (waits.read().longest_ns > 0.05 * elapsed_ns) { ... }
//
// Time that a hypervisor withheld is not in it: CpuLoadMeter knows that.
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
  // False where the system does not count.
  [[nodiscard]] bool known() const { return !threads_.empty(); }
  // Since the last read, or since this object was made; also of threads that began meanwhile.
  Waits read();

 private:
  struct Thread {
    Descriptor file;
    std::int64_t waited_ns = 0;
  };
  void look_for_threads();

  std::map<int, Thread> threads_;  // by their number
  std::uint64_t links_ = 0;        // of the folder of threads: changes with their number
};

}  // namespace foretune
