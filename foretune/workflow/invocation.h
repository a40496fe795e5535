// The surroundings of a use case: who asks, and whom it tells.
//
// Thread safety: any number of threads may read an invocation. Use cases call its functions from
// the thread that called them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace foretune::workflow {

struct Invocation {
  std::uint64_t seed = 42;                    // of all random choices
  std::string format = "foretune";            // of the export that is written beside a data set
  std::vector<std::string> worker_command{};  // starts a worker (run_worker())
  std::string command_line{};                 // as typed, for records
  // Each takes a sentence, without its full stop, for the user: news, and what may be wrong with
  // the result. Either may be empty.
  std::function<void(std::string_view)> on_remark{};
  std::function<void(std::string_view)> on_warning{};

  void remark(std::string_view sentence) const {
    if (on_remark) {
      on_remark(sentence);
    }
  }
  void warn(std::string_view sentence) const {
    if (on_warning) {
      on_warning(sentence);
    }
  }
};

}  // namespace foretune::workflow
