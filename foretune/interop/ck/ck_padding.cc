#include "foretune/interop/ck/ck_padding.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_kernels.h"

namespace foretune {
namespace {

std::int64_t round_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// Returns true when the space lets one of the kernels compute the problem.
bool any_computes(std::span<const Config> kernels, const Problem& problem,
                  const CompiledSpace& space, const Hardware& hardware) {
  return std::any_of(kernels.begin(), kernels.end(), [&](const Config& kernel) {
    return static_cast<bool>(space.why_not(kernel, problem, hardware));
  });
}

Error computed_by_none(std::size_t kernels, const Problem& problem) {
  return {ErrorCode::kUnsupported,
          concat("none of ", kernels, " kernels computes '", problem.text(), "', padded or not")};
}

}  // namespace

Result<GemmProblem> padded_for(const GemmProblem& gemm, const Config& kernel) {
  using P = CkGemmParameter;
  const ConfigSchema& schema = ck_gemm_schema();
  const auto word = [&](P parameter) -> std::int64_t {
    return kernel.words[static_cast<std::size_t>(parameter)];
  };
  if (kernel.schema != schema.id() || kernel.words.size() != schema.parameters.size() ||
      std::min({word(P::kTileM), word(P::kTileN), word(P::kTileK), word(P::kSplitK)}) < 1) {
    return fail(ErrorCode::kInvalidArgument, "the config is no kernel of ", schema.name);
  }
  // Edges matter along the dimensions in which memory is contiguous; C has rows.
  const bool loads_m = a_by_columns(gemm.layout());
  const bool loads_k = !loads_m || b_by_columns(gemm.layout());
  std::int64_t of_m = word(P::kPadM) != 0 || !loads_m ? 1 : word(P::kTileM);
  std::int64_t of_n = word(P::kPadN) != 0 ? 1 : word(P::kTileN);
  std::int64_t of_k = word(P::kPadK) != 0 || !loads_k ? 1 : word(P::kTileK) * word(P::kSplitK);
  const auto suit_vector = [&](P width, std::int64_t& multiple) {
    if (word(width) > 0) {
      multiple = std::lcm(multiple, word(width));
    }
  };
  suit_vector(P::kVecA, a_by_columns(gemm.layout()) ? of_m : of_k);
  suit_vector(P::kVecB, b_by_columns(gemm.layout()) ? of_k : of_n);
  suit_vector(P::kVecC, of_n);
  GemmSizes sizes = gemm.sizes();
  sizes.m = round_up(sizes.m, of_m);
  sizes.n = round_up(sizes.n, of_n);
  sizes.k = round_up(sizes.k, of_k);
  return GemmProblem::create(sizes);
}

Result<GemmProblem> padded_for_pool(const GemmProblem& gemm, std::span<const Config> pool,
                                    const CompiledSpace& space, const Hardware& hardware) {
  if (any_computes(pool, gemm.to_problem(), space, hardware)) {
    return gemm;
  }
  std::optional<GemmProblem> best;
  for (const Config& kernel : pool) {
    const Result<GemmProblem> padded = padded_for(gemm, kernel);
    if (padded && (!best || padded->flops() < best->flops()) &&
        any_computes({&kernel, 1}, padded->to_problem(), space, hardware)) {
      best = *padded;
    }
  }
  if (!best) {
    return tl::unexpected(computed_by_none(pool.size(), gemm.to_problem()));
  }
  return *best;
}

Result<ConvProblem> padded_channels(const ConvProblem& conv, std::int64_t multiple) {
  if (multiple < 1) {
    return fail(ErrorCode::kInvalidArgument, "channels cannot be rounded up to multiples of ",
                multiple);
  }
  ConvSizes sizes = conv.sizes();
  sizes.c = sizes.g * round_up(sizes.c / sizes.g, multiple);
  sizes.k = sizes.g * round_up(sizes.k / sizes.g, multiple);
  return ConvProblem::create(sizes);
}

Result<ConvProblem> padded_for_pool(const ConvProblem& conv, std::span<const Config> pool,
                                    const CompiledSpace& space, const Hardware& hardware) {
  constexpr std::int64_t kMaxMultiple = 64;
  for (std::int64_t multiple = 1; multiple <= kMaxMultiple; multiple *= 2) {
    FORETUNE_TRY(ConvProblem padded, padded_channels(conv, multiple));
    if (any_computes(pool, padded.to_problem(), space, hardware)) {
      return padded;
    }
  }
  return tl::unexpected(computed_by_none(pool.size(), conv.to_problem()));
}

}  // namespace foretune
