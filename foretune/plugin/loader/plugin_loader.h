// Loads extensions into all tables of this program. The end of a file's name decides how: as a
// shared object (plugin.h) unless the table in plugin_loader.cc says otherwise.
//
//   FORETUNE_TRY_STATUS(load_plugin("build/libstencil.so"));
//   FORETUNE_TRY(auto family, create_family("stencil", options));
//
// Load before anything reads the tables: options and choices of a command line are made from them.
// Processes that are started later load the files of loaded_plugins() themselves.
//
// Errors: as in shared_object.h, and those of register_command_family() (families.h) for a file
// that ends in .toml. Thread safety and cost: as there.
#pragma once

#include <filesystem>

#include "foretune/base/result.h"
#include "foretune/plugin/shared_object.h"

namespace foretune {

// Returns all tables, which a program needs that measures and searches.
PluginHost full_host();

Status load_plugin(const std::filesystem::path& path, const PluginLoading& loading = {});

}  // namespace foretune
