#include "foretune/interop/tables/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/testing/datasets.h"
#include "foretune/interop/tables/internal/exchange_io.h"
#include "foretune/interop/tables/testing/documents.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;
using testing_support::contents_of;
using testing_support::DocumentChange;
using testing_support::expect_refused;
using testing_support::expect_same;
using testing_support::random_dataset;
using testing_support::TemporaryFolder;

constexpr std::uint64_t kSeed = 20251121;

// Every problem type that this build knows, both kinds of schema.
template <class Check>
void for_random_datasets(int count, const Check& check) {
  for (const ProblemTypeInfo* type : problem_types()) {
    const ProblemSchema& problem = type->schema;
    for (const SchemaKind kind : {SchemaKind::kParametric, SchemaKind::kSequence}) {
      for (int i = 0; i < count; ++i) {
        Rng rng = Rng(kSeed).split(static_cast<std::uint64_t>(i));
        check(random_dataset(problem, kind, rng.below(60), rng),
              concat(problem.name, kind == SchemaKind::kSequence ? " sequence " : " parametric ",
                     "seed ", kSeed, " case ", i));
      }
    }
  }
}

TEST(Exchange, JsonMessagePackAndOurFileHoldEverything) {
  for_random_datasets(60, [](const Dataset& dataset, const std::string& where) {
    for (const ExchangeFormat format :
         {ExchangeFormat::kJson, ExchangeFormat::kMsgpack, ExchangeFormat::kForetune}) {
      const auto bytes = export_bytes(dataset, format);
      ASSERT_TRUE(bytes) << where << ": " << bytes.error().message;
      const auto read = format == ExchangeFormat::kForetune ? read_dataset_bytes(*bytes)
                                                            : import_json_bytes(*bytes, format);
      ASSERT_TRUE(read) << where << ": " << read.error().message;
      expect_same(dataset, *read, concat(where, ", ", to_string(format)));
      // The same bytes again: what is read back is written alike.
      EXPECT_EQ(*export_bytes(*read, format), *bytes) << where;
    }
  });
}

TEST(Exchange, CsvHoldsEverythingButTheSamples) {
  for_random_datasets(120, [](const Dataset& dataset, const std::string& where) {
    const auto text = export_csv_text(dataset);
    ASSERT_TRUE(text) << where << ": " << text.error().message;
    ImportReport report;
    const auto read = import_csv_text(*text, dataset.header(), &report);
    ASSERT_TRUE(read) << where << ": " << read.error().message << "\n" << *text;
    EXPECT_EQ(report.rows_kept, dataset.size() + dataset.baselines().size()) << where;
    Dataset without(dataset.header());
    for (Measurement& measurement : contents_of(dataset).rows) {
      measurement.samples_ns.clear();
      without.add(measurement);
    }
    for (const Dataset::Baseline& baseline : dataset.baselines()) {
      Dataset::Baseline own = baseline;
      own.problem = without.intern_problem(dataset.problems()[baseline.problem]);
      without.add_baseline(std::move(own));
    }
    expect_same(without, *read, where);
  });
}

TEST(Exchange, ACsvIsOfTheTypeWithTheMostOfItsColumns) {
  const auto type_of = [](std::string_view columns, std::string_view cells) {
    const auto read = import_csv_text(concat(columns, ",tile,time_ns\n", cells, ",8,100\n"), {});
    EXPECT_TRUE(read) << columns << ": " << read.error().message;
    return read ? read->problems().front().text() : std::string();
  };
  EXPECT_THAT(type_of("m,n,k", "3,5,7"), HasSubstr("gemm op=mm m=3"));
  EXPECT_THAT(type_of("m,n,k,ta", "3,5,7,yes"), HasSubstr("nest_mm m=3"));
  EXPECT_THAT(type_of("s,c,h,w,o,r", "1,2,3,4,5,1"), HasSubstr("nest_conv b=1 c=2"));
  EXPECT_THAT(type_of("r,c,op", "3,5,max"), HasSubstr("nest_reduce r=3 c=5 op=max"));
  EXPECT_THAT(type_of("r,c,chain", "3,5,relu"), HasSubstr("nest_map r=3"));
}

TEST(Exchange, FilesAreRecognisedByTheirContent) {
  const TemporaryFolder folder;
  const Dataset dataset = testing_support::golden_dataset(SchemaKind::kParametric);
  for (const ExchangeFormat format : {ExchangeFormat::kForetune, ExchangeFormat::kCsv,
                                      ExchangeFormat::kJson, ExchangeFormat::kMsgpack}) {
    for (const char* name : {"a.msgpack", "a.json", "a.csv", "a.ftd", "a.gz"}) {
      ASSERT_TRUE(export_dataset(dataset, folder / name, format));
      const auto found = detect_format(folder / name);
      ASSERT_TRUE(found) << name << ": " << found.error().message;
      EXPECT_EQ(*found, format) << name;
      if (format != ExchangeFormat::kCsv) {
        const auto read = import_dataset(folder / name, std::nullopt);
        ASSERT_TRUE(read) << read.error().message;
        expect_same(dataset, *read, name);
      }
    }
  }
  ASSERT_TRUE(write_text_file_atomically(folder / "empty.json", ""));
  EXPECT_FALSE(detect_format(folder / "empty.json"));
  ASSERT_TRUE(write_text_file_atomically(folder / "prose.json", "some words\n"));
  EXPECT_THAT(detect_format(folder / "prose.json").error().message, HasSubstr("prose.json"));
  EXPECT_EQ(detect_format(folder / "absent.json").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_text_file_atomically(folder / "a.parquet", "PAR1, and more"));
  EXPECT_EQ(detect_format(folder / "a.parquet").error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(detect_format(folder / "a.parquet").error().message, HasSubstr("foretune-parquet"));
}

TEST(Exchange, JsonTextUnderTheNameOfMessagePackIsRead) {
  const Dataset dataset = testing_support::golden_dataset(SchemaKind::kParametric);
  const auto bytes = export_bytes(dataset, ExchangeFormat::kJson);
  const auto read = import_json_bytes(*bytes, ExchangeFormat::kMsgpack);
  ASSERT_TRUE(read) << read.error().message;
  expect_same(dataset, *read, "json as msgpack");
}

std::string json_of(const Dataset& dataset) {
  const auto bytes = export_bytes(dataset, ExchangeFormat::kJson);
  return std::string(dataset_internal::text_of(*bytes));
}

// One change each to a good document, and what the refusal says.
// Ours say it themselves.
TEST(Exchange, DocumentsOfOthersTakeFamilyAndRole) {
  const std::string_view text =
      R"({"hardware": {"NVIDIA H100": {"operation": {"mm": {"solution": {
          "{\"M\": 32, \"N\": 32, \"K\": 32, \"M_dtype\": \"float16\"}": {"timed_configs": [
          {"config": {"block_m": 16, "block_n": 32, "block_k": 64, "group_m": 8, "num_stages": 3,
                      "num_warps": 4, "USE_FAST_ACCUM": true}, "time": 0.025}]}}}}}}})";
  const ImportFacts facts{.family = "mine", .role = DatasetRole::kValidation, .fingerprint = {}};
  const auto diode = import_json_bytes(bytes_of(text), ExchangeFormat::kJson, nullptr, facts);
  ASSERT_TRUE(diode) << diode.error().message;
  EXPECT_EQ(diode->header().family, "mine");
  EXPECT_EQ(diode->header().role, DatasetRole::kValidation);
  EXPECT_EQ(diode->header().fingerprint.device, "NVIDIA H100");
  EXPECT_EQ(diode->configs()[0].words, (Config::Words{16, 32, 64, 8, 3, 4, 0, 0, 1, 0}));
  const std::vector<std::byte> own = export_bytes(*diode, ExchangeFormat::kJson).value();
  EXPECT_EQ(import_json_bytes(own, ExchangeFormat::kJson).value().header(), diode->header());
}

TEST(Exchange, BadDocumentsGetOneSentence) {
  const DocumentChange cases[] = {
      {"\"version\":1}", "\"version\":2}", "version is not known"},
      {"\"role\":\"validation\"", "\"role\":\"Validation\"", "header"},
      {"\"kind\":\"parametric\"", "\"kind\":\"other\"", "config schema"},
      {"\"problem_type\":\"gemm\"", "\"problem_type\":\"gem\"", "'gem' are not known"},
      {"\"seed\":18446744073709551615", "\"seed\":-1", "header"},
      {"m=8 ", "m=0 ", "problems[0]"},
      {"[-32,0]", "[-32]", "configs[0]"},
      {"[-32,0]", "[-32,0.5]", "configs[0]"},
      {"[-32,0]", "[-32,99999999999]", "configs[0]"},
      {"\"cache\":\"warm\"", "\"cache\":\"tepid\"", "contexts[0]"},
      {"[0,0,0,\"ok\"", "[0,0,7,\"ok\"", "rows[0]"},
      {"[0,0,0,\"ok\"", "[0,0,0,\"fine\"", "rows[0]"},
      {"[0,0,0,\"ok\"", "[9999,0,0,\"ok\"", "rows[0]"},
      {"\"\",1000.5,", "\"\",-1000.5,", "rows[0]"},
      {"\"\",1000.5,", "\"\",0,", "rows[0]"},
      {"\"\",1000.5,", "\"\",NaN,", "rows[0]"},
      {"\"\",1000.5,", "\"\",1e99999,", "out of range"},
      {"\"\",1000.5,", "\"\",1000.5", "not JSON"},
      {"\"energy_j\",0.1", "\"energy\",0.1", "metrics[0]"},
      {"\"energy_j\",0.1", "\"time_ns\",0.1", "metrics[0]"},
      {"\"rows\":", "\"lines\":", "rows"},
      {"[0,[1000.5,1250.25]]", "[0,[]]", "samples[0]"},
      {"[0,[1000.5,1250.25]]", "[12,[1000.5]]", "samples[0]"},
      {"\"foretune-dataset\"", "\"other\"", "neither"},
  };
  const std::string good = json_of(testing_support::golden_dataset(SchemaKind::kParametric));
  expect_refused(good, cases);
  for (std::size_t size = 0; size < good.size() - 2; size += 7) {
    EXPECT_FALSE(import_json_bytes(bytes_of(good.substr(0, size)), ExchangeFormat::kJson)) << size;
  }
}

TEST(Exchange, JsonNestedTooDeeplyIsRefused) {
  const std::string deep(100000, '[');
  const auto read = import_json_bytes(bytes_of("{\"a\":" + deep), ExchangeFormat::kJson);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("nested"));
}

TEST(Exchange, DamagedMessagePackIsRefusedOrRead) {
  const Dataset dataset = testing_support::golden_dataset(SchemaKind::kSequence);
  const std::vector<std::byte> good = *export_bytes(dataset, ExchangeFormat::kMsgpack);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(import_json_bytes(std::span(good).first(size), ExchangeFormat::kMsgpack)) << size;
  }
  // It has no checksum: a changed byte may be another good value, but never a crash.
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const unsigned value : {0U, 0x80U, 0xc1U, 0xddU, 0xffU}) {
      std::vector<std::byte> bad = good;
      bad[i] = static_cast<std::byte>(value);
      const auto read = import_json_bytes(bad, ExchangeFormat::kMsgpack);
      EXPECT_TRUE(!read || read->size() <= dataset.size());
    }
  }
}

TEST(Exchange, MessagePackThatClaimsTooMuchIsRefused) {
  const auto refuse = [](const std::vector<unsigned>& values) {
    std::vector<std::byte> bytes;
    for (const unsigned value : values) {
      bytes.push_back(static_cast<std::byte>(value));
    }
    const auto read = import_json_bytes(bytes, ExchangeFormat::kMsgpack);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("MessagePack"));
  };
  refuse({0xdf, 0xff, 0xff, 0xff, 0xff});  // a map of four thousand million
  refuse({0x81, 0xa1, 'a', 0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0});
  refuse({0x81, 0xa1, 'a', 0xdb, 0xff, 0xff, 0xff, 0xff, 'x'});
  refuse({0x81, 0xa1, 'a', 0xc1});              // never used
  refuse(std::vector<unsigned>(200000, 0x91));  // arrays in arrays
  refuse({0x81, 0xa1, 'a', 0xc0, 0xc0});        // something behind the end
}

TEST(Gzip, MembersAreJoinedDamageAndBombsAreRefused) {
  using dataset_internal::deflate_gzip;
  using dataset_internal::inflate_gzip;
  const std::string text(300000, 'x');
  std::vector<std::byte> two = deflate_gzip(bytes_of(text));
  const std::vector<std::byte> one = two;
  two.insert(two.end(), one.begin(), one.end());
  const auto both = inflate_gzip(two, 1U << 20U);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(dataset_internal::text_of(*both), text + text);
  EXPECT_THAT(inflate_gzip(two, 400000).error().message, HasSubstr("inflates to over"));
  EXPECT_THAT(inflate_gzip(std::span(one).first(one.size() - 3), 1U << 20U).error().message,
              HasSubstr("too early"));
  for (std::size_t i = 10; i < one.size(); ++i) {
    std::vector<std::byte> bad = one;
    bad[i] ^= std::byte{0x5a};
    EXPECT_FALSE(inflate_gzip(bad, 1U << 20U)) << i;
  }
  EXPECT_EQ(inflate_gzip(deflate_gzip({}), 10)->size(), 0U);
}

TEST(FloatText, IsShortAndExact) {
  EXPECT_EQ(dataset_internal::float_text(0.1F), "0.1");
  EXPECT_EQ(dataset_internal::float_text(5574.0F), "5574");
  Rng rng(kSeed);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::abs(std::bit_cast<float>(static_cast<std::uint32_t>(rng.next())));
    if (std::isfinite(value)) {
      ASSERT_EQ(static_cast<float>(*parse_double(dataset_internal::float_text(value))), value);
    }
  }
}

// Reasons name values, so a file of nonsense has as many as rows.
TEST(Exchange, ManyReasonsAreCountedTogether) {
  constexpr std::int64_t kRows = 5000;
  std::string text = "m,n,k,block_m,time_ns\n8,8,8,16,1.5\n";
  for (std::int64_t i = 1; i <= kRows; ++i) {
    text += concat(-i, ",8,8,16,1.5\n");
  }
  ImportReport report;
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = "test";
  const auto kept = import_csv_text(text, header, &report);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(report.rows_kept, 1U);
  EXPECT_LE(report.dropped.size(), 101U);
  std::uint64_t sum = 0;
  for (const auto& [reason, count] : report.dropped) {
    sum += count;
  }
  EXPECT_EQ(sum, static_cast<std::uint64_t>(kRows));
}

TEST(ShapeSet, ColumnsMayComeInAnyOrderAndSayLayoutAndRegime) {
  const auto problems =
      parse_shape_set("regime,m,n,k,layout\nllm,1,4096,1024,rcr\nsquare,64,64,64,rrr\n");
  ASSERT_TRUE(problems) << problems.error().message;
  ASSERT_EQ(problems->size(), 2U);
  EXPECT_EQ((*problems)[0], *Problem::parse("gemm m=1 n=4096 k=1024 layout=rcr"));
  EXPECT_EQ((*problems)[1], *Problem::parse("gemm m=64 n=64 k=64"));
  const auto wrong = parse_shape_set("m,n,k,layout\n4,4,4,rrr\n1,2,3,xyz\n");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("line 3"), std::string::npos) << wrong.error().message;
}

}  // namespace
}  // namespace foretune
