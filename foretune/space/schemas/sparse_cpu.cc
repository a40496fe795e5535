#include "foretune/space/schemas/sparse_cpu.h"

#include <array>

namespace foretune {
namespace {

std::uint64_t sparse_cpu_schema_id() {
  // Ids are compared for every config that is read.
  static const std::uint64_t kId = sparse_cpu_schema().id();
  return kId;
}

}  // namespace

const ConfigSchema& sparse_cpu_schema() {
  static const ConfigSchema kSchema{
      .name = "sparse-cpu",
      .version = 1,
      .kind = SchemaKind::kParametric,
      .parameters = {{"isa", {"generic", "avx2", "avx512"}},
                     {"format", {"csr", "sell"}},
                     {"vector", {"columns", "entries", "rows", "none"}},
                     {"vectors", {}},
                     {"unroll", {}},
                     {"group", {}},
                     {"row_tile", {}},
                     {"height", {}},
                     {"window", {}},
                     {"threads", {}},
                     {"partition", {"rows", "non_zeros", "columns", "dynamic"}},
                     {"chunk", {}}}};
  return kSchema;
}

Result<SparseCpuConfig> SparseCpuConfig::from(const Config& config) {
  if (config.schema != sparse_cpu_schema_id() || config.words.size() != kSparseCpuWords) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema sparse-cpu");
  }
  constexpr std::int32_t kMaxRows = 1 << 28;
  static constexpr std::array<std::int32_t, kSparseCpuWords> kLow{0, 0, 0, 1, 1, 1,
                                                                  1, 1, 1, 1, 0, 1};
  static constexpr std::array<std::int32_t, kSparseCpuWords> kHigh{
      2, 1, 3, 8, 8, 4, kMaxRows, 256, kMaxRows, 64, 3, kMaxRows};
  for (std::size_t i = 0; i < kSparseCpuWords; ++i) {
    if (config.words[i] < kLow[i] || config.words[i] > kHigh[i]) {
      return fail(ErrorCode::kInvalidArgument, sparse_cpu_schema().parameters[i].name,
                  " must be from ", kLow[i], " to ", kHigh[i], ", not ", config.words[i]);
    }
  }
  const auto word = [&](SparseCpuField field) {
    return config.words[static_cast<std::size_t>(field)];
  };
  return SparseCpuConfig{
      .isa = static_cast<CpuIsa>(word(SparseCpuField::kIsa)),
      .format = static_cast<SparseFormat>(word(SparseCpuField::kFormat)),
      .vector = static_cast<SparseVector>(word(SparseCpuField::kVector)),
      .vectors = word(SparseCpuField::kVectors),
      .unroll = word(SparseCpuField::kUnroll),
      .group = word(SparseCpuField::kGroup),
      .row_tile = word(SparseCpuField::kRowTile),
      .height = word(SparseCpuField::kHeight),
      .window = word(SparseCpuField::kWindow),
      .threads = word(SparseCpuField::kThreads),
      .partition = static_cast<SparsePartition>(word(SparseCpuField::kPartition)),
      .chunk = word(SparseCpuField::kChunk)};
}

Config SparseCpuConfig::to_config() const {
  return Config{.schema = sparse_cpu_schema_id(),
                .words = {static_cast<std::int32_t>(isa), static_cast<std::int32_t>(format),
                          static_cast<std::int32_t>(vector), vectors, unroll, group, row_tile,
                          height, window, threads, static_cast<std::int32_t>(partition), chunk}};
}

}  // namespace foretune
