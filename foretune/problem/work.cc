#include "foretune/problem/work.h"

#include "foretune/problem/conv.h"
#include "foretune/problem/gemm.h"

namespace foretune {

std::optional<ProblemWork> problem_work(const Problem& problem) {
  if (const Result<GemmProblem> gemm = GemmProblem::from(problem)) {
    return ProblemWork{gemm->flops(), gemm->bytes()};
  }
  if (const Result<ConvProblem> conv = ConvProblem::from(problem)) {
    return ProblemWork{conv->flops(), conv->bytes()};
  }
  return std::nullopt;
}

}  // namespace foretune
