// The blocks of a data set file and how values are written in them
// (docs/reference/file-formats/dataset.md). For the module alone. Readers check every length
// before they use it. Thread safety: free functions; a BlockReader belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"

namespace foretune::dataset_internal {

inline constexpr std::array<char, 8> kMagic{'F', 'T', 'D', 'A', 'T', 'A', '\x1a', '\n'};
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::size_t kPreambleSize = kMagic.size() + sizeof(std::uint32_t);
inline constexpr std::size_t kBlockHeadSize = 12;

// Stored in files: never renumber. A reader refuses types it does not know: they may hold rows.
enum class BlockType : std::uint8_t {
  kHeader = 1,
  kProblems = 2,
  kConfigs = 3,
  kContexts = 4,
  kReasons = 5,
  kRow = 6,
  kSegment = 7,
  kBaselines = 8,
  kMetrics = 9,           // those beside the common ones
  kMetricBaselines = 10,  // baselines with other metrics than the time
  kNotes = 11,
};

void append_preamble(ByteWriter& out);
void append_block(ByteWriter& out, BlockType type, std::span<const std::byte> payload);

struct Block {
  BlockType type = BlockType::kHeader;
  std::span<const std::byte> payload;
  std::size_t position = 0;  // of its head in the file
};

// Walks the blocks of a file. A file that ends inside a block is torn there: everything before
// stands. A block that is whole but does not match its checksum is damage, wherever it is.
class BlockReader {
 public:
  static Result<BlockReader> create(std::span<const std::byte> file);
  // Continues with the blocks from byte `position` on; `rest` is the file from there.
  static BlockReader resume(std::span<const std::byte> rest, std::size_t position);
  // The next block; nothing at the end or at a torn tail.
  Result<std::optional<Block>> next();
  // Bytes from the last whole block to the end of the file.
  [[nodiscard]] std::size_t torn_bytes() const { return file_.size() - (position_ - begin_); }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  BlockReader(std::span<const std::byte> bytes, std::size_t begin, std::size_t position)
      : file_(bytes), begin_(begin), position_(position) {}
  std::span<const std::byte> file_;  // from byte begin_ on
  std::size_t begin_;
  std::size_t position_;
};

void encode_header(ByteWriter& out, const DatasetHeader& header);
Result<DatasetHeader> decode_header(std::span<const std::byte> payload);

void encode_problem(ByteWriter& out, const Problem& problem);
void encode_config(ByteWriter& out, const Config& config);
void encode_context(ByteWriter& out, const Context& context);
void encode_metric_info(ByteWriter& out, const MetricInfo& info);
void encode_baseline(ByteWriter& out, const Dataset::Baseline& baseline);
void encode_metric_baseline(ByteWriter& out, const Dataset::Baseline& baseline);
// Ids refer to the definitions before in the file.
void encode_row(ByteWriter& out, const Dataset::Row& row,
                std::span<const Dataset::ExtraMetric> extras, std::span<const float> samples_ns);
// Rows [begin, end) of `dataset` as columns.
void encode_segment(ByteWriter& out, const Dataset& dataset, std::size_t begin, std::size_t end,
                    bool keep_samples);

// Adds what a block holds (anything but the header) to `dataset`.
Status decode_block(const Block& block, Dataset& dataset);
Status decode_segment(ByteReader& reader, Dataset& dataset);

// The parts that rows and segments share.
inline constexpr std::size_t kMinMetricBytes = 18;
void encode_metric(ByteWriter& out, const Dataset::ExtraMetric& metric);
Result<Dataset::ExtraMetric> decode_metric(ByteReader& reader, const Dataset& dataset);
Result<std::vector<float>> decode_samples(ByteReader& reader, std::uint64_t count);
std::uint8_t pack_outcome(Outcome outcome, Stage stage);
void unpack_outcome(std::uint8_t packed, Outcome& outcome, Stage& stage);
Status check_definitions(const Dataset& dataset, std::uint64_t problem, std::uint64_t config,
                         std::uint64_t context, std::uint64_t reason);

}  // namespace foretune::dataset_internal
