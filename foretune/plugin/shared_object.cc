#include "foretune/plugin/shared_object.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/fork.h"
#include "foretune/base/text.h"
#include "foretune/model/model_kind.h"
#include "foretune/plugin/trial.h"

namespace foretune {
namespace {

Status add_problem_type(ProblemTypeInfo&& info, PluginHost::Added& added) {
  std::string text = concat("problem type ", info.schema.name);
  // NOLINTNEXTLINE(performance-move-const-arg): the row may come to own something
  FORETUNE_TRY_STATUS(register_problem_type(std::move(info)));
  added.push_back(std::move(text));
  return {};
}

Status add_feature_table(std::unique_ptr<const FeatureTable>&& table, PluginHost::Added& added) {
  if (table == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "a feature table is missing");
  }
  std::string text = concat("feature table ", table->name());
  FORETUNE_TRY_STATUS(register_feature_table(std::move(table)));
  added.push_back(std::move(text));
  return {};
}

Status add_model_kind(ModelKind&& kind, PluginHost::Added& added) {
  std::string text = concat("kind of models ", kind.name);
  FORETUNE_TRY_STATUS(register_model_kind(std::move(kind)));
  added.push_back(std::move(text));
  return {};
}

// Plug-ins of this process. Loading takes long, so that a fork does not wait for it; the list is
// held for moments.
struct Loaded {
  ForkSafeTurn turn;
  ForkSafeMutex mutex;
  std::vector<LoadedPlugin> plugins;
};
Loaded& loaded() {
  static Loaded all;
  return all;
}

bool is_loaded(const std::filesystem::path& path) {
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.plugins.begin(), all.plugins.end(), [&](const LoadedPlugin& plugin) {
    std::error_code ignored;
    return plugin.path == path || std::filesystem::equivalent(plugin.path, path, ignored);
  });
}

// The linker's words without the path, which stands before them already.
std::string linker_error(const std::string& path) {
  const char* const words = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one a thread
  std::string text = words == nullptr ? "the linker refuses it" : words;
  return text.starts_with(concat(path, ": ")) ? text.substr(path.size() + 2) : text;
}

// The version of a plug-in of another version need not end where ours does.
std::string_view bounded(const char* text) {
  return {text, ::strnlen(text, kPluginBuild.size() - 1)};
}

Status open_and_set_up(const std::string& path, Plugin& plugin) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    return fail(ErrorCode::kCorrupt, "it is no plug-in: ", linker_error(path));
  }
  using Function = const PluginEntry* (*)();
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how dlsym() gives functions
  const auto function = reinterpret_cast<Function>(::dlsym(handle, kPluginFunction));
  if (function == nullptr) {
    return fail(ErrorCode::kCorrupt, "it is no plug-in: it has no function ", kPluginFunction);
  }
  const PluginEntry* const entry = function();
  if (entry == nullptr || entry->build == nullptr || entry->setup == nullptr) {
    return fail(ErrorCode::kCorrupt, "it is no plug-in: ", kPluginFunction, " has no answer");
  }
  const std::string_view ours = bounded(kPluginBuild.data());
  const std::string_view theirs = bounded(entry->build);
  if (theirs != ours) {
    return fail(ErrorCode::kMismatch, "it was built for ", quoted(theirs, 160), ", and this is '",
                ours, "'");
  }
  return entry->setup(plugin);
}

// An exception may come from an entry that FORETUNE_PLUGIN did not make, and from constants.
Status contained(const std::string& path, Plugin& plugin) {
  try {
    return open_and_set_up(path, plugin);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kMismatch, "it throws: ", error.what());
  } catch (...) {
    return fail(ErrorCode::kMismatch, "it throws what is no std::exception");
  }
}

// A request that the tables refuse is no mistake of whoever loads the plug-in.
Error as_loading_error(const Error& error, const std::string& path) {
  return {error.code == ErrorCode::kInvalidArgument ? ErrorCode::kMismatch : error.code,
          concat("the plug-in ", path, " is not loaded: ", error.message)};
}

}  // namespace

PluginHost selecting_host() {
  return {.register_problem_type = &add_problem_type,
          .register_feature_table = &add_feature_table,
          .register_model_kind = &add_model_kind};
}

std::vector<LoadedPlugin> loaded_plugins() {
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  return all.plugins;
}

bool note_loaded(LoadedPlugin plugin) {
  if (is_loaded(plugin.path)) {
    return false;
  }
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  all.plugins.push_back(std::move(plugin));
  return true;
}

Status load_shared_object(const std::filesystem::path& path, const PluginHost& host,
                          const PluginLoading& loading) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) {
    return fail(ErrorCode::kNotFound, "the plug-in ", path.string(),
                " is not loaded: ", error.message());
  }
  const std::string name = file.string();
  const std::lock_guard lock(loaded().turn);
  if (is_loaded(file)) {
    return {};
  }
  const Status tried = try_in_child(loading.time_limit, [&] {
    Plugin plugin(host);
    return contained(name, plugin);
  });
  if (!tried) {
    return tl::unexpected<Error>(as_loading_error(tried.error(), path.string()));
  }
  Plugin plugin(host);
  const Status status = contained(name, plugin);
  if (!status) {
    return tl::unexpected<Error>(as_loading_error(status.error(), path.string()));
  }
  note_loaded({.path = file, .added = plugin.added()});
  return {};
}

Status load_plugin_to_select(const std::filesystem::path& path) {
  return load_shared_object(path, selecting_host());
}

}  // namespace foretune
