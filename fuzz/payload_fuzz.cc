// Any bytes as a file of weights, as the index of a folder of payloads and as what is known of one:
// read or refused, and what was read is inside the bytes and reads the same once written.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm_weights.h"
#include "foretune/problem/gemm/npy.h"
#include "foretune/problem/internal/payload_files.h"

namespace {

using namespace foretune::problem_internal;  // NOLINT(google-build-using-namespace): all is about
                                             // it

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void read_weights(std::span<const std::byte> bytes) {
  const auto matrix = parse_npy(bytes);
  if (matrix) {
    require(matrix->rows >= 1 && matrix->columns >= 1);
    require(matrix->values.size() / 4 / static_cast<std::size_t>(matrix->rows) ==
            static_cast<std::size_t>(matrix->columns));
    require(matrix->values.data() >= bytes.data() &&
            matrix->values.data() + matrix->values.size() == bytes.data() + bytes.size());
    const auto problem = foretune::GemmProblem::create(
        {.m = 1, .n = matrix->columns, .k = matrix->rows, .payload = {1, 2}});
    std::vector<float> values(matrix->values.size() / 4);
    if (problem) {
      static_cast<void>(foretune::read_gemm_weights(*problem, bytes, values));
    }
  }
  const foretune::PayloadInfo& info = foretune::gemm_weights_info();
  std::vector<double> described(info.values.size());
  if (info.describe(bytes, described)) {
    for (const double value : described) {
      require(std::isfinite(value));
    }
  }
}

void read_texts(const std::string& text) {
  if (const auto index = parse_payload_index(text)) {
    const auto again = parse_payload_index(payload_index_text(*index));
    require(again.has_value() && *again == *index);
  }
  static constexpr std::array<std::string_view, 2> kNames{"zeros", "log2_largest"};
  static constexpr foretune::PayloadInfo kInfo{.name = "w", .version = 1, .values = kNames};
  constexpr foretune::Digest kDigest{1, 2};
  if (const auto descriptor = parse_payload_descriptor(text, kInfo, kDigest)) {
    const auto again =
        parse_payload_descriptor(payload_descriptor_text(*descriptor), kInfo, kDigest);
    require(again.has_value() && again->values == descriptor->values);
  }
}

// Lets the fuzzer past the checksum: the line that was last is replaced by the right one.
std::string with_checksum(std::string_view text) {
  const std::size_t end = text.substr(0, text.empty() ? 0 : text.size() - 1).rfind('\n');
  const std::string_view body = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  const std::uint32_t crc = foretune::crc32c(foretune::bytes_of(body));
  return foretune::concat(body, "crc32c ", foretune::Digest{0, crc}.hex().substr(24), "\n");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_weights(std::as_bytes(std::span(data, size)));
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_texts(text);
  read_texts(with_checksum(text));
  return 0;
}
