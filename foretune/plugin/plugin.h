// Extensions from outside of the source tree: a shared object that adds problem types, families,
// feature tables, strategies and kinds of models to the program that loads it. Its author writes
// one function:
//
//   Status add_stencil(foretune::Plugin& plugin) {
//     FORETUNE_TRY_STATUS(plugin.register_problem_type(stencil_type()));
//     return plugin.register_family({.name = "stencil", .available = ..., .create = ...});
//   }
//   FORETUNE_PLUGIN(add_stencil)
//
// and builds it with foretune_plugin() of the installed CMake package.
// docs/guides/extending/family.md walks through one; plugin_loader.h and shared_object.h have the
// other side.
//
// A plug-in holds its own copies of those parts of the library that it uses, and shows one C
// function: so a program needs to show nothing, whether it is stripped, static, or a module of
// Python. Objects of the library cross the border as they are, which only works where both sides
// were compiled alike. The program therefore compares kPluginBuild before it calls anything else.
//
// A plug-in is never unloaded: rows may point to constants of its own, and its code stays for
// objects that outlive whoever asked for them. Both sides have one heap, so that either may destroy
// what the other has made.
//
// Errors: an error of the function, and an exception that leaves it, are the error of loading.
// Thread safety: the function runs on one thread, once for every program or library that loads the
// plug-in. Cost: none but that of the tables.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/problem/problem_type.h"
#include "foretune/version.h"

namespace foretune {

struct FamilyEntry;    // foretune/family/family.h
struct ModelKind;      // foretune/model/model_kind.h
struct StrategyEntry;  // foretune/search/strategy.h

#define FORETUNE_PLUGIN_TEXT_INNER(token) #token
#define FORETUNE_PLUGIN_TEXT(token) FORETUNE_PLUGIN_TEXT_INNER(token)
#if defined(__clang__)
#define FORETUNE_PLUGIN_COMPILER "clang++ " FORETUNE_PLUGIN_TEXT(__clang_major__)
#else
#define FORETUNE_PLUGIN_COMPILER "g++ " FORETUNE_PLUGIN_TEXT(__GNUC__)
#endif
#if defined(_GLIBCXX_RELEASE)
#define FORETUNE_PLUGIN_LIBRARY                                                          \
  "libstdc++ " FORETUNE_PLUGIN_TEXT(_GLIBCXX_RELEASE) " with ABI " FORETUNE_PLUGIN_TEXT( \
      _GLIBCXX_USE_CXX11_ABI)
#else
#define FORETUNE_PLUGIN_LIBRARY "another standard library"
#endif
#if defined(_GLIBCXX_DEBUG)
#define FORETUNE_PLUGIN_CONTAINERS ", containers that check"
#else
#define FORETUNE_PLUGIN_CONTAINERS ""
#endif

// All that decides how objects lie in memory: "foretune 0.1.0, g++ 12, libstdc++ 12 with ABI 1".
// As characters, so that it is there before any code of the plug-in has run.
inline constexpr auto kPluginBuild = [] {
  std::array<char, 160> text{};
  std::size_t end = 0;
  for (const std::string_view part :
       {std::string_view("foretune "), kVersion, std::string_view(", " FORETUNE_PLUGIN_COMPILER),
        std::string_view(", " FORETUNE_PLUGIN_LIBRARY FORETUNE_PLUGIN_CONTAINERS)}) {
    for (const char c : part) {
      text.at(end++) = c;
    }
  }
  return text;
}();

// The tables of the program that loads a plug-in. A program that has no use for some rows leaves
// their function out: a selector measures nothing, so it has no families. Each adds to `added` what
// it has added: "family stencil".
struct PluginHost {
  using Added = std::vector<std::string>;
  Status (*register_problem_type)(ProblemTypeInfo&& info, Added& added) = nullptr;
  Status (*register_feature_table)(std::unique_ptr<const FeatureTable>&& table,
                                   Added& added) = nullptr;
  Status (*register_family)(FamilyEntry&& entry, Added& added) = nullptr;
  Status (*register_strategy)(StrategyEntry&& entry, Added& added) = nullptr;
  Status (*register_model_kind)(ModelKind&& kind, Added& added) = nullptr;
  // Another table: one function here, one member of Plugin, and one row of the hosts that have it.
};

// The loading program, as a plug-in sees it. All members: kInvalidArgument for a name that is
// taken, and what the function of the same name says otherwise.
class Plugin {
 public:
  explicit Plugin(const PluginHost& host) : host_(host) {}

  // Adds to the plug-in's own table, too, so that Problem::parse() and the like know the type on
  // both sides. All that the row points to has to
  // stay until the program ends.
  Status register_problem_type(const ProblemTypeInfo& info) {
    // There already where a second library of one program loads the plug-in.
    if (find_problem_type(info.schema.type) == nullptr) {
      FORETUNE_TRY_STATUS(foretune::register_problem_type(info));
    }
    return pass(host_.register_problem_type, ProblemTypeInfo(info));
  }
  Status register_feature_table(std::unique_ptr<const FeatureTable> table) {
    return pass(host_.register_feature_table, std::move(table));
  }
  Status register_family(FamilyEntry&& entry) {
    return pass(host_.register_family, std::move(entry));
  }
  Status register_strategy(StrategyEntry&& entry) {
    // NOLINTNEXTLINE(performance-move-const-arg): the entry may come to own something
    return pass(host_.register_strategy, std::move(entry));
  }

  Status register_model_kind(ModelKind&& kind) {
    return pass(host_.register_model_kind, std::move(kind));
  }

  [[nodiscard]] const std::vector<std::string>& added() const { return added_; }

 private:
  template <class Row>
  Status pass(Status (*function)(Row&& row, PluginHost::Added& added), Row&& row) {
    return function == nullptr ? Status() : function(std::forward<Row>(row), added_);
  }

  PluginHost host_;
  std::vector<std::string> added_;
};

// The answer of the one function that a plug-in shows. Only `build` may be looked at before it was
// compared. A plain struct: older and newer programs read it alike.
struct PluginEntry {
  const char* build;
  Status (*setup)(Plugin& plugin);
};
inline constexpr const char* kPluginFunction = "foretune_plugin_1";

// Calls `setup`; an exception of it is an error, since none may pass a border between compilers'
// run times unseen.
template <Status (*setup)(Plugin&)>
Status contained_setup(Plugin& plugin) {
  try {
    return setup(plugin);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kMismatch, "it throws: ", error.what());
  } catch (...) {
    return fail(ErrorCode::kMismatch, "it throws what is no std::exception");
  }
}

}  // namespace foretune

// Makes a shared object a plug-in: `setup` is a function `Status setup(foretune::Plugin&)`.
#define FORETUNE_PLUGIN(setup)                                                              \
  extern "C" __attribute__((visibility("default"))) const ::foretune::PluginEntry*          \
  foretune_plugin_1();                                                                      \
  extern "C" const ::foretune::PluginEntry* foretune_plugin_1() {                           \
    static constexpr ::foretune::PluginEntry entry{::foretune::kPluginBuild.data(),         \
                                                   &::foretune::contained_setup<&(setup)>}; \
    return &entry;                                                                          \
  }
