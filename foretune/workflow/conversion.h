// The options of converting data sets between formats, or a network into ours, and of merging data
// sets, and all uses. Nothing here prints.
//
//   ConvertArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const Conversion converted, run_conversion(arguments, invocation, hooks));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/payload_arguments.h"

namespace foretune::workflow {

struct ConvertArguments {
  std::string input;
  std::string output;
  std::string from;
  std::string to;
  std::string family;
  std::string role;
  std::string device;
  std::string arch;
  std::string hardware;
  bool capture_hw = false;
  std::map<std::string, std::string> stated;  // facts that command lines of others state, unused
  PayloadArguments payloads;                  // of tables of sparse schedules
  std::vector<std::string> merge_with;
  std::vector<std::string> input_shapes;  // of an ONNX file
  bool overwrite = false;

  void visit(OptionList& list);
};

struct ConvertHooks {
  // Once a file is read, and merged unless it is the first; may be empty.
  std::function<void(const std::string&, const ImportReport&)> on_read;
  // With the number of repeats, once all files of --merge-with are merged; may be empty.
  std::function<void(std::size_t)> on_merged;
};

struct Conversion {
  std::string format;    // of the output
  ImportReport written;  // what the format of the output cannot hold
};

// Errors: kInvalidArgument for options that make no sense together and for an existing output,
// kMismatch for files that do not go together, kCorrupt when nothing was measured; those of the
// files.
Result<Conversion> run_conversion(const ConvertArguments& arguments, const Invocation& invocation,
                                  const ConvertHooks& hooks);

struct MergeArguments {
  std::vector<std::string> inputs;
  std::string output;
  bool overwrite = false;

  void visit(OptionList& list);
};

struct Merged {
  std::size_t measurements = 0;  // of all data sets
  std::size_t repeats = 0;
};

// Errors: as run_conversion().
Result<Merged> run_merge(const MergeArguments& arguments, const Invocation& invocation);

}  // namespace foretune::workflow
