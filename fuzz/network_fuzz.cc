// Files of networks and tasks, any bytes: a network that is written and read again as it is, can be
// simplified and asked for its layers' variants, or a reason.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/hash.h"
#include "foretune/graph/network_file.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/variant.h"
#include "foretune/graph/simplify.h"
#include "foretune/graph/task.h"

namespace {

using foretune::graph::Network;
using foretune::graph::Node;

constexpr std::size_t kHead = 16;  // magic, version, checksum

void check(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// Lets the fuzzer past the checksum.
void repair_checksum(std::span<std::byte> bytes) {
  if (bytes.size() >= kHead) {
    const std::uint32_t checksum = foretune::crc32c(bytes.subspan(kHead));
    std::memcpy(bytes.data() + kHead - sizeof(checksum), &checksum, sizeof(checksum));
  }
}

// The file of a task begins with that of its network.
void repair_checksums(std::span<std::byte> bytes) {
  if (foretune::graph::is_task(bytes) && bytes.size() > kHead) {
    const std::span<std::byte> body = bytes.subspan(kHead);
    foretune::ByteReader reader(body);
    const auto size = static_cast<std::size_t>(reader.get_count(1));
    repair_checksum(body.subspan(reader.position(), size));
  }
  repair_checksum(bytes);
}

void try_network(const Network& network) {
  // Numbers that are none differ from themselves; the bytes written do not.
  const std::vector<std::byte> written = foretune::graph::network_bytes(network);
  const auto again = foretune::graph::parse_network(written);
  check(again && foretune::graph::network_bytes(*again) == written);
  const auto simple = foretune::graph::simplify(network);
  check(simple || !simple.error().message.empty());
  const auto knobs = foretune::graph::knob_catalogue("all");
  check(knobs.has_value());
  for (const Node* const layer : foretune::graph::layers_of(network)) {
    for (const std::int32_t knob : *knobs) {
      const auto variant = foretune::graph::variant_of_knob(knob);
      check(variant && foretune::graph::knob_of(*variant) == knob);
      const foretune::Support support = foretune::graph::can_run(network, *layer, *variant);
      check(support || !support.reason().empty());
    }
  }
}

void try_bytes(std::span<const std::byte> bytes) {
  const auto network = foretune::graph::parse_network(bytes);
  if (network) {
    try_network(*network);
  } else {
    check(!network.error().message.empty());
  }
  const auto task = foretune::graph::parse_task(bytes);
  if (!task) {
    check(!task.error().message.empty());
    return;
  }
  try_network(task->network);
  const std::vector<std::byte> written = foretune::graph::task_bytes(*task);
  const auto again = foretune::graph::parse_task(written);
  check(again && foretune::graph::task_bytes(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try_bytes(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  repair_checksums(repaired);
  try_bytes(repaired);
  return 0;
}
