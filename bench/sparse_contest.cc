#include "bench/sparse_contest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "bench/bench_json.h"
#include "bench/contest.h"
#include "bench/sparse_matrices.h"
#include "foretune/base/statistics.h"
#include "foretune/families/sparse_cpu/sparse_data.h"
#include "foretune/sparse/describe.h"

namespace foretune::bench {
namespace {

constexpr int kRepeats = 3;

// Returns the least time of a few repetitions, the first of which touches fresh memory.
double least_seconds(const std::function<void()>& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepeats; ++i) {
    const double begin = seconds_now();
    work();
    least = std::min(least, seconds_now() - begin);
  }
  return least;
}

struct Ours {
  std::shared_ptr<Run> run;
  double pack_s = 0;
};

Result<Ours> bind(const Family& family, const Problem& problem, const Config& config,
                  ProblemData& data) {
  FORETUNE_TRY(const auto artifact, family.prepare(problem, config));
  Ours out;
  FORETUNE_TRY(out.run, artifact->bind(problem, data));
  if (out.run->packs_operands()) {
    out.pack_s = least_seconds([&] { (void)artifact->bind(problem, data); });
  }
  return out;
}

}  // namespace

const SparsePeerTime& SparseTimes::best() const {
  return *std::min_element(peers.begin(), peers.end(),
                           [](const auto& a, const auto& b) { return a.run_s < b.run_s; });
}

double SparseTimes::of(const std::string& library) const {
  const auto found = std::find_if(peers.begin(), peers.end(),
                                  [&](const auto& peer) { return peer.library == library; });
  return found == peers.end() ? 0 : found->run_s;
}

double SparseTimes::break_even() const {
  if (pack_s == 0) {
    return 0;
  }
  return plain_s > ours_s ? std::ceil(pack_s / (plain_s - ours_s))
                          : std::numeric_limits<double>::infinity();
}

Result<SparseTimes> compare_sparse(const Family& family, const Problem& problem,
                                   const Config& config, const SparsePeers& peers, int rounds) {
  FORETUNE_TRY(const auto data, family.make_data(problem, 1));
  auto& typed = dynamic_cast<sparse_cpu::TypedSparseData<float>&>(*data);
  const SparseSizes& sizes = typed.problem().sizes();
  FORETUNE_TRY(const Ours ours, bind(family, problem, config, *data));
  FORETUNE_TRY(const Ours plain,
               bind(family, problem, family.default_configs(problem).front(), *data));
  SparseTimes out{.pack_s = ours.pack_s};
  ThreadPool pool(static_cast<std::size_t>(family.info().max_threads));
  out.copy_s = least_seconds([&] { (void)copy_arrays(typed.matrix(), pool); });
  out.describe_s = least_seconds([&] { (void)sparse::describe(typed.matrix().pattern()); });

  const auto is_right = [&](const std::function<void()>& run, const std::function<void()>& finish) {
    data->poison();
    run();
    if (finish) {
      finish();
    }
    return data->verify();
  };
  std::vector<Contender> contenders;
  for (const Ours* const mine : {&ours, &plain}) {
    contenders.push_back({[mine] { mine->run->run(); }, {}});
    if (const Support right = is_right(contenders.back().run, {}); !right) {
      return fail(ErrorCode::kInvalidArgument, "foretune is wrong for ", problem.text(), ": ",
                  right.reason());
    }
  }
  for (const auto& peer : peers.found) {
    const double begin = seconds_now();
    SparsePeerRun prepared = peer->prepare({.operation = sizes.operation,
                                            .matrix = &typed.matrix(),
                                            .width = sizes.width,
                                            .first = typed.first().data(),
                                            .second = typed.second().data(),
                                            .output = typed.output().data()});
    const double prepare_s = seconds_now() - begin;
    if (!prepared.run) {
      continue;
    }
    if (const Support right = is_right(prepared.run, prepared.finish); !right) {
      out.wrong.push_back(concat(peer->name(), " is left out: ", right.reason(), "."));
      continue;
    }
    out.peers.push_back({peer->library(), 0, prepare_s});
    contenders.push_back({std::move(prepared.run), {}});
  }
  time_in_turn(contenders, rounds, family.info().max_threads > 1);
  out.ours_s = median(contenders[0].seconds);
  out.plain_s = median(contenders[1].seconds);
  for (std::size_t i = 0; i < out.peers.size(); ++i) {
    out.peers[i].run_s = median(contenders[i + 2].seconds);
  }
  return out;
}

}  // namespace foretune::bench
