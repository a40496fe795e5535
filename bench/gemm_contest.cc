#include "bench/gemm_contest.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "bench/bench_json.h"
#include "foretune/base/statistics.h"
#include "foretune/dispatch/sgemm.h"
#include "foretune/families/cpu_gemm/gemm_data.h"
#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

constexpr double kWindowSeconds = 5e-3;
constexpr double kProbeSeconds = 5e-3;
// Libraries' threads wait for more work by spinning, OpenBLAS's for 2^26 cycles; whoever comes next
// would share the cores with them. After such a rest it takes some milliseconds before the threads
// of a contender are spread over the cores again.
constexpr auto kRest = std::chrono::milliseconds(40);
constexpr double kWarmUpSeconds = 10e-3;

// Who is timed, and where the result goes.
struct Contender {
  std::string name;
  std::function<void()> run;
  double* result_s = nullptr;
  std::vector<double> seconds;  // per product, one for each round
};

double timed(const std::function<void()>& run) {
  double start = bench::seconds_now();
  run();
  const double once = bench::seconds_now() - start;
  if (once >= kWindowSeconds) {
    return once;
  }
  const int repeats = std::max(1, static_cast<int>(kWindowSeconds / once));
  start = bench::seconds_now();
  for (int i = 0; i < repeats; ++i) {
    run();
  }
  return (bench::seconds_now() - start) / repeats;
}

Result<std::function<void()>> bound(const Family& family, const Problem& problem,
                                    const Config& config, ProblemData& data) {
  FORETUNE_TRY(const auto artifact, family.prepare(problem, config));
  FORETUNE_TRY(const std::shared_ptr<Run> run, artifact->bind(problem, data));
  return [run] { run->run(); };
}

std::function<void()> our_call(const GemmProblem& problem, const GemmOperands& operands) {
  const auto m = static_cast<int>(problem.m());
  const auto n = static_cast<int>(problem.n());
  const auto k = static_cast<int>(problem.k());
  const bool trans_a = a_by_columns(problem.layout());
  const bool trans_b = b_by_columns(problem.layout());
  return [=] {
    foretune_sgemm(FORETUNE_ROW_MAJOR, trans_a ? FORETUNE_TRANS : FORETUNE_NO_TRANS,
                   trans_b ? FORETUNE_TRANS : FORETUNE_NO_TRANS, m, n, k, 1.0F, operands.a,
                   trans_a ? m : k, operands.b, trans_b ? k : n, 0.0F, operands.c, n);
  };
}

PeerProduct product_of(const GemmProblem& problem, const GemmOperands& operands) {
  return {.m = problem.m(),
          .n = problem.n(),
          .k = problem.k(),
          .a_by_columns = a_by_columns(problem.layout()),
          .b_by_columns = b_by_columns(problem.layout()),
          // The libraries' interfaces lack const. NOLINTBEGIN(*-const-cast)
          .a = const_cast<float*>(operands.a),
          .b = const_cast<float*>(operands.b),
          // NOLINTEND(*-const-cast)
          .c = operands.c};
}

// The analyzer loses sight of what a std::function owns when it moves.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks)
Result<std::vector<Contender>> contenders_of(const Contest& contest, const Shape& shape,
                                             const Config& winner, ProblemData& data,
                                             ShapeResult& result) {
  const Problem problem = shape.problem.to_problem();
  const GemmOperands operands = dynamic_cast<GemmData&>(data).operands();
  std::vector<Contender> out;
  FORETUNE_TRY(auto ours, bound(contest.family, problem, winner, data));
  out.push_back({"foretune", std::move(ours), &result.ours_s, {}});
  if (contest.selector != nullptr) {
    const Choice choice = contest.selector->select(problem);
    if (!choice.has_candidate) {
      return fail(ErrorCode::kNotFound, "the model has nothing for ", problem.text());
    }
    FORETUNE_TRY(auto selected,
                 bound(contest.family, problem, contest.selector->config(choice.candidate), data));
    out.push_back({"foretune, selected", std::move(selected), &result.selected_s, {}});
  }
  out.push_back({"foretune_sgemm", our_call(shape.problem, operands), &result.called_s, {}});
  for (const auto& peer : contest.peers.found) {
    result.library[peer->name()] = peer->library();
    if (auto run = peer->plan(product_of(shape.problem, operands))) {
      out.push_back({peer->name(), std::move(run), &result.planned_s[peer->name()], {}});
    }
    if (auto run = peer->call(product_of(shape.problem, operands))) {
      out.push_back(
          {concat(peer->name(), ", called"), std::move(run), &result.calls_s[peer->name()], {}});
    }
  }
  return out;
}
// NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)

}  // namespace

std::string Shape::text() const {
  return concat(problem.m(), "x", problem.n(), "x", problem.k(), " ", to_string(problem.layout()));
}

Result<std::vector<Shape>> read_shapes(const std::string& paths,
                                       const bench::TrainedShapes* trained) {
  FORETUNE_TRY(const std::vector<bench::RegimeShape> listed, bench::read_regimes(paths));
  std::vector<Shape> shapes;
  for (const bench::RegimeShape& shape : listed) {
    FORETUNE_TRY(const GemmProblem problem, GemmProblem::from(shape.problem));
    shapes.push_back({problem, shape.regime, bench::classes_of(shape, trained)});
  }
  return shapes;
}

std::string fastest(const std::map<std::string, double>& seconds, const ShapeResult& result,
                    const std::string& library) {
  std::string best;
  for (const auto& [name, time] : seconds) {
    const bool counts = library.empty() || result.library.at(name) == library;
    if (counts && (best.empty() || time < seconds.at(best))) {
      best = name;
    }
  }
  return best;
}

Result<ShapeResult> measure_shape(const Contest& contest, const Shape& shape,
                                  const Config& winner) {
  const Problem problem = shape.problem.to_problem();
  FORETUNE_TRY(const auto data, contest.family.make_data(problem, 1));
  ShapeResult result;
  FORETUNE_TRY(std::vector<Contender> contenders,
               contenders_of(contest, shape, winner, *data, result));
  for (const Contender& contender : contenders) {
    data->poison();
    contender.run();
    if (const Support right = data->verify(); !right) {
      return fail(ErrorCode::kInvalidArgument, contender.name, " is wrong for ", problem.text(),
                  ": ", right.reason());
    }
  }
  for (int round = 0; round < contest.rounds; ++round) {
    result.peak_gflops = std::max(result.peak_gflops, measure_fma_gflops(kProbeSeconds));
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[(i + static_cast<std::size_t>(round)) % contenders.size()];
      if (contest.threads > 1) {
        std::this_thread::sleep_for(kRest);
        const double start = bench::seconds_now();
        do {
          contender.run();
        } while (bench::seconds_now() - start < kWarmUpSeconds);
      }
      contender.seconds.push_back(timed(contender.run));
    }
  }
  for (const Contender& contender : contenders) {
    *contender.result_s = median(contender.seconds);
  }
  return result;
}

}  // namespace foretune
