#include "foretune/interop/ck/rocminfo.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/text.h"

namespace foretune {
namespace {

// Longer names and values are damage.
constexpr std::size_t kMaxValueBytes = 200;

struct Agent {
  std::string name;
  std::string marketing_name;
  bool is_gpu = false;
  std::string segment;  // of the memory pool that is being read
  double waves_per_core = 0;
  Hardware hardware;
};

// The leading digits of "64(0x40) KB".
std::optional<double> leading_number(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = parse_uint(text.substr(0, end));
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

double bytes_of_size(std::string_view text) {
  const double number = leading_number(text).value_or(0);
  return text.find("KB") != std::string_view::npos ? number * 1024 : number;
}

void take_number(Agent& agent, HardwareValue value, std::string_view text) {
  agent.hardware.set(value, leading_number(text).value_or(0));
}

void take_pool_size(Agent& agent, std::string_view text) {
  const double bytes = bytes_of_size(text);
  if (agent.segment.substr(0, 5) == "GROUP") {
    agent.hardware.set(HardwareValue::kL1Bytes, bytes);
    agent.hardware.set(HardwareValue::kSharedBytesPerBlock, bytes);
  } else if (agent.segment.substr(0, 6) == "GLOBAL") {
    // Pools of several granularities name the same memory.
    agent.hardware.set(HardwareValue::kMemoryBytes,
                       std::max(bytes, agent.hardware.get(HardwareValue::kMemoryBytes)));
  }
}

void take(Agent& agent, std::string_view key, std::string_view value) {
  if (key == "Name" && agent.name.empty()) {  // its instruction sets have names, too
    agent.name = value;
  } else if (key == "Marketing Name") {
    agent.marketing_name = value;
  } else if (key == "Device Type") {
    agent.is_gpu = value == "GPU";
  } else if (key == "L2") {
    agent.hardware.set(HardwareValue::kL2Bytes, bytes_of_size(value));
  } else if (key == "L3") {
    agent.hardware.set(HardwareValue::kL3Bytes, bytes_of_size(value));
  } else if (key == "Max Clock Freq. (MHz)" || key == "Max Clock Frequency (MHz)") {
    take_number(agent, HardwareValue::kClockMhz, value);
  } else if (key == "Compute Unit") {
    take_number(agent, HardwareValue::kCores, value);
  } else if (key == "Wavefront Size") {
    take_number(agent, HardwareValue::kWarpSize, value);
  } else if (key == "Max Waves Per CU") {
    agent.waves_per_core = leading_number(value).value_or(0);
  } else if (key == "Segment") {
    agent.segment = value;
  } else if (key == "Size") {
    take_pool_size(agent, value);
  }
}

bool begins_agent(std::string_view line) {
  static constexpr std::string_view kWord = "Agent ";
  return line.substr(0, kWord.size()) == kWord && parse_uint(trim(line.substr(kWord.size())));
}

std::vector<Agent> agents_of(std::string_view text) {
  std::vector<Agent> agents;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (begins_agent(line)) {
      agents.emplace_back();
    } else if (!agents.empty() && colon != std::string_view::npos) {
      take(agents.back(), trim(line.substr(0, colon)),
           trim(line.substr(colon + 1)).substr(0, kMaxValueBytes));
    }
  }
  return agents;
}

}  // namespace

Result<Fingerprint> parse_rocminfo(std::string_view text, std::string_view arch) {
  std::vector<std::string> others;
  for (const Agent& agent : agents_of(text)) {
    if (!agent.is_gpu || agent.name.empty()) {
      continue;
    }
    if (!arch.empty() && agent.name != arch) {
      others.push_back(agent.name);
      continue;
    }
    Fingerprint out;
    out.device = agent.marketing_name.empty() ? agent.name : agent.marketing_name;
    out.isa = agent.name;
    out.hardware = agent.hardware;
    out.hardware.set(HardwareValue::kThreadsPerCore,
                     agent.waves_per_core * agent.hardware.get(HardwareValue::kWarpSize));
    return out;
  }
  if (others.empty()) {
    return fail(ErrorCode::kNotFound, "the output of rocminfo names no GPU");
  }
  return fail(ErrorCode::kNotFound, "the output of rocminfo has no ", quoted(arch, 40), ", but ",
              join(others, ", "));
}

}  // namespace foretune
