// Tests the family: its space, its data, and runs of both.
#include "foretune/space/schemas/sparse_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/families/sparse_cpu/sparse_cpu.h"
#include "foretune/families/sparse_cpu/sparse_data.h"
#include "foretune/families/sparse_cpu/sparse_kernels.h"
#include "foretune/family/family.h"
#include "foretune/hardware/cpu.h"
#include "foretune/problem/payload_store.h"
#include "foretune/sparse/testing/random_matrix.h"

namespace foretune {

namespace {

using sparse_cpu::TypedSparseData;
using ::testing::HasSubstr;

std::string market_text(const sparse::Coordinates& matrix) {
  std::string out = concat("%%MatrixMarket matrix coordinate real general\n", matrix.extents[0],
                           " ", matrix.extents[1], " ", matrix.size(), "\n");
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    out += concat(matrix.indices[0][i] + 1, " ", matrix.indices[1][i] + 1, " ", matrix.values[i],
                  "\n");
  }
  return out;
}

class SparseCpuTest : public ::testing::Test {
 protected:
  std::unique_ptr<Family> family_of(std::vector<std::pair<std::string, std::string>> parameters) {
    FamilyOptions options;
    options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
    options.parameters = std::move(parameters);
    options.payload_folders = {folder_.path().string()};
    auto made = create_sparse_cpu(options);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  // Writes the matrix to the folder and returns a problem with it.
  Problem problem_of(const sparse::Coordinates& matrix, const std::string& fields) {
    const std::string name = concat("m", count_++, ".mtx");
    EXPECT_TRUE(write_text_file_atomically(folder_.path() / name, market_text(matrix)));
    const std::vector<std::string> folders{folder_.path().string()};
    const auto store = PayloadStore::open(folders).value();
    return Problem::parse(
               store->resolve_names(concat("sparse ", fields, " payload=@", name)).value())
        .value();
  }

  testing_support::TemporaryFolder folder_;
  int count_ = 0;
};

// Runs a config and returns the judgement of its result.
Support judge(const Family& family, const Problem& problem, const Config& config,
              ProblemData& data) {
  const auto artifact = family.prepare(problem, config);
  if (!artifact) {
    return Support::no(artifact.error().message);
  }
  const auto run = (*artifact)->bind(problem, data);
  if (!run) {
    return Support::no(run.error().message);
  }
  for (int repeat = 0; repeat < 2; ++repeat) {
    data.poison();
    (*run)->run();
    if (Support right = data.verify(); !right) {
      return right;
    }
  }
  return Support::yes();
}

TEST_F(SparseCpuTest, RandomConfigsOfTheSpaceAreRight) {
  constexpr std::uint64_t kSeed = 71;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  int configs = 0;
  for (const char* isa : {"avx512", "avx2", "generic"}) {
    if (sparse_cpu::sparse_kernels<float>(*parse_cpu_isa(isa)) == nullptr) {
      continue;
    }
    const auto family = family_of({{"isa", isa}});
    for (int trial = 0; trial < 8; ++trial) {
      const sparse::Coordinates matrix = sparse::random_matrix(trial % 4 == 0 ? 400 : 60, rng);
      const bool is_wide = rng.below(3) > 0;
      const std::string fields =
          concat("dtype=", rng.below(3) == 0 ? "f64" : "f32",
                 " op=", is_wide ? (rng.below(2) == 0 ? "spmm" : "sddmm") : "spmv",
                 " n=", is_wide ? rng.between(1, 200) : std::int64_t{1});
      const Problem problem = problem_of(matrix, fields);
      const auto space = family->space(problem);
      ASSERT_TRUE(space) << space.error().message;
      const auto data = family->make_data(problem, kSeed);
      ASSERT_TRUE(data) << data.error().message;
      std::vector<Config> chosen = family->default_configs(problem);
      ASSERT_EQ(chosen.size(), 1U) << problem.text();
      for (int i = 0; i < 12; ++i) {
        chosen.push_back((*space)->sample(rng).value());
      }
      for (const Config& config : chosen) {
        const Support right = judge(*family, problem, config, **data);
        ASSERT_TRUE(right) << problem.text() << "\n"
                           << to_text(sparse_cpu_schema(), config) << "\n"
                           << right.reason();
        ++configs;
      }
    }
  }
  EXPECT_GE(configs, 100);
}

TEST_F(SparseCpuTest, ConfigsThatMeanTheSameAreOne) {
  const auto family = family_of({});
  Rng rng(3);
  sparse::Coordinates matrix;
  while (matrix.size() < 100) {
    matrix = sparse::random_matrix(200, rng);
  }
  const Problem problem = problem_of(matrix, "op=spmm n=128");
  const auto space = family->space(problem).value();
  std::set<std::uint64_t> hashes;
  std::set<std::string> texts;
  for (int i = 0; i < 300; ++i) {
    const Config config = space->sample(rng).value();
    EXPECT_EQ(space->canonical(config), config);
    hashes.insert(config.hash());
    texts.insert(to_text(sparse_cpu_schema(), config));
    EXPECT_EQ(SparseCpuConfig::from(config)->to_config(), config);
  }
  EXPECT_EQ(hashes.size(), texts.size());
  EXPECT_GT(hashes.size(), 50U);
}

TEST_F(SparseCpuTest, AWrongElementIsFound) {
  const auto family = family_of({});
  Rng rng(5);
  sparse::Coordinates matrix;
  while (matrix.size() < 50) {
    matrix = sparse::random_matrix(60, rng);
  }
  for (const char* fields : {"op=spmm n=20", "op=spmv", "op=sddmm n=20"}) {
    const Problem problem = problem_of(matrix, fields);
    const auto data = family->make_data(problem, 1).value();
    auto& typed = dynamic_cast<TypedSparseData<float>&>(*data);
    EXPECT_FALSE(data->verify()) << "poison";
    const Config config = family->default_configs(problem).front();
    ASSERT_TRUE(judge(*family, problem, config, *data));
    for (const std::size_t place : {std::size_t{0}, typed.output().size() - 1}) {
      const float right = typed.output()[place];
      for (const float off : {1e-2F, -1e-2F}) {
        typed.output()[place] = right + off;
        EXPECT_FALSE(data->verify()) << fields << " " << place;
      }
      typed.output()[place] = right;
    }
    EXPECT_TRUE(data->verify());
  }
}

TEST_F(SparseCpuTest, RefusesWithTheReason) {
  const auto family = family_of({});
  const auto refusal = [&](const std::string& text) {
    const auto data = family->make_data(Problem::parse(text).value(), 1);
    return data ? std::string() : data.error().message;
  };
  EXPECT_THAT(refusal("sparse op=plus2 rows=4 columns=4 nnz=2"), HasSubstr("not plus2"));
  EXPECT_THAT(refusal("sparse op=spmm rows=4 columns=4 nnz=2 n=8"), HasSubstr("payload=@FILE"));
  EXPECT_THAT(refusal("gemm m=1 n=1 k=1"), HasSubstr("not a sparse problem"));
}

}  // namespace
}  // namespace foretune
