// Measures the cost of the dispatcher: making one, deciding a new problem and looking up a known
// one. Also times foretune_sgemm beside OpenBLAS's cblas_sgemm on small squares, one thread,
// interleaved.
//
//   dispatch [--rounds 15] [--json FILE]
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/bench_json.h"
#include "bench/gemm_peers.h"
#include "foretune/base/statistics.h"
#include "foretune/dispatch/gemm_dispatch.h"
#include "foretune/dispatch/sgemm.h"

namespace foretune {
namespace {

double seconds_of(const std::function<void()>& body) {
  const double start = bench::seconds_now();
  body();
  return bench::seconds_now() - start;
}

double median_seconds(int rounds, const std::function<void()>& body) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    seconds.push_back(seconds_of(body));
  }
  return median(seconds);
}

Status run_small_squares(Peer* peer, int rounds, Figures& figures) {
  foretune_set_num_threads(1);
  bool failed = false;
  std::printf("%-6s %14s %14s %7s\n", "size", "foretune ns", "OpenBLAS ns", "ratio");
  for (const int size : {4, 8, 16, 32, 64}) {
    std::vector<float> a(static_cast<std::size_t>(size * size), 0.5F);
    std::vector<float> b = a;
    std::vector<float> c = a;
    constexpr int kCalls = 2000;
    const auto ours = [&] {
      for (int i = 0; i < kCalls; ++i) {
        failed |=
            0 != foretune_sgemm(FORETUNE_ROW_MAJOR, FORETUNE_NO_TRANS, FORETUNE_NO_TRANS, size,
                                size, size, 1, a.data(), size, b.data(), size, 0, c.data(), size);
      }
    };
    const std::function<void()> theirs_once =
        peer == nullptr
            ? std::function<void()>()
            : peer->call(
                  {.m = size, .n = size, .k = size, .a = a.data(), .b = b.data(), .c = c.data()});
    const auto theirs = [&] {
      for (int i = 0; i < kCalls && theirs_once; ++i) {
        theirs_once();
      }
    };
    ours();
    theirs();
    std::vector<double> our_ns;
    std::vector<double> their_ns;
    for (int round = 0; round < rounds; ++round) {
      our_ns.push_back(1e9 * seconds_of(ours) / kCalls);
      their_ns.push_back(1e9 * seconds_of(theirs) / kCalls);
    }
    figures.add(concat("sgemm_", size, "_ns"), median(our_ns));
    std::printf("%-6d %14.0f", size, median(our_ns));
    if (theirs_once) {
      std::printf(" %14.0f %7.2f", median(their_ns), median(their_ns) / median(our_ns));
      figures.add(concat("openblas_", size, "_ns"), median(their_ns));
    }
    std::printf("\n");
  }
  return failed ? fail(ErrorCode::kInternal, "foretune_sgemm failed") : Status();
}

Status run(int argc, char** argv, Figures& figures) {
  const auto rounds = parse_int(bench::argument(argc, argv, "rounds", "15"));
  if (!rounds || *rounds < 1) {
    return fail(ErrorCode::kInvalidArgument, "--rounds takes a number");
  }
  Peers peers = load_peers(1);
  Peer* openblas = nullptr;
  for (const auto& peer : peers.found) {
    if (peer->library() == "openblas") {
      openblas = peer.get();
    }
  }
  const int count = static_cast<int>(*rounds);
  std::unique_ptr<GemmDispatcher> dispatcher;
  bool failed = false;
  const double open = median_seconds(count, [&] {
    auto made = GemmDispatcher::for_this_cpu({.threads = 1});
    failed = failed || !made;
    dispatcher = made ? std::move(*made) : nullptr;
  });
  if (failed) {
    return fail(ErrorCode::kUnsupported, "no dispatcher can be made here");
  }
  std::int64_t size = 100;
  const double decide = median_seconds(count, [&] {
    const auto problem = GemmProblem::create({.m = ++size, .n = 200, .k = 300});
    failed = failed || !problem || !dispatcher->kernel(*problem);
  });
  constexpr int kLookUps = 200'000;
  FORETUNE_TRY(const GemmProblem known, GemmProblem::create({.m = 128, .n = 200, .k = 300}));
  const Problem problem = known.to_problem();
  const double look_up = median_seconds(count, [&] {
    for (int i = 0; i < kLookUps; ++i) {
      failed = failed || !dispatcher->dispatcher().next(problem);
    }
  });
  if (failed) {
    return fail(ErrorCode::kUnsupported, "a problem could not be decided");
  }
  std::printf(
      "make a dispatcher %.1f ms, decide a new problem %.2f ms, look a known one up %.0f ns\n",
      1e3 * open, 1e3 * decide, 1e9 * look_up / kLookUps);
  figures.add("open_ms", 1e3 * open);
  figures.add("decide_ms", 1e3 * decide);
  figures.add("look_up_ns", 1e9 * look_up / kLookUps);
  return run_small_squares(openblas, count, figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("dispatch", argc, argv, &foretune::run);
}
