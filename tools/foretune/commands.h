// The subcommands: one file each, one row in commands.cc.
// Thread safety: used by the main thread.
#pragma once

#include <functional>

#include "tools/foretune/command_line.h"

namespace foretune::cli {

std::function<int(const Invocation&)> prepare_collect(OptionList& list);
std::function<int(const Invocation&)> prepare_create_validation(OptionList& list);
std::function<int(const Invocation&)> prepare_train(OptionList& list);
std::function<int(const Invocation&)> prepare_validate_model(OptionList& list);
std::function<int(const Invocation&)> prepare_evaluate(OptionList& list);
std::function<int(const Invocation&)> prepare_compare(OptionList& list);
std::function<int(const Invocation&)> prepare_tune(OptionList& list);
std::function<int(const Invocation&)> prepare_approx(OptionList& list);
std::function<int(const Invocation&)> prepare_measure(OptionList& list);
std::function<int(const Invocation&)> prepare_predict(OptionList& list);
std::function<int(const Invocation&)> prepare_search(OptionList& list);
std::function<int(const Invocation&)> prepare_inspect(OptionList& list);
std::function<int(const Invocation&)> prepare_convert(OptionList& list);
std::function<int(const Invocation&)> prepare_export(OptionList& list);
std::function<int(const Invocation&)> prepare_import_model(OptionList& list);
std::function<int(const Invocation&)> prepare_merge(OptionList& list);
std::function<int(const Invocation&)> prepare_env(OptionList& list);
std::function<int(const Invocation&)> prepare_env_generate(OptionList& list);
std::function<int(const Invocation&)> prepare_env_search(OptionList& list);
std::function<int(const Invocation&)> prepare_train_policy(OptionList& list);
std::function<int(const Invocation&)> prepare_doctor(OptionList& list);
std::function<int(const Invocation&)> prepare_completion(OptionList& list);
std::function<int(const Invocation&)> prepare_reference(OptionList& list);
std::function<int(const Invocation&)> prepare_worker(OptionList& list);
std::function<int(const Invocation&)> prepare_cluster_task(OptionList& list);

}  // namespace foretune::cli
