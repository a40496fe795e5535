#include "foretune/space/schemas/sparse_cpu.h"

#include <array>

namespace foretune {
namespace {

constexpr std::size_t kSparseCpuWordsV1 = 12;

std::uint64_t sparse_cpu_schema_id() {
  // Ids are compared for every config that is read.
  static const std::uint64_t kId = sparse_cpu_schema().id();
  return kId;
}

}  // namespace

const ConfigSchema& sparse_cpu_schema() {
  static const ConfigSchema kSchema{
      .name = "sparse-cpu",
      .version = 2,
      .kind = SchemaKind::kParametric,
      .parameters = {{"isa", {"generic", "avx2", "avx512"}},
                     {"format", {"csr", "sell", "bcsr", "diagonals"}},
                     {"vector", {"columns", "entries", "rows", "none"}},
                     {"vectors", {}},
                     {"unroll", {}},
                     {"group", {}},
                     {"row_tile", {}},
                     {"height", {}},
                     {"window", {}},
                     {"threads", {}},
                     {"partition", {"rows", "non_zeros", "columns", "dynamic"}},
                     {"chunk", {}},
                     {"width", {}},
                     {"gather", {"instruction", "loads"}},
                     {"store", {"plain", "stream"}},
                     {"sums", {"registers", "buffer"}},
                     {"prefetch", {}}}};
  return kSchema;
}

const ConfigSchema& sparse_cpu_schema_v1() {
  static const ConfigSchema kSchema = [] {
    ConfigSchema schema = sparse_cpu_schema();
    schema.version = 1;
    schema.parameters.resize(kSparseCpuWordsV1);
    schema.parameters[static_cast<std::size_t>(SparseCpuField::kFormat)].labels.resize(2);
    return schema;
  }();
  return kSchema;
}

Result<SparseCpuConfig> SparseCpuConfig::from(const Config& config) {
  static const std::uint64_t kIdV1 = sparse_cpu_schema_v1().id();
  const std::size_t words = config.schema == kIdV1 ? kSparseCpuWordsV1 : kSparseCpuWords;
  if ((config.schema != sparse_cpu_schema_id() && config.schema != kIdV1) ||
      config.words.size() != words) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema sparse-cpu");
  }
  constexpr std::int32_t kMaxRows = 1 << 28;
  static constexpr std::array<std::int32_t, kSparseCpuWords> kLow{0, 0, 0, 1, 1, 1, 1, 1, 1,
                                                                  1, 0, 1, 1, 0, 0, 0, 0};
  static constexpr std::array<std::int32_t, kSparseCpuWords> kHigh{
      2, 3, 3, 8, 8, 4, kMaxRows, 256, kMaxRows, 64, 3, kMaxRows, 64, 1, 1, 1, 64};
  for (std::size_t i = 0; i < words; ++i) {
    if (config.words[i] < kLow[i] || config.words[i] > kHigh[i]) {
      return fail(ErrorCode::kInvalidArgument, sparse_cpu_schema().parameters[i].name,
                  " must be from ", kLow[i], " to ", kHigh[i], ", not ", config.words[i]);
    }
  }
  // The least value of a word that version 1 lacks is what its configs mean.
  const auto word = [&](SparseCpuField field) {
    const auto at = static_cast<std::size_t>(field);
    return at < words ? config.words[at] : kLow[at];
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
      .chunk = word(SparseCpuField::kChunk),
      .width = word(SparseCpuField::kWidth),
      .gather = static_cast<SparseGather>(word(SparseCpuField::kGather)),
      .store = static_cast<SparseStore>(word(SparseCpuField::kStore)),
      .sums = static_cast<SparseSums>(word(SparseCpuField::kSums)),
      .prefetch = word(SparseCpuField::kPrefetch)};
}

Config SparseCpuConfig::to_config() const {
  return Config{
      .schema = sparse_cpu_schema_id(),
      .words = {static_cast<std::int32_t>(isa), static_cast<std::int32_t>(format),
                static_cast<std::int32_t>(vector), vectors, unroll, group, row_tile, height, window,
                threads, static_cast<std::int32_t>(partition), chunk, width,
                static_cast<std::int32_t>(gather), static_cast<std::int32_t>(store),
                static_cast<std::int32_t>(sums), prefetch}};
}

}  // namespace foretune
