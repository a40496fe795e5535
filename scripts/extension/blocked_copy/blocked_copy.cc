// A family for scripts/extension_cost.py: copies a matrix block by block.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/family/function_family.h"

namespace foretune {

const FamilyEntry& blocked_copy_family();

namespace {

constexpr std::string_view kSpace = R"(space blocked-copy 1 gemm
parameter block_m [] 8 16 32 64
parameter block_n [] 8 16 32 64
parameter block_k [] 1
parameter unroll [] 1 2 4
constraint block_m <= max(m, 8) # the block is taller than the matrix
)";
struct Matrices final : ProblemData {
  Matrices(std::int64_t m, std::int64_t n, std::uint64_t seed) : rows(m), columns(n) {
    Rng rng(seed);
    input.resize(static_cast<std::size_t>(rows * columns));
    for (float& value : input) {
      value = static_cast<float>(rng.uniform());
    }
    output.resize(input.size());
  }
  void poison() override { std::fill(output.begin(), output.end(), -1.0F); }
  Support verify() override {
    return output == input ? Support::yes() : Support::no("the copy differs");
  }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(8 * input.size()); }

  std::int64_t rows;
  std::int64_t columns;
  std::vector<float> input;
  std::vector<float> output;
};

void copy_blocks(Matrices& all, std::int64_t height, std::int64_t width, std::int64_t unroll) {
  for (std::int64_t i0 = 0; i0 < all.rows; i0 += height) {
    for (std::int64_t j0 = 0; j0 < all.columns; j0 += width) {
      const std::int64_t i1 = std::min(i0 + height, all.rows);
      const std::int64_t j1 = std::min(j0 + width, all.columns);
      for (std::int64_t i = i0; i < i1; ++i) {
        for (std::int64_t j = j0; j < j1; j += unroll) {
          for (std::int64_t u = j; u < std::min(j + unroll, j1); ++u) {
            const auto at = static_cast<std::size_t>(i * all.columns + u);
            all.output[at] = all.input[at];
          }
        }
      }
    }
  }
}

FunctionFamily parts() {
  FunctionFamily family;
  family.name = "blocked-copy";
  family.description = "copies a matrix block by block";
  auto definition = SpaceDefinition::parse(kSpace);
  FORETUNE_CHECK(definition.has_value());
  family.space = *CompiledSpace::create(*std::move(definition));
  family.feature_table = "gemm-null";
  family.defaults = {{8, 64, 1, 1}};
  family.make_data = [](const Problem& problem,
                        std::uint64_t seed) -> Result<std::unique_ptr<ProblemData>> {
    return std::make_unique<Matrices>(problem.field(*problem.schema().find("m")),
                                      problem.field(*problem.schema().find("n")), seed);
  };
  family.bind = [](const Config& config, ProblemData& data) -> std::function<void()> {
    auto& all = dynamic_cast<Matrices&>(data);
    return [&all, height = config.words[0], width = config.words[1], unroll = config.words[3]] {
      copy_blocks(all, height, width, unroll);
    };
  };
  return family;
}

}  // namespace

const FamilyEntry& blocked_copy_family() {
  static const FamilyEntry entry = function_family(parts());
  return entry;
}

}  // namespace foretune
