// Fuzzes model files: any bytes must give a model or a reason. The target writes a model back,
// reads it again, checks it, and uses it when it passes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/metrics/metrics_body.h"
#include "foretune/model/model_file.h"
#include "foretune/select/select.h"

namespace {

// Lets the fuzzer past the checksums: replaces the ones in the file by the right ones.
void repair_file(std::span<std::byte> bytes) {
  constexpr std::size_t kTable = 32;
  constexpr std::size_t kEntry = 24;
  if (bytes.size() < kTable) {
    return;
  }
  const auto put = [&](std::size_t offset, auto value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
  };
  const auto get = [&](std::size_t offset, auto value) {
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  put(16, static_cast<std::uint64_t>(bytes.size()));
  const std::uint64_t count = get(12, std::uint32_t{0});
  if (count > (bytes.size() - kTable) / kEntry) {
    return;
  }
  const std::span<const std::byte> all(bytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t at = kTable + i * kEntry;
    const auto offset = get(at + 8, std::uint64_t{0});
    const auto length = get(at + 16, std::uint64_t{0});
    if (offset <= bytes.size() && length <= bytes.size() - offset) {
      put(at + 4, foretune::crc32c(all.subspan(offset, length)));
    }
  }
  put(24, foretune::crc32c(all.subspan(kTable, count * kEntry), foretune::crc32c(all.first(24))));
}

// Files within the file, of models of several metrics, come first: each ends where its length says.
void repair_checksums(std::vector<std::byte>& bytes) {
  constexpr std::size_t kMagic = 8;
  constexpr std::size_t kLength = 16;
  const std::span<std::byte> all(bytes);
  for (std::size_t at = kMagic; at + kMagic + kLength < bytes.size(); ++at) {
    if (std::memcmp(bytes.data() + at, bytes.data(), kMagic) == 0) {
      std::uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at + kLength, sizeof(length));
      if (length <= bytes.size() - at) {
        repair_file(all.subspan(at, static_cast<std::size_t>(length)));
      }
    }
  }
  repair_file(all);
}

// Picks by the last of the metrics, under a bound on the first.
void try_objective(const foretune::Model& model) {
  if (metrics_of(model).empty()) {
    return;
  }
  const foretune::MetricInfo& last = metrics_of(model).back().metric;
  const auto objective = foretune::Objective::parse(
      foretune::concat(to_string(last.direction), " ", last.name, " subject to ",
                       metrics_of(model).front().metric.name, " <= 1"));
  if (!objective) {
    return;
  }
  const auto selector = foretune::Selector::create(model, {.objective = *objective});
  if (selector) {
    const auto problem = foretune::Problem::parse("gemm m=100 n=256 k=512");
    const foretune::Choice choice = (*selector)->select(*problem);
    if (choice.has_candidate && choice.candidate >= (*selector)->pool_size()) {
      std::abort();
    }
    static_cast<void>((*selector)->explain(*problem, choice));
    static_cast<void>((*selector)->predict_metrics(*problem, std::array{choice.candidate}));
  }
}

void try_model(std::span<const std::byte> bytes) {
  const auto model = foretune::parse_model(bytes);
  if (!model) {
    if (model.error().message.empty()) {
      std::abort();
    }
    return;
  }
  // The reader has validated the forests, so validation must pass again.
  for (const foretune::Forest& forest : forests_of(*model)) {
    if (!forest.validate()) {
      std::abort();
    }
  }
  // NaNs make a model differ from itself; the bytes written do not.
  const std::vector<std::byte> written = foretune::model_bytes(*model);
  const auto again = foretune::parse_model(written);
  if (!again || foretune::model_bytes(*again) != written) {
    std::abort();
  }
  const auto selector = foretune::Selector::create(*model);
  if (selector) {
    try_objective(*model);
    const auto problem = foretune::Problem::parse("gemm m=100 n=256 k=512");
    const foretune::Choice choice = (*selector)->select(*problem);
    const foretune::FastChoice fast = (*selector)->select_fast(*problem);
    for (const foretune::Choice& any : {choice, fast.choice}) {
      if (any.has_candidate && any.candidate >= (*selector)->pool_size()) {
        std::abort();
      }
      static_cast<void>((*selector)->explain(*problem, any));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try_model(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  repair_checksums(repaired);
  try_model(repaired);
  return 0;
}
