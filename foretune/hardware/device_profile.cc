#include "foretune/hardware/device_profile.h"

#include <algorithm>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

Status parse_number(std::string_view line, Hardware& out) {
  const std::size_t equals = line.find('=');
  const auto value = parse_hardware_value(trim(line.substr(0, equals)));
  const auto number =
      equals == std::string_view::npos ? std::nullopt : parse_double(trim(line.substr(equals + 1)));
  if (!value || !number || !(*number > 0 && *number <= 1e18)) {
    return fail(ErrorCode::kInvalidArgument, quoted(line, 60),
                " is neither 'key: value' nor a known value with a number above 0");
  }
  if (out.get(*value) != 0) {
    return fail(ErrorCode::kInvalidArgument, to_string(*value), " is given twice");
  }
  out.set(*value, *number);
  return {};
}

Status parse_key(std::string_view key, std::string_view value, DeviceProfile& out) {
  if (key == "device") {
    out.fingerprint.device = value;
  } else if (key == "isa") {
    out.fingerprint.isa = value;
  } else if (key == "source") {
    out.source += concat(out.source.empty() ? "" : " ", value);
  } else if (key == "names") {
    for (const std::string_view name : split_words(value)) {
      out.names.push_back(to_lower(name));
    }
  } else {
    return fail(ErrorCode::kInvalidArgument, quoted(key, 40), " is no key of a device profile");
  }
  return {};
}

}  // namespace

Result<DeviceProfile> DeviceProfile::parse(std::string_view text) {
  DeviceProfile out;
  for (const std::string_view whole : split(text, '\n')) {
    const std::string_view line = trim(whole.substr(0, whole.find('#')));
    const std::size_t colon = line.find(':');
    if (line.empty()) {
      continue;
    }
    FORETUNE_TRY_STATUS(colon == std::string_view::npos
                            ? parse_number(line, out.fingerprint.hardware)
                            : parse_key(line.substr(0, colon), trim(line.substr(colon + 1)), out));
  }
  if (out.fingerprint.device.empty() || out.source.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "a device profile says which device it is and where its numbers come from "
                "('device: ...', 'source: ...')");
  }
  return out;
}

const std::vector<DeviceProfile>& device_profiles() {
  static const std::vector<DeviceProfile> profiles = [] {
    std::vector<DeviceProfile> out;
    for (const EmbeddedText& file : device_profile_texts()) {
      Result<DeviceProfile> profile = DeviceProfile::parse(file.text);
      FORETUNE_CHECK(profile.has_value());  // a test parses each
      out.push_back(*std::move(profile));
    }
    return out;
  }();
  return profiles;
}

std::vector<std::string> device_names() {
  std::vector<std::string> out;
  for (const DeviceProfile& profile : device_profiles()) {
    out.insert(out.end(), profile.names.begin(), profile.names.end());
  }
  return out;
}

Result<Fingerprint> known_device(std::string_view name) {
  const std::string wanted = to_lower(name);
  for (const DeviceProfile& profile : device_profiles()) {
    if (to_lower(profile.fingerprint.device) == wanted ||
        std::find(profile.names.begin(), profile.names.end(), wanted) != profile.names.end()) {
      return profile.fingerprint;
    }
  }
  return fail(ErrorCode::kNotFound, "nothing is known of the device ", quoted(name, 40),
              "; built in are: ", join(device_names(), ", "));
}

Fingerprint h200_fingerprint() {
  const Result<Fingerprint> found = known_device("h200");
  FORETUNE_CHECK(found.has_value());
  return *found;
}

}  // namespace foretune
