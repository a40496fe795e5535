// foretune env in the Python package's module: Debian's AsmJit cannot be part of a shared object,
// so that loop nests are compiled by the program alone.
#include <string>

#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"

namespace foretune::cli {
namespace {

struct EnvArguments {
  std::string computation;
  void visit(OptionList& list) {
    list.add_positional("computation", computation, "what to compute").require();
  }
};

Result<int> refuse(const EnvArguments& /*arguments*/, const Invocation& /*invocation*/) {
  return fail(ErrorCode::kUnsupported,
              "loop nests are compiled for programs, not for the Python package: use the foretune "
              "of a build from source");
}

}  // namespace

std::function<int(const Invocation&)> prepare_env(OptionList& list) {
  return prepare_with<EnvArguments, refuse>(list);
}

}  // namespace foretune::cli
