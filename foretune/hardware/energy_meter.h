// Reads the energy that this machine's processors and their memory consume, in joules, as Linux
// counts it: in the powercap zones of RAPL (Running Average Power Limit), which one driver provides
// under the same names for Intel and for AMD.
//
//   FORETUNE_TRY(EnergyMeter meter, EnergyMeter::open());
//   FORETUNE_TRY(const double before_j, meter.read_j());
//   run();
//   FORETUNE_TRY(const double after_j, meter.read_j());
//
// The meter adds up all packages (zones intel-rapl:N called package-N, or package-N-die-M), and the
// `dram` below each. The kernel's Documentation/power/powercap/powercap.rst says that the sub-zones
// `core` and `uncore` are parts of their package, so they are left out. `dram` is listed beside
// them and is memory outside of the package, a domain of its own (Intel's Software Developer's
// Manual, volume 3B, "Platform Specific Power Management Support"), so it is added; many machines,
// AMD's among them, have none. `psys` is left out: it covers the whole board, packages included.
// The zones of intel-rapl-mmio show the same packages a second time.
//
// The counters belong to the machine, not to a process: they include the work of other programs and
// other users, and the consumption of idle parts. A virtual machine rarely has any, and since Linux
// 5.10 only root may read them.
//
// Resolution: the processor updates a counter about every millisecond, in steps of 15 or 61
// microjoules. The two ends of an interval are therefore uncertain by a millisecond each: measure
// over at least 100 ms, where that is 2 % at most. Read at least once a minute: a counter of 32
// bits wraps after one to several minutes of a busy server, and two wraps look like one.
//
// Thread safety: none. Cost: a read opens one file for each counter, tens of microseconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/result.h"

namespace foretune {

class EnergyMeter {
 public:
  // `root`: the folder that lists the zones. Errors: kUnsupported where the system shows no
  // package, kIo where this user may not read a file, kNotFound for a zone without a counter,
  // kCorrupt for a counter or range that is not a number.
  static Result<EnergyMeter> open(const std::filesystem::path& root = "/sys/class/powercap");

  // Returns the joules since open(), never less than before. Errors: kNotFound for a counter that
  // is gone, kIo, kCorrupt; the meter stays usable, and a later read also covers the time until
  // then.
  Result<double> read_j();

  // Returns "RAPL: package-0, dram of package-0".
  [[nodiscard]] std::string description() const;

 private:
  struct Counter {
    std::filesystem::path file;
    std::string name;
    std::uint64_t range_uj = 0;  // the highest value; then it begins again at 0
    std::uint64_t last_uj = 0;
  };
  Status add(const std::filesystem::path& zone, std::string name);

  std::vector<Counter> counters_;
  std::uint64_t total_uj_ = 0;
};

}  // namespace foretune
