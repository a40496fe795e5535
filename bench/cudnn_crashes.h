// Remembers which config of a convolution ended the program, across runs: the config that is being
// tried is named in a file beside the output, and the next run finds it there.
//
//   FORETUNE_TRY(const CudnnCrashes crashes, CudnnCrashes::recover(output, measurer, journal));
//   FORETUNE_TRY_STATUS(crashes.trying(problem, config));
//   crashes.end();
//
// Thread safety: none; a program has one output. Cost: trying() writes a small file.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/dataset/journal.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/problem.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune::bench {

class CudnnCrashes {
 public:
  // Adds the config that ended the program the last time to the data set and to the file of
  // crashes. Errors: kIo, and those of a file that does not hold configs.
  static Result<CudnnCrashes> recover(const std::string& output, const Measurer& measurer,
                                      JournalWriter& journal);

  [[nodiscard]] bool has(const Problem& problem, const CudnnConfig& config) const;
  // Returns how many configs of a convolution ended the program.
  [[nodiscard]] std::size_t count(const Problem& problem) const;
  [[nodiscard]] Status trying(const Problem& problem, const CudnnConfig& config) const;
  // Nothing is being tried any more.
  void end() const;

 private:
  std::string output_;
  std::set<std::pair<std::string, std::string>> crashes_;  // texts of convolution and config
};

// Returns the text of a config in the schema cudnn.
std::string text_of(const CudnnConfig& config);

}  // namespace foretune::bench
