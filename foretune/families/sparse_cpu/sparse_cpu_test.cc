// Tests the family: its space, its data, and runs of both.
#include "foretune/space/schemas/sparse_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
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
#include "foretune/problem/sparse/sparse_problem.h"
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

std::string frostt_text(const sparse::Coordinates& tensor) {
  std::string out;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    out += concat(tensor.indices[0][i] + 1, " ", tensor.indices[1][i] + 1, " ",
                  tensor.indices[2][i] + 1, " ", tensor.values[i], "\n");
  }
  return out;
}

class SparseCpuTest : public ::testing::Test {
 protected:
  std::unique_ptr<Family> family_of(std::vector<std::pair<std::string, std::string>> parameters) {
    FamilyOptions options;
    options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
    // Results of small matrices do not fit so small a cache, so that they may be streamed.
    options.fingerprint.hardware.set(HardwareValue::kL2Bytes, 1024);
    options.parameters = std::move(parameters);
    options.payload_folders = {folder_.path().string()};
    auto made = create_sparse_cpu(options);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  // Writes the matrix to the folder and returns a problem with it.
  Problem problem_of(const sparse::Coordinates& matrix, const std::string& fields) {
    const std::string name = concat("m", count_++, matrix.is_tensor ? ".tns" : ".mtx");
    EXPECT_TRUE(write_text_file_atomically(
        folder_.path() / name, matrix.is_tensor ? frostt_text(matrix) : market_text(matrix)));
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

// FORETUNE_SPARSE_CASES asks for more pairs of a matrix and a config, drawn by another seed.
// Sanitizers make a case 20 times slower.
#ifdef FORETUNE_SANITIZED
constexpr std::uint64_t kCases = 600;
#else
constexpr std::uint64_t kCases = 5000;
#endif

bool has_width(std::string_view operation) {
  return operation == "spmm" || operation == "gespmm" || operation == "sddmm" ||
         operation == "mttkrp";
}

// One draw a statement: compilers differ in the order in which they evaluate arguments.
std::string random_fields(std::string_view operation, Rng& rng) {
  const bool is_double = rng.below(3) == 0;
  const std::int64_t width = rng.between(1, 200);
  return concat("dtype=", is_double ? "f64" : "f32", " op=", operation,
                " n=", has_width(operation) ? width : 1);
}

TEST_F(SparseCpuTest, RandomConfigsOfTheSpaceAreRight) {
  constexpr std::uint64_t kConfigs = 13;                          // of each matrix
  const char* const many = std::getenv("FORETUNE_SPARSE_CASES");  // NOLINT(concurrency-mt-unsafe)
  const std::uint64_t asked = many == nullptr ? 0 : parse_uint(many).value_or(0);
  const std::uint64_t trials = std::max(kCases, asked) / kConfigs / 3 + 1;
  const std::uint64_t seed = 71 + asked;
  SCOPED_TRACE(concat("seed ", seed));
  Rng rng(seed);
  int configs = 0;
  std::set<SparseFormat> formats;
  std::set<SparseGather> gathers;
  std::set<SparseStore> stores;
  std::set<SparseSums> sums;
  for (const char* isa : {"avx512", "avx2", "generic"}) {
    if (sparse_cpu::sparse_kernels<float>(*parse_cpu_isa(isa)) == nullptr) {
      continue;
    }
    const auto family = family_of({{"isa", isa}});
    for (std::uint64_t trial = 0; trial < trials; ++trial) {
      // Products with a vector and with a matrix have most of the space.
      const auto operations = sparse_operation_labels();
      const std::uint64_t draw = rng.below(2 * operations.size());
      const std::string_view operation = operations[draw < operations.size() ? draw : draw % 2];
      const std::int64_t extent = trial % 4 == 0 ? 400 : 60;
      sparse::Coordinates matrix;
      if (operation == "mttkrp") {
        while (matrix.size() == 0) {  // a file without a line has no extents
          matrix = sparse::random_tensor(extent, rng);
        }
      } else {
        matrix = sparse::random_matrix(extent, rng);
      }
      const Problem problem = problem_of(matrix, random_fields(operation, rng));
      const auto space = family->space(problem);
      ASSERT_TRUE(space) << space.error().message;
      const auto data = family->make_data(problem, seed);
      ASSERT_TRUE(data) << data.error().message;
      std::vector<Config> chosen = family->default_configs(problem);
      ASSERT_EQ(chosen.size(), 1U) << problem.text();
      for (std::uint64_t i = 1; i < kConfigs; ++i) {
        chosen.push_back((*space)->sample(rng).value());
      }
      for (const Config& config : chosen) {
        const Support right = judge(*family, problem, config, **data);
        ASSERT_TRUE(right) << problem.text() << "\n"
                           << to_text(sparse_cpu_schema(), config) << "\n"
                           << right.reason();
        ++configs;
        const SparseCpuConfig drawn = SparseCpuConfig::from(config).value();
        formats.insert(drawn.format);
        gathers.insert(drawn.gather);
        stores.insert(drawn.store);
        sums.insert(drawn.sums);
      }
    }
  }
  EXPECT_GE(configs, 200);
  EXPECT_EQ(formats.size(), 4U);
  EXPECT_EQ(sums.size(), 2U);
  if (best_cpu_isa() != CpuIsa::kGeneric) {
    EXPECT_EQ(gathers.size(), 2U);
    EXPECT_EQ(stores.size(), 2U);
  }
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

TEST_F(SparseCpuTest, SubspacesArePartsOfTheSpaceWithADefault) {
  Rng rng(23);
  sparse::Coordinates matrix;
  while (matrix.size() < 100) {
    matrix = sparse::random_matrix(200, rng);
  }
  const auto whole = family_of({});
  for (const char* fields : {"op=spmv", "op=spmm n=200", "op=sddmm n=20", "op=gespmm n=8"}) {
    const Problem problem = problem_of(matrix, fields);
    const auto full = whole->space(problem).value();
    for (const char* subspace : {"full", "csr", "waco"}) {
      SCOPED_TRACE(concat(fields, " ", subspace));
      const auto family = family_of({{"space", subspace}});
      ASSERT_EQ(family->default_configs(problem).size(), 1U);
      const auto part = family->space(problem).value();
      std::set<SparseFormat> formats;
      for (int i = 0; i < 100; ++i) {
        const Config config = part->sample(rng).value();
        ASSERT_TRUE(full->why_not(config)) << full->why_not(config).reason();
        formats.insert(SparseCpuConfig::from(config)->format);
      }
      const bool may_pack =
          std::string_view(fields) != "op=sddmm n=20" && std::string_view(subspace) != "csr";
      EXPECT_EQ(formats.size() > 1, may_pack);
    }
  }
  FamilyOptions options;
  options.parameters = {{"space", "coo"}};
  EXPECT_THAT(create_sparse_cpu(options).error().message,
              HasSubstr("no subspace 'coo'; known: full, csr, waco"));
}

TEST_F(SparseCpuTest, AWrongElementIsFound) {
  const auto family = family_of({});
  Rng rng(5);
  sparse::Coordinates matrix;
  while (matrix.size() < 50) {
    matrix = sparse::random_matrix(60, rng);
  }
  sparse::Coordinates tensor;
  while (tensor.size() < 50) {
    tensor = sparse::random_tensor(60, rng);
  }
  for (const char* fields :
       {"op=spmm n=20", "op=spmv", "op=sddmm n=20", "op=gespmv", "op=gespmm n=20", "op=mmadd",
        "op=plus2", "op=plus3", "op=mttkrp n=20"}) {
    const bool is_tensor = std::string_view(fields).starts_with("op=mttkrp");
    const Problem problem = problem_of(is_tensor ? tensor : matrix, fields);
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
  EXPECT_THAT(refusal("sparse op=spmm rows=4 columns=4 nnz=2 n=8"), HasSubstr("payload=@FILE"));
  EXPECT_THAT(refusal("gemm m=1 n=1 k=1"), HasSubstr("not a sparse problem"));
}

}  // namespace
}  // namespace foretune
