#include "foretune/hardware/energy_meter.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <compare>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/descriptor.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::string_view kControlType = "intel-rapl";

// The numbers in the name of a zone: of the top-level zone, and of a sub-zone.
struct ZoneNumber {
  std::uint64_t top = 0;
  std::optional<std::uint64_t> sub;  // none sorts first: a package comes before its parts
  auto operator<=>(const ZoneNumber&) const = default;
};

// Parses "intel-rapl:0" or "intel-rapl:0:1"; returns nothing for the control type itself and for
// other drivers.
std::optional<ZoneNumber> parse_zone(std::string_view name) {
  const std::vector<std::string_view> parts = split(name, ':');
  if (parts[0] != kControlType || parts.size() < 2 || parts.size() > 3) {
    return std::nullopt;
  }
  ZoneNumber zone;
  const std::optional<std::uint64_t> top = parse_uint(parts[1]);
  if (parts.size() == 3) {
    zone.sub = parse_uint(parts[2]);
  }
  if (!top || zone.sub.has_value() != (parts.size() == 3)) {
    return std::nullopt;
  }
  zone.top = *top;
  return zone;
}

tl::unexpected<Error> unreadable(const std::filesystem::path& path) {
  switch (errno) {
    case EACCES:
    case EPERM:
      return fail(ErrorCode::kIo, "this user may not read ", path.string(),
                  ", which root may read and can open to others");
    case ENOENT:
    case ENODEV:
      return fail(ErrorCode::kNotFound, "there is no ", path.string());
    default:
      return fail(ErrorCode::kIo, "cannot read ", path.string(), ": ", last_error());
  }
}

// Reads one line without its end. Opens the file each time: a zone that went away and came back has
// the same path and another file.
Result<std::string> read_line(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT(*-vararg)
  if (!file.ok()) {
    return unreadable(path);
  }
  std::array<char, 128> text{};
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length < 0) {
    return unreadable(path);
  }
  return std::string(trim({text.data(), static_cast<std::size_t>(length)}));
}

Result<std::uint64_t> read_microjoules(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::string text, read_line(path));
  const std::optional<std::uint64_t> value = parse_uint(text);
  if (!value) {
    return fail(ErrorCode::kCorrupt, path.string(), " holds ", quoted(text, 40),
                ", which is not a number of microjoules");
  }
  return *value;
}

Result<std::map<ZoneNumber, std::filesystem::path>> list_zones(const std::filesystem::path& root) {
  std::map<ZoneNumber, std::filesystem::path> zones;
  std::error_code error;
  std::filesystem::directory_iterator at(root, error);
  for (const std::filesystem::directory_iterator end; !error && at != end; at.increment(error)) {
    if (const auto zone = parse_zone(at->path().filename().string())) {
      zones.emplace(*zone, at->path());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(ErrorCode::kIo, "cannot list ", root.string(), ": ", error.message());
  }
  return zones;
}

}  // namespace

Status EnergyMeter::add(const std::filesystem::path& zone, std::string name) {
  Counter counter{.file = zone / "energy_uj", .name = std::move(name)};
  FORETUNE_TRY(counter.range_uj, read_microjoules(zone / "max_energy_range_uj"));
  FORETUNE_TRY(counter.last_uj, read_microjoules(counter.file));
  counters_.push_back(std::move(counter));
  return {};
}

Result<EnergyMeter> EnergyMeter::open(const std::filesystem::path& root) {
  FORETUNE_TRY(const auto zones, list_zones(root));
  EnergyMeter meter;
  std::map<std::uint64_t, std::string> packages;
  for (const auto& [number, zone] : zones) {
    const Result<std::string> name = read_line(zone / "name");
    if (!name) {
      // A container lists the zones as links whose targets it hides.
      const bool hidden = name.error().code == ErrorCode::kNotFound;
      return fail(hidden ? ErrorCode::kUnsupported : name.error().code,
                  "the counters of energy cannot be told apart: ", name.error().message);
    }
    if (!number.sub && name->starts_with("package-")) {
      FORETUNE_TRY_STATUS(meter.add(zone, *name));
      packages.emplace(number.top, *name);
    } else if (const auto package = packages.find(number.top);
               number.sub && *name == "dram" && package != packages.end()) {
      FORETUNE_TRY_STATUS(meter.add(zone, concat(*name, " of ", package->second)));
    }
  }
  if (packages.empty()) {
    return fail(ErrorCode::kUnsupported, "this system counts no energy: RAPL shows no package in ",
                root.string());
  }
  return meter;
}

Result<double> EnergyMeter::read_j() {
  for (Counter& counter : counters_) {
    FORETUNE_TRY(const std::uint64_t now_uj, read_microjoules(counter.file));
    if (now_uj >= counter.last_uj) {
      total_uj_ += now_uj - counter.last_uj;
    } else if (counter.last_uj <= counter.range_uj) {
      // This is one step too little, which is less than the counter resolves.
      total_uj_ += counter.range_uj - counter.last_uj + now_uj;
    } else {
      return fail(ErrorCode::kCorrupt, counter.file.string(), " went back from ", counter.last_uj,
                  " uJ, which lies beyond its range of ", counter.range_uj, " uJ");
    }
    counter.last_uj = now_uj;
  }
  return static_cast<double>(total_uj_) * 1e-6;
}

std::string EnergyMeter::description() const {
  std::vector<std::string> names;
  names.reserve(counters_.size());
  for (const Counter& counter : counters_) {
    names.push_back(counter.name);
  }
  return concat("RAPL: ", join(names, ", "));
}

}  // namespace foretune
