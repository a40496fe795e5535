// Loads plug-ins (plugin.h) into the tables of this program:
//
//   FORETUNE_TRY_STATUS(load_plugin_to_select("stencil.so"));   // problem types, feature tables
//   FORETUNE_TRY_STATUS(load_plugin("stencil.so"));             // all of it: plugin_loader.h
//
// A plug-in is first tried in a forked child, which may crash, hang or exit; the program then
// continues and knows the reason. A plug-in that passes is loaded and never unloaded. A file that
// was loaded already is not loaded again.
//
// Errors: kNotFound for a file that does not exist; kCorrupt for one that is not a plug-in, and for
// one that crashes, hangs or exits; kMismatch for one from an incompatible build, or that the
// tables refuse. Thread safety: any thread; calls wait for each other. Cost: a fork, and loading
// twice: some milliseconds.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/plugin/plugin.h"

namespace foretune {

struct PluginLoading {
  std::chrono::milliseconds time_limit{10'000};  // of the child; one that takes longer hangs
};

// The tables of a program that selects and measures nothing: problem types, feature tables and
// kinds of models.
PluginHost selecting_host();

Status load_shared_object(const std::filesystem::path& path, const PluginHost& host,
                          const PluginLoading& loading = {});
// The same for programs that select, from C++ and C alike.
Status load_plugin_to_select(const std::filesystem::path& path);

struct LoadedPlugin {
  std::filesystem::path path;      // absolute
  std::vector<std::string> added;  // "problem type stencil", "family stencil", ...
};
// Returns the loaded plug-ins in the order in which they were loaded. Another process has to load
// the same files to know the same tables.
std::vector<LoadedPlugin> loaded_plugins();
// Notes a file that another way of loading has read (PluginReader of plugin_loader.h), so that
// loaded_plugins() has it. Returns false for a file that it has already.
bool note_loaded(LoadedPlugin plugin);

}  // namespace foretune
