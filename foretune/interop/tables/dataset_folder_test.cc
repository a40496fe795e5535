#include "foretune/interop/tables/dataset_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/testing/datasets.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::random_measurement;
using testing_support::TemporaryFolder;

DatasetHeader make_header() {
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = "test";
  header.config_schema = {.name = "test", .version = 3, .parameters = {{"tile", {}}, {"k", {}}}};
  header.fingerprint.device = "a machine";
  return header;
}

class DatasetFolder : public testing::Test {
 protected:
  DatasetFolder() { std::filesystem::create_directories(path_ / "more"); }

  Dataset dataset_of(int rows, DatasetRole role = DatasetRole::kTraining) {
    DatasetHeader header = make_header();
    header.role = role;
    Dataset dataset(header);
    for (int i = 0; i < rows; ++i) {
      dataset.add(random_measurement(header, rng_));
    }
    return dataset;
  }
  void write(const char* name, const Dataset& dataset, ExchangeFormat format) {
    ASSERT_TRUE(export_dataset(dataset, path_ / name, format)) << name;
  }
  void write(const char* name, std::string_view text) {
    ASSERT_TRUE(write_text_file_atomically(path_ / name, text)) << name;
  }
  [[nodiscard]] FolderOptions told() {
    return {.extensions = {},
            .read = {},
            .on_read = [this](const std::filesystem::path& file, const Dataset&,
                              const ImportReport&) { heard_.push_back(file.filename()); },
            .on_skip = [this](const std::filesystem::path& file,
                              const std::string& reason) { skipped_[file.filename()] = reason; }};
  }

  TemporaryFolder temporary_;
  std::filesystem::path path_ = temporary_ / "data";
  Rng rng_{3};
  std::vector<std::string> heard_;
  std::map<std::string, std::string> skipped_;
};

TEST_F(DatasetFolder, TrainingSetsAreOneAndValidationSetsAreLeftOut) {
  write("v.ftd", dataset_of(7, DatasetRole::kValidation), ExchangeFormat::kForetune);
  EXPECT_FALSE(merge_training_sets(path_)->has_value()) << "there is none";
  write("a.ftd", dataset_of(3), ExchangeFormat::kForetune);
  write("more/b.ftd", dataset_of(4), ExchangeFormat::kForetune);
  const auto all = merge_training_sets(path_, told());
  ASSERT_TRUE(all.has_value() && all->has_value());
  EXPECT_EQ((*all)->size(), 7U);
  EXPECT_EQ((*all)->header().role, DatasetRole::kTraining);
  EXPECT_THAT(heard_, ElementsAre("a.ftd", "b.ftd", "v.ftd"));
  EXPECT_EQ(merge_training_sets(path_ / "none").error().code, ErrorCode::kNotFound);
}

TEST_F(DatasetFolder, EveryFormatIsReadByItsContent) {
  write("a.ftd", dataset_of(3), ExchangeFormat::kForetune);
  write("b.json", dataset_of(4), ExchangeFormat::kJson);
  write("c.msgpack", dataset_of(5), ExchangeFormat::kMsgpack);
  write("more/d.json.gz", dataset_of(6), ExchangeFormat::kJson);
  // JSON in a file named .msgpack, as torch-diode writes it.
  write("e.msgpack", dataset_of(7), ExchangeFormat::kJson);
  write("v.msgpack", dataset_of(8, DatasetRole::kValidation), ExchangeFormat::kMsgpack);
  const auto all = merge_training_sets(path_, told());
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ((*all)->size(), 3U + 4 + 5 + 6 + 7);
  EXPECT_THAT(heard_,
              ElementsAre("a.ftd", "b.json", "c.msgpack", "e.msgpack", "d.json.gz", "v.msgpack"));
  // A file exported from a journal beside it adds nothing.
  write("a.msgpack", dataset_of(3), ExchangeFormat::kMsgpack);
  write("a.csv.gz", dataset_of(3), ExchangeFormat::kCsv);
  EXPECT_EQ((*merge_training_sets(path_, told()))->size(), 25U);
  EXPECT_THAT(skipped_["a.msgpack"], HasSubstr("a.ftd beside it counts"));
  EXPECT_THAT(skipped_["a.csv.gz"], HasSubstr("a.ftd beside it counts"));
  // Files with other extensions are ignored.
  FolderOptions some = told();
  some.extensions = {".json", "msgpack"};
  EXPECT_EQ((*merge_training_sets(path_, some))->size(), 4U + 5 + 6 + 7 + 3);
}

TEST_F(DatasetFolder, TablesAndBenchmarksOfOthersAreDataSets) {
  write("times.csv", "m,n,k,tile,time_us\n1,2,3,4,5\n2,2,3,4,6\n");
  EXPECT_EQ((*merge_training_sets(path_))->size(), 2U);
  FolderOptions options;
  options.extensions = {"log"};
  write("ck.log",
        read_text_file(FORETUNE_SOURCE_DIR "/foretune/dataset/testdata/ck/stream.log").value());
  const auto all = merge_training_sets(path_, options);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_GT((*all)->size(), 0U);
  EXPECT_EQ((*all)->header().config_schema.name, "ck-gemm");
  // Tables of different parameters do not fit.
  const auto both = merge_training_sets(path_);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(both.error().message, HasSubstr("times.csv: "));
}

TEST_F(DatasetFolder, WhatIsNoDataSetIsPassedOverWithAReason) {
  write("a.ftd", dataset_of(3), ExchangeFormat::kForetune);
  write("loss.csv", "epoch,loss\n1,0.5\n");
  write("shapes.csv", "m,n,k\n1,2,3\n");
  write("feature_spec.json", "{\"op_type\": \"gemm_universal\"}");
  write("report.json", "[1, 2]");
  write("notes.txt", "nothing");
  write("empty.log", "");
  write("model.ftm", "not looked at");
  const auto all = merge_training_sets(path_, told());
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ((*all)->size(), 3U);
  EXPECT_THAT(heard_, ElementsAre("a.ftd"));
  EXPECT_EQ(skipped_.size(), 6U);
  EXPECT_EQ(skipped_["loss.csv"], "it has no column of times");
  EXPECT_EQ(skipped_["feature_spec.json"], "the document is no data set");
  EXPECT_EQ(skipped_["empty.log"], "the file is empty");
  std::filesystem::remove(path_ / "a.ftd");
  const auto none = merge_training_sets(path_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("empty.log is none: the file is empty"));
}

TEST_F(DatasetFolder, DamageAndParquetAreNamed) {
  write("a.ftd", dataset_of(3), ExchangeFormat::kForetune);
  for (const auto& [name, text, reason] :
       {std::tuple("b.json", "{\"hardware\": {", "b.json: "),
        std::tuple("b.ftd", "no journal", "b.ftd: "),
        std::tuple("b.csv.gz", "\x1f\x8b damaged", "b.csv.gz"),
        std::tuple("b.parquet", "PAR1 and more", "b.parquet: a Parquet file; foretune-parquet")}) {
    SCOPED_TRACE(name);
    write(name, text);
    const auto all = merge_training_sets(path_);
    ASSERT_FALSE(all);
    EXPECT_THAT(all.error().message, HasSubstr(reason));
    EXPECT_THAT(all.error().message, Not(HasSubstr("\n")));
    std::filesystem::remove(path_ / name);
  }
  // A Parquet file beside its journal is skipped.
  write("a.parquet", "PAR1 and more");
  EXPECT_TRUE(merge_training_sets(path_));
  EXPECT_THAT(find_datasets(path_)->skipped, Not(IsEmpty()));
}

TEST_F(DatasetFolder, ASetThatHoldsNothingIsInNobodysWay) {
  DatasetHeader other = make_header();
  other.problem_type = kConvProblem;
  write("a.ftd", Dataset(other), ExchangeFormat::kForetune);
  const Dataset full = dataset_of(3);
  write("b.ftd", full, ExchangeFormat::kForetune);
  write("c.ftd", Dataset(other), ExchangeFormat::kForetune);
  const auto all = merge_training_sets(path_);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ((*all)->size(), 3U);
  EXPECT_EQ((*all)->header(), full.header());
}

}  // namespace
}  // namespace foretune
