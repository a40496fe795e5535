#include "foretune/model/model_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "foretune/base/byte_io.h"
#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/features/expression_table.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

Model small_model() {
  Rng rng(21);
  return sample_model({.forests = 2, .candidates = 12, .forest = {.trees = 3, .max_leaves = 7}},
                      rng);
}

// Where the parts of a file lie; see docs/reference/file-formats/model.md.
constexpr std::size_t kMajorOffset = 8;
constexpr std::size_t kCountOffset = 12;
constexpr std::size_t kLengthOffset = 16;
constexpr std::size_t kCrcOffset = 24;
constexpr std::size_t kTableOffset = 32;
constexpr std::size_t kEntryBytes = 24;

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

template <class T>
T get(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

void repair_header(std::vector<std::byte>& bytes) {
  const std::span<const std::byte> all(bytes);
  const std::size_t table = get<std::uint32_t>(bytes, kCountOffset) * kEntryBytes;
  put(bytes, kCrcOffset, crc32c(all.subspan(kTableOffset, table), crc32c(all.first(kCrcOffset))));
}

void expect_refused(const std::vector<std::byte>& bytes, ErrorCode code, std::string_view reason) {
  const auto model = parse_model(bytes);
  ASSERT_FALSE(model.has_value()) << reason;
  EXPECT_EQ(model.error().code, code) << model.error().message;
  EXPECT_NE(model.error().message.find(reason), std::string::npos) << model.error().message;
}

TEST(ModelFile, ReturnsTheSameModel) {
  const Model model = small_model();
  ASSERT_TRUE(check_model(model)) << check_model(model).error().message;
  const auto read = parse_model(model_bytes(model));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, model);
  EXPECT_EQ(model_bytes(*read), model_bytes(model));
}

TEST(ModelFile, ReturnsTheSameModelFromDisk) {
  const Model model = small_model();
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.ftm";
  ASSERT_TRUE(write_model(model, path));
  const auto read = read_model(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, model);
  auto parts = read_model_parts(path);
  ASSERT_TRUE(parts.has_value()) << parts.error().message;
  EXPECT_TRUE(forests_of(parts->model).empty());
  ASSERT_TRUE(read_body(*parts));
  EXPECT_EQ(parts->model, model);
  std::filesystem::remove(path);
  EXPECT_EQ(read_model_parts(path).error().code, ErrorCode::kNotFound);
  const auto gone = read_model(path);
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
}

// The file carries a table of expressions, and no process has to know it.
TEST(ModelFile, CarriesTheTextOfItsFeatureTable) {
  Model model = small_model();
  ExpressionFeatures features{.name = "carried",
                              .problem_type = kGemmProblem,
                              .parameters = model.config_schema.parameters,
                              .columns = {}};
  const auto columns = (*find_feature_table(model.feature_table))->columns();
  const std::string first = model.config_schema.parameters.front().name;
  for (const FeatureInfo& column : columns) {
    features.columns.push_back({.name = std::string(column.name),
                                .expression = column.kind == FeatureKind::kProblem ? "m"
                                              : column.kind == FeatureKind::kConfig
                                                  ? first
                                                  : concat("m / ", first)});
  }
  model.feature_text = features.text();
  model.feature_table = features.name;
  model.feature_table_id = feature_table_id(**kept_expression_table(model.feature_text));
  EXPECT_TRUE(check_model(model));
  const auto read = parse_model(model_bytes(model));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, model);
  EXPECT_EQ((*feature_table_of(*read))->definition(), model.feature_text);
  EXPECT_TRUE(make_scorer(*read));
  Model other = model;
  other.feature_text += "column more m # m\n";
  EXPECT_EQ(check_model(other).error().code, ErrorCode::kMismatch);
  other.feature_text = "nonsense";
  EXPECT_EQ(check_model(other).error().code, ErrorCode::kCorrupt);
  other.feature_text.clear();
  const Status unknown = check_model(other);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_NE(unknown.error().message.find("needs the feature table 'carried'"), std::string::npos);
}

TEST(ModelFile, IsNotWrittenWhenItCouldNotBeUsed) {
  Model model = small_model();
  model.pool.clear();
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.ftm";
  EXPECT_FALSE(write_model(model, path));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ModelFile, EveryTruncationIsRefused) {
  const std::vector<std::byte> bytes = model_bytes(small_model());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_model(std::span(bytes).first(size)).has_value()) << size;
  }
}

TEST(ModelFile, EveryFlippedByteIsNoticedOrWithoutMeaning) {
  const Model model = small_model();
  const std::vector<std::byte> bytes = model_bytes(model);
  std::size_t unnoticed = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= std::byte{0x41};
    const auto read = parse_model(damaged);
    if (read) {
      EXPECT_EQ(*read, model) << i;
      ++unnoticed;
    }
  }
  // Padding, the reserved word and nothing else.
  EXPECT_LE(unnoticed, 4U + 9U * 7U);
}

TEST(ModelFile, RefusesOtherFilesAndVersionsWithTheReason) {
  const std::vector<std::byte> good = model_bytes(small_model());
  std::vector<std::byte> bytes = good;
  bytes[0] = std::byte{'#'};
  expect_refused(bytes, ErrorCode::kCorrupt, "not a Foretune model file");
  bytes = good;
  put(bytes, kMajorOffset, std::uint16_t{2});
  expect_refused(bytes, ErrorCode::kUnsupported, "version 2.0");
  bytes = good;
  put(bytes, kMajorOffset, std::uint16_t{0});
  expect_refused(bytes, ErrorCode::kCorrupt, "0.0");
  bytes = good;
  bytes.push_back(std::byte{0});
  expect_refused(bytes, ErrorCode::kCorrupt, "instead of");
  bytes = good;
  put(bytes, kTableOffset + 8, std::uint64_t{5});
  expect_refused(bytes, ErrorCode::kCorrupt, "checksum of its header");
  bytes = good;
  bytes.back() ^= std::byte{1};
  expect_refused(bytes, ErrorCode::kCorrupt, "checksum of its section 'model card'");
}

TEST(ModelFile, RefusesHostileTables) {
  const std::vector<std::byte> good = model_bytes(small_model());
  std::vector<std::byte> bytes = good;
  put(bytes, kCountOffset, UINT32_MAX);
  expect_refused(bytes, ErrorCode::kCorrupt, "sections");
  for (const std::uint64_t offset : {std::uint64_t{UINT64_MAX}, std::uint64_t{good.size()} + 1}) {
    bytes = good;
    put(bytes, kTableOffset + 8, offset);
    repair_header(bytes);
    expect_refused(bytes, ErrorCode::kCorrupt, "after the end");
  }
  bytes = good;
  put(bytes, kTableOffset + 16, std::uint64_t{UINT64_MAX});
  repair_header(bytes);
  expect_refused(bytes, ErrorCode::kCorrupt, "after the end");
  bytes = good;
  put(bytes, kTableOffset, get<std::uint32_t>(bytes, kTableOffset + kEntryBytes));
  repair_header(bytes);
  expect_refused(bytes, ErrorCode::kCorrupt, "no section 'identity'");
}

TEST(ModelFile, SkipsSectionsAndMinorVersionsOfTheFuture) {
  const Model model = small_model();
  const std::vector<std::byte> good = model_bytes(model);
  const auto count = get<std::uint32_t>(good, kCountOffset);
  const std::size_t table_end = kTableOffset + count * kEntryBytes;
  // One more entry in front of the bodies, which all move back by its size.
  std::vector<std::byte> bytes(good.begin(), good.begin() + static_cast<long>(table_end));
  bytes.resize(table_end + kEntryBytes);
  bytes.insert(bytes.end(), good.begin() + static_cast<long>(table_end), good.end());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = kTableOffset + i * kEntryBytes + 8;
    put(bytes, at, get<std::uint64_t>(bytes, at) + kEntryBytes);
  }
  put(bytes, table_end, std::uint32_t{0x5a5a5a5a});
  put(bytes, table_end + 8, static_cast<std::uint64_t>(bytes.size()));
  put(bytes, kCountOffset, count + 1);
  put(bytes, kLengthOffset, static_cast<std::uint64_t>(bytes.size()));
  put(bytes, kMajorOffset + 2, std::uint16_t{7});
  repair_header(bytes);
  const auto read = parse_model(bytes);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, model);
}

// Packed leaf values, and those that cannot be: other exponents, zeros of both signs, subnormals.
TEST(ModelFile, KeepsEveryBitOfLeafValues) {
  Rng rng(23);
  Model model = sample_model({.forest = {.trees = 9, .max_leaves = 80, .vary_leaves = false}}, rng);
  std::vector<Forest> forests = forests_of(model);
  std::vector<double>& values = forests.front().leaf_value;
  const auto read_again = [&] {
    set_forests(model, forests);
    return parse_model(model_bytes(model));
  };
  const std::array hard{0.0,    -0.0, 5e-324, -5e-324, 1e308, -1e308, 2.2250738585072014e-308,
                        1e-200, 1.0,  -1.0,   1e-5,    -1e5};
  std::copy(hard.begin(), hard.end(), values.begin());
  for (std::size_t i = hard.size(); i < values.size(); ++i) {
    values[i] = std::ldexp(rng.normal(), static_cast<int>(rng.below(24)) - 12);
  }
  const auto read = read_again();
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const std::vector<double>& kept = forests_of(*read).front().leaf_value;
  ASSERT_EQ(kept.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(kept[i]), std::bit_cast<std::uint64_t>(values[i])) << i;
  }
  // All of one far exponent: the window of exponents ends with the highest there is.
  std::fill(values.begin(), values.end(), 1.5e308);
  EXPECT_EQ(*read_again(), model);
  std::fill(values.begin(), values.end(), -5e-324);
  EXPECT_EQ(*read_again(), model);
}

TEST(ModelFile, TakesAFewBytesPerLeaf) {
  Rng rng(22);
  const Model model = sample_model(
      {.forest = {.trees = 300, .max_leaves = 127, .vary_leaves = false, .any_missing = false}},
      rng);
  const double bytes_per_leaf = static_cast<double>(model_bytes(model).size()) / (300.0 * 127.0);
  // Seven of them are the value. LightGBM's text has 93 for a forest like this.
  EXPECT_LT(bytes_per_leaf, 11.5);
}

TEST(CheckModel, RefusesWhatDoesNotFitTogether) {
  const Model good = small_model();
  struct Case {
    const char* what;
    std::function<void(Model&)> damage;
    ErrorCode code;
  };
  const std::vector<Case> cases{
      {"kind", [](Model& m) { m.kind = "mlp"; }, ErrorCode::kUnsupported},
      {"family", [](Model& m) { m.family.clear(); }, ErrorCode::kCorrupt},
      {"problem type", [](Model& m) { m.problem_type = static_cast<ProblemType>(99); },
       ErrorCode::kUnsupported},
      {"problem schema", [](Model& m) { m.problem_schema ^= 1; }, ErrorCode::kMismatch},
      {"space", [](Model& m) { m.space_text = "nonsense"; }, ErrorCode::kCorrupt},
      {"config schema", [](Model& m) { m.config_schema.version = 9; }, ErrorCode::kMismatch},
      {"table", [](Model& m) { m.feature_table = "none"; }, ErrorCode::kNotFound},
      {"table id", [](Model& m) { m.feature_table_id ^= 1; }, ErrorCode::kMismatch},
      {"other table",
       [](Model& m) {
         m.feature_table = "gemm-null";
         m.feature_table_id = feature_table_id(**find_feature_table("gemm-null"));
       },
       ErrorCode::kMismatch},
      {"no pool", [](Model& m) { m.pool.clear(); }, ErrorCode::kCorrupt},
      {"pool of another schema", [](Model& m) { m.pool[3].schema ^= 1; }, ErrorCode::kMismatch},
      {"short config", [](Model& m) { m.pool[3].words.resize(5); }, ErrorCode::kMismatch},
      {"repeated config", [](Model& m) { m.pool[3] = m.pool[1]; }, ErrorCode::kCorrupt},
      {"portfolio", [](Model& m) { m.portfolio.push_back(12); }, ErrorCode::kCorrupt},
      {"portfolio twice", [](Model& m) { m.portfolio.push_back(3); }, ErrorCode::kCorrupt},
      {"no forest", [](Model& m) { set_forests(m, {}); }, ErrorCode::kCorrupt},
      {"forest", [](Model& m) { edit_forests(m, [](auto& forests) { forests[1].left[0] = 100; }); },
       ErrorCode::kCorrupt},
      {"features",
       [](Model& m) { edit_forests(m, [](auto& forests) { forests[1].feature_count += 1; }); },
       ErrorCode::kMismatch},
      {"target", [](Model& m) { m.target = "speed"; }, ErrorCode::kUnsupported},
      {"residual", [](Model& m) { m.residual_std = -1; }, ErrorCode::kCorrupt},
      {"residual nan", [](Model& m) { m.residual_std = std::numeric_limits<double>::quiet_NaN(); },
       ErrorCode::kCorrupt},
      {"ranges", [](Model& m) { m.problem_range.pop_back(); }, ErrorCode::kCorrupt},
      {"range order", [](Model& m) { m.problem_range[0] = {2, 1}; }, ErrorCode::kCorrupt},
      {"hardware", [](Model& m) { m.fingerprint.hardware.set(HardwareValue::kCores, -4); },
       ErrorCode::kCorrupt}};
  ASSERT_TRUE(check_model(good));
  for (const Case& test : cases) {
    Model model = good;
    test.damage(model);
    const Status status = check_model(model);
    ASSERT_FALSE(status) << test.what;
    EXPECT_EQ(status.error().code, test.code) << test.what << ": " << status.error().message;
  }
}

TEST(CheckModel, RefusesLabelsThatDoNotExist) {
  Model model = small_model();
  model.config_schema.parameters[3].labels = {"a", "b"};
  for (Config& config : model.pool) {
    config.schema = model.config_schema.id();
  }
  SpaceDefinition space = sample_space();
  space.schema = model.config_schema;
  space.domains.clear();
  model.space_text = space.text();
  const Status status = check_model(model);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("has no label"), std::string::npos)
      << status.error().message;
}

// Made by the first version that had the format. It must be read for ever, and say the same.
Model golden_model() {
  Model model;
  model.problem_type = kGemmProblem;
  model.kind = "gbdt";
  model.family = "golden";
  model.problem_schema = 0x1122334455667788U;
  model.config_schema = {.name = "golden-config",
                         .version = 3,
                         .kind = SchemaKind::kParametric,
                         .parameters = {{"tile", {}}, {"order", {"nkm", "mkn"}}}};
  model.space_text = "space golden-config 3 gemm\nparameter tile [] 4 8\n";
  model.feature_table = "golden-table";
  model.feature_table_id = 42;
  model.fingerprint.device = "a device";
  model.fingerprint.isa = "an isa";
  model.fingerprint.system = "a system";
  model.fingerprint.hardware.set(HardwareValue::kCores, 2);
  model.fingerprint.hardware.set(HardwareValue::kFmaPeakGflops, 83.2);
  for (const std::int32_t tile : {4, 8, -70000}) {
    Config config{.schema = model.config_schema.id()};
    config.words.push_back(tile);
    config.words.push_back(tile == 8 ? 1 : 0);
    model.pool.push_back(config);
  }
  model.portfolio = {2, 0};
  model.target = "log";
  model.residual_std = 0.0625;
  model.problem_range = {{0.5, 12.25}, {-3, -3}};
  model.seed = 99;
  model.data_fingerprint = Digest{1, 2};
  model.card_json = R"({"rows": 17})";
  Forest grown;
  grown.feature_count = 5;
  grown.trees = {{0, 3, 0, 4}, {3, 0, 4, 1}, {3, 1, 5, 2}};
  grown.feature = {3, 0, 3, 2};
  grown.threshold = {0.1, -7, 0.1, std::numeric_limits<double>::infinity()};
  grown.left = {1, ~0, ~1, ~0};
  grown.right = {2, ~2, ~3, ~1};
  grown.default_left = {0, 1, 0, 0};
  grown.missing = {Forest::Missing::kNone, Forest::Missing::kNan, Forest::Missing::kNone,
                   Forest::Missing::kNan};
  grown.leaf_value = {0.25, -1, 1e-3, 1e300, 5, 6, 7};
  Forest odd;  // a tree that did not grow leaf by leaf
  odd.feature_count = 5;
  odd.trees = {{0, 2, 0, 3}, {2, 0, 3, 1}};
  odd.feature = {1, 4};
  odd.threshold = {0.5, -0.0};
  odd.left = {1, ~2};
  odd.right = {~0, ~1};
  odd.default_left = {1, 0};
  odd.missing = {Forest::Missing::kNan, Forest::Missing::kZero};
  odd.leaf_value = {1, 2, 3, -0.5};
  set_forests(model, {grown, odd});
  return model;
}

TEST(ModelFile, GoldenFileOfVersion1IsReadAndWrittenTheSame) {
  const Model golden = golden_model();
  for (const Forest& forest : forests_of(golden)) {
    ASSERT_TRUE(forest.validate()) << forest.validate().error().message;
  }
  const std::filesystem::path path = FORETUNE_SOURCE_DIR "/foretune/model/testdata/model_v1.ftm";
  const auto bytes = read_file(path);
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  const auto model = parse_model(*bytes);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(*model, golden_model());
  EXPECT_EQ(model_bytes(golden_model()), *bytes);
}

}  // namespace
}  // namespace foretune
