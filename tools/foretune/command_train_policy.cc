// foretune train-policy: becomes foretune-train-policy, which is linked to libtorch.
#include <unistd.h>

#include <string>
#include <vector>

#include "foretune/base/system_error.h"
#include "foretune/workflow/policy_training.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

Result<int> train_policy(const TrainPolicyArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(std::vector<std::string> command, policy_training_command(arguments, invocation));
  std::vector<char*> words;
  for (std::string& word : command) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  // Signals and standard output are the trainer's from here on.
  ::execv(words.front(), words.data());
  return fail(ErrorCode::kIo, command.front(), ": ", last_error());
}

}  // namespace

std::function<int(const Invocation&)> prepare_train_policy(OptionList& list) {
  return prepare_with<TrainPolicyArguments, train_policy>(list);
}

}  // namespace foretune::cli
