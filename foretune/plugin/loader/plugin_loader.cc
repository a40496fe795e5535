#include "foretune/plugin/loader/plugin_loader.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/families.h"
#include "foretune/features/feature_table.h"
#include "foretune/problem/problem_type.h"
#include "foretune/search/strategy.h"

namespace foretune {
namespace {

Status add_family(FamilyEntry&& entry, PluginHost::Added& added) {
  std::string text = concat("family ", entry.name);
  FORETUNE_TRY_STATUS(register_family(std::move(entry)));
  added.push_back(std::move(text));
  return {};
}

Status add_strategy(StrategyEntry&& entry, PluginHost::Added& added) {
  std::string text = concat("strategy ", entry.name);
  // NOLINTNEXTLINE(performance-move-const-arg): the entry may come to own something
  FORETUNE_TRY_STATUS(register_strategy(std::move(entry)));
  added.push_back(std::move(text));
  return {};
}

// A family of commands, which the file defines alone.
Status load_toml(const std::filesystem::path& path, const PluginLoading& /*loading*/) {
  const std::filesystem::path file = std::filesystem::absolute(path).lexically_normal();
  const std::vector<LoadedPlugin> known = loaded_plugins();
  if (std::any_of(known.begin(), known.end(),
                  [&](const LoadedPlugin& plugin) { return plugin.path == file; })) {
    return {};
  }
  const std::size_t types = problem_types().size();
  const std::size_t tables = feature_tables().size();
  const std::size_t entries = families().size();
  FORETUNE_TRY_STATUS(register_command_family(file));
  LoadedPlugin plugin{.path = file, .added = {}};
  for (const ProblemTypeInfo* const type : problem_types().subspan(types)) {
    plugin.added.push_back(concat("problem type ", type->schema.name));
  }
  for (const FeatureTable* const table : feature_tables().subspan(tables)) {
    plugin.added.push_back(concat("feature table ", table->name()));
  }
  for (const FamilyEntry* const entry : families().subspan(entries)) {
    plugin.added.push_back(concat("family ", entry->name));
  }
  note_loaded(std::move(plugin));
  return {};
}

Status load_object(const std::filesystem::path& path, const PluginLoading& loading) {
  return load_shared_object(path, full_host(), loading);
}

// Reads a file, chosen by the end of its name; the last one reads all others.
struct PluginReader {
  std::string_view suffix;
  Status (*load)(const std::filesystem::path& path, const PluginLoading& loading);
};
constexpr std::array kReaders{
    PluginReader{".toml", &load_toml},
    PluginReader{"", &load_object},
};

}  // namespace

PluginHost full_host() {
  PluginHost host = selecting_host();
  host.register_family = &add_family;
  host.register_strategy = &add_strategy;
  return host;
}

Status load_plugin(const std::filesystem::path& path, const PluginLoading& loading) {
  const std::string name = path.string();
  for (const PluginReader& reader : kReaders) {
    if (name.ends_with(reader.suffix)) {
      return reader.load(path, loading);
    }
  }
  return {};
}

}  // namespace foretune
