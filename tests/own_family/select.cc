// Selects for a problem of a plug-in's type: select_cpp PLUGIN MODEL PROBLEM
#include "foretune/select/select.h"

#include <cstdio>
#include <string>

#include "foretune/plugin/shared_object.h"
#include "foretune/problem/problem_type.h"

namespace {

foretune::Result<std::string> pick(const char* plugin, const char* model, const char* text) {
  // Twice, which is to be the same as once.
  FORETUNE_TRY_STATUS(foretune::load_plugin_to_select(plugin));
  FORETUNE_TRY_STATUS(foretune::load_plugin_to_select(plugin));
  FORETUNE_TRY(const auto selector, foretune::Selector::open(model));
  FORETUNE_TRY(const foretune::Problem problem, foretune::Problem::parse(text));
  // Its work, its names and its tables come out of the plug-in.
  if (!foretune::problem_work(problem) || foretune::loaded_plugins().size() != 1) {
    return foretune::fail(foretune::ErrorCode::kInternal, "the type is not whole");
  }
  const foretune::Choice choice = selector->select(problem);
  if (!choice.picked()) {
    return std::string(foretune::to_string(choice.reason));
  }
  return foretune::concat("picked: ", foretune::to_text(selector->model().config_schema,
                                                        selector->config(choice.candidate)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: select_cpp PLUGIN MODEL PROBLEM\n");
    return 2;
  }
  const auto picked = pick(argv[1], argv[2], argv[3]);
  std::fprintf(picked ? stdout : stderr, "%s\n",
               picked ? picked->c_str() : picked.error().message.c_str());
  return picked ? 0 : 1;
}
