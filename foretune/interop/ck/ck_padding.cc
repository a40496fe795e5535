#include "foretune/interop/ck/ck_padding.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "foretune/interop/ck/ck_kernels.h"

namespace foretune {
namespace {

std::int64_t round_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
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
  std::int64_t of_m = word(P::kPadM) != 0 ? 1 : word(P::kTileM);
  std::int64_t of_n = word(P::kPadN) != 0 ? 1 : word(P::kTileN);
  std::int64_t of_k = word(P::kPadK) != 0 ? 1 : word(P::kTileK) * word(P::kSplitK);
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
  const auto allows = [&](const GemmProblem& problem, const Config& kernel) {
    return static_cast<bool>(space.why_not(kernel, problem.to_problem(), hardware));
  };
  if (std::any_of(pool.begin(), pool.end(),
                  [&](const Config& kernel) { return allows(gemm, kernel); })) {
    return gemm;
  }
  std::optional<GemmProblem> best;
  for (const Config& kernel : pool) {
    const Result<GemmProblem> padded = padded_for(gemm, kernel);
    if (padded && (!best || padded->flops() < best->flops()) && allows(*padded, kernel)) {
      best = *padded;
    }
  }
  if (!best) {
    return fail(ErrorCode::kUnsupported, "none of ", pool.size(), " kernels computes '",
                gemm.to_problem().text(), "', padded or not");
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

}  // namespace foretune
