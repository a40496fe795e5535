// Problems with payloads: what files keep of them, which formats refuse them, and groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/split.h"
#include "foretune/dataset/testing/datasets.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/payload_store.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

class DatasetPayloadTest : public ::testing::Test {
 protected:
  // 2 x 4 x 1 with these weights, which lie in the folder.
  Problem problem_with(const std::vector<float>& weights) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(weights));
    const Digest digest = Digest::of(bytes);
    EXPECT_TRUE(write_file_atomically(folder_ / digest.hex(), bytes));
    return GemmProblem::create({.m = 2, .n = 4, .k = 1, .payload = digest}).value().to_problem();
  }
  // One row each.
  static Dataset dataset_of(const std::vector<Problem>& problems) {
    Dataset dataset(testing_support::golden_header(SchemaKind::kParametric));
    Measurement measurement = testing_support::golden_measurements(dataset.header())[0];
    for (const Problem& problem : problems) {
      measurement.problem = problem;
      dataset.add(measurement);
    }
    return dataset;
  }
  std::shared_ptr<PayloadStore> store() {
    return PayloadStore::open(std::vector{folder_.path().string()}).value();
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(DatasetPayloadTest, FilesKeepTheDigest) {
  const Dataset dataset = dataset_of({problem_with({1, 2, 3, 4}), problem_with({1, 2, 3, 5}),
                                      Problem::parse("gemm m=2 n=4 k=1").value()});
  ASSERT_EQ(dataset.problems().size(), 3U);
  for (const bool is_sealed : {false, true}) {
    const auto path = folder_ / concat("data", is_sealed, ".ftd");
    {
      auto journal = JournalWriter::open(path, dataset.header()).value();
      for (RowIndex row = 0; row < dataset.size(); ++row) {
        ASSERT_TRUE(journal->append(dataset.measurement(row)));
      }
    }
    ASSERT_TRUE(!is_sealed || seal(path));
    testing_support::expect_same(dataset, read_dataset(path).value(), path.string());
  }
  const auto json = folder_ / "data.json";
  ASSERT_TRUE(export_dataset(dataset, json, ExchangeFormat::kJson));
  testing_support::expect_same(dataset, import_dataset(json, std::nullopt).value(), "JSON");
}

TEST_F(DatasetPayloadTest, TablesRefuseThem) {
  const Dataset dataset = dataset_of({problem_with({1, 2, 3, 4})});
  const auto text = export_csv_text(dataset);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(export_csv_text(dataset_of({Problem::parse("gemm m=2 n=4 k=1").value()})));
}

TEST_F(DatasetPayloadTest, GroupsOfAllKeysLeaveThemOut) {
  const Problem one = problem_with({1, 2, 3, 4});
  const Problem other = problem_with({1, 2, 3, 5});
  const Problem none = Problem::parse("gemm m=2 n=4 k=1").value();
  for (const GroupKey key : {GroupKey::kProblem, GroupKey::kSizes, GroupKey::kWeights}) {
    EXPECT_EQ(group_of(one, key), group_of(other, key));
    EXPECT_EQ(group_of(one, key), group_of(none, key));
  }
}

TEST_F(DatasetPayloadTest, ProblemsAreToldWhatIsKnown) {
  const Problem described = problem_with({0, 2, 0, 6});
  Dataset dataset = dataset_of({described, Problem::parse("gemm m=2 n=4 k=1").value()});
  ASSERT_TRUE(dataset.describe_payloads(*store()));
  EXPECT_EQ(described_value(dataset.problems()[0], 0), 0.5);
  EXPECT_EQ(dataset.problems()[1].descriptor(), nullptr);
  EXPECT_EQ(dataset.find_problem(described), 0U);
  // Parts and copies know it, too.
  EXPECT_NE(dataset.filter_problems({true, false}).problems()[0].descriptor(), nullptr);
  Dataset lost =
      dataset_of({GemmProblem::create({.m = 2, .payload = {1, 2}}).value().to_problem()});
  EXPECT_EQ(lost.describe_payloads(*store()).error().code, ErrorCode::kNotFound);
}

TEST_F(DatasetPayloadTest, ShapeSetsNameFiles) {
  const Problem problem = problem_with({1, 2, 3, 7});
  std::filesystem::rename(folder_ / problem.payload().hex(), folder_ / "w.f32");
  const std::string text = "# weights\ngemm m=2 n=4 k=1 payload=@w.f32\ngemm m=2 n=4 k=1\n";
  const std::vector<Problem> shapes = parse_shape_set(text, nullptr, store().get()).value();
  ASSERT_EQ(shapes.size(), 2U);
  EXPECT_EQ(shapes[0], problem);
  EXPECT_THAT(parse_shape_set(text).error().message, HasSubstr("line 2"));
  EXPECT_THAT(
      parse_shape_set("gemm m=2 n=4 k=1 payload=@x", nullptr, store().get()).error().message,
      HasSubstr("line 1: there is no file 'x'"));
}

}  // namespace
}  // namespace foretune
