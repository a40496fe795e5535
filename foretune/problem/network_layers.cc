#include "foretune/problem/network_layers.h"

#include <array>
#include <unordered_set>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::string_view kFirstLine = "# foretune networks 1";
constexpr std::string_view kRoleLine = "# role: ";

Result<NetworkRole> parse_role(std::string_view line) {
  if (line.starts_with(kRoleLine)) {
    const std::string_view role = line.substr(kRoleLine.size());
    if (role == "training") {
      return NetworkRole::kTraining;
    }
    if (role == "validation") {
      return NetworkRole::kValidation;
    }
    if (role == "shapes") {
      return NetworkRole::kShapes;
    }
  }
  return fail(ErrorCode::kCorrupt, "line 3 names no role: training, validation or shapes");
}

// Parses only name, title and role, since every list of set names needs them.
Result<NetworkLayers> parse_header(const EmbeddedText& file) {
  std::array<std::string_view, 3> lines;
  std::string_view rest = file.text;
  for (std::string_view& line : lines) {
    const std::size_t end = rest.find('\n');
    line = trim(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  if (lines[0] != kFirstLine || !lines[1].starts_with("# ")) {
    return fail(ErrorCode::kCorrupt, file.name, " does not begin with '", kFirstLine,
                "', a title and a role");
  }
  NetworkLayers out{.name = file.name, .title = lines[1].substr(2), .layers = {}};
  FORETUNE_TRY(out.role, parse_role(lines[2]));
  return out;
}

std::vector<Problem> distinct(const std::vector<Problem>& problems) {
  std::vector<Problem> out;
  std::unordered_set<Problem> seen;
  for (const Problem& problem : problems) {
    if (seen.insert(problem).second) {
      out.push_back(problem);
    }
  }
  return out;
}

// The files are part of the library, and a test parses them all.
NetworkLayers parsed(const EmbeddedText& file) {
  Result<NetworkLayers> network = parse_network_layers(file);
  FORETUNE_CHECK(network.has_value());
  return *std::move(network);
}

NetworkLayers header(const EmbeddedText& file) {
  Result<NetworkLayers> network = parse_header(file);
  FORETUNE_CHECK(network.has_value());
  return *std::move(network);
}

std::vector<Problem> layers_of_role(std::span<const EmbeddedText> files, NetworkRole role) {
  std::vector<Problem> out;
  for (const EmbeddedText& file : files) {
    if (header(file).role == role) {
      const NetworkLayers network = parsed(file);
      out.insert(out.end(), network.layers.begin(), network.layers.end());
    }
  }
  return out;
}

}  // namespace

Result<NetworkLayers> parse_network_layers(const EmbeddedText& file) {
  FORETUNE_TRY(NetworkLayers out, parse_header(file));
  const std::vector<std::string_view> lines = split(file.text, '\n');
  for (std::size_t i = 3; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    const std::size_t space = line.find(' ');
    Result<Problem> layer = space == std::string_view::npos
                                ? fail(ErrorCode::kCorrupt, "a name and a problem were expected")
                                : Problem::parse(line.substr(space));
    if (!layer) {
      return fail(ErrorCode::kCorrupt, file.name, ", line ", i + 1, ": ", layer.error().message);
    }
    out.layers.push_back(*std::move(layer));
  }
  return out;
}

void add_network_sets(std::span<const EmbeddedText> files, const NetworkExpansion& expansion,
                      std::vector<NamedShapeSet>& sets) {
  for (const auto& [role, name] : {std::pair{NetworkRole::kTraining, "train"},
                                   std::pair{NetworkRole::kValidation, "validation"}}) {
    sets.push_back({.name = concat(expansion.prefix, "networks-", name, expansion.suffix),
                    .summary = concat(expansion.description, " of networks, for ",
                                      role == NetworkRole::kTraining ? "training" : "validation"),
                    .make = [files, role, expand = expansion.expand] {
                      return distinct(expand(layers_of_role(files, role)));
                    }});
  }
  for (const EmbeddedText& file : files) {
    const NetworkLayers network = header(file);
    sets.push_back({.name = concat(expansion.prefix, network.name, expansion.suffix),
                    .summary = std::string(network.title),
                    .make =
                        [file, expand = expansion.expand] {
                          const NetworkLayers again = parsed(file);
                          return distinct(again.role == NetworkRole::kShapes
                                              ? again.layers
                                              : expand(again.layers));
                        },
                    .in_help = false});
  }
}

namespace {

const NamedShapeSet* find_set(std::string_view name) {
  for (const ProblemTypeInfo* type : problem_types()) {
    if (type->shape_sets == nullptr) {
      continue;
    }
    for (const NamedShapeSet& set : type->shape_sets()) {
      if (set.name == name) {
        return &set;
      }
    }
  }
  return nullptr;
}

}  // namespace

bool is_named_shape_set(std::string_view name) { return find_set(name) != nullptr; }

Result<std::vector<Problem>> named_shape_set(std::string_view name) {
  if (const NamedShapeSet* set = find_set(name)) {
    return set->make();
  }
  std::vector<std::string> names;
  for (const ProblemTypeInfo* type : problem_types()) {
    if (type->shape_sets != nullptr) {
      for (const NamedShapeSet& set : type->shape_sets()) {
        names.push_back(set.name);
      }
    }
  }
  return fail(ErrorCode::kNotFound, quoted(name, 40), " is no set of shapes (", join(names, ", "),
              ")");
}

}  // namespace foretune
