// Locks of cores and GPUs of one machine, so that no two tasks measure on the same ones.
//
//   FORETUNE_TRY(const NodeLocks locks, NodeLocks::take({"core-0", "core-1"}, "node1-17"));
//
// They are files in memory of the machine (/dev/shm, or else /tmp), locked by flock(2), which the
// kernel drops when the process ends in any way. Nothing here is on a shared folder.
// Thread safety: plain values; locks belong to the process.
#pragma once

#include <string>
#include <vector>

#include "foretune/base/descriptor.h"
#include "foretune/base/result.h"

namespace foretune::cluster {

class NodeLocks {
 public:
  NodeLocks() = default;
  // Takes all locks or none. `owner` is what others read of who holds them. Errors: kUnsupported
  // with the name and the owner of a lock that another process holds; kIo.
  static Result<NodeLocks> take(const std::vector<std::string>& names, const std::string& owner);

 private:
  std::vector<Descriptor> files_;
};

// Returns the cores that this process may run on, by their numbers.
std::vector<int> own_cores();
// Lets this process, and those that it starts, run on these cores only. Errors: kInvalidArgument
// for cores that it does not have.
Status use_cores(const std::vector<int>& cores);
// Returns the numbers of "0,2-4". Errors: kInvalidArgument.
Result<std::vector<int>> parse_cores(std::string_view text);
std::string cores_text(const std::vector<int>& cores);

// Returns this machine's name.
std::string host_name();

}  // namespace foretune::cluster
