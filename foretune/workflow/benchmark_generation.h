// The options of generating lists of loop nests over ranges of sizes, and the generation itself.
// Nothing here prints.
// Thread safety: used by one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "foretune/base/result.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct EnvGenerateArguments {
  loop::gym::BenchmarkGenerator generator;
  std::string out;
  std::string train;
  std::string test;
  double test_share = 0.1;
  bool list = false;

  void visit(OptionList& options);
};

struct EnvGenerateHooks {
  // With the number of benchmarks in it, once a file is written; may be empty.
  std::function<void(const std::string&, std::size_t)> on_written;
};

// Writes --out, --train and --test. Errors: kInvalidArgument without a file, for one of --train and
// --test alone and when one would be empty; those of generate_benchmarks(); kIo.
Status run_generation(const EnvGenerateArguments& arguments, const Invocation& invocation,
                      const EnvGenerateHooks& hooks);

}  // namespace foretune::workflow
