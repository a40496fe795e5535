#include "bench/conv_contest.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "bench/bench_json.h"
#include "bench/conv_peer.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/families/cpu_conv/conv_data.h"
#include "foretune/problem/problem_type.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::bench {
namespace {

constexpr double kWindowSeconds = 4e-3;
constexpr std::size_t kResamples = 4000;

// Returns the first class that a layer is in.
std::string class_of(const ConvSizes& s) {
  if (s.di > 1 || s.z > 1) {
    return "3-D";
  }
  if (s.hi == 1 && s.y == 1) {
    return "1-D";
  }
  if (s.g > 1) {
    return s.g == s.c ? "depthwise" : "grouped";
  }
  if (s.c <= 4) {
    return "first layer";
  }
  if (s.dilation_h > 1 || s.dilation_w > 1) {
    return "dilated";
  }
  if (s.stride_h > 1 || s.stride_w > 1) {
    return "strided";
  }
  if (s.x * s.y == 1) {
    return "1x1";
  }
  return s.hi <= 8 ? "7x7 map" : s.x == 3 && s.y == 3 ? "3x3" : "other filter";
}

struct Contender {
  std::function<void()> run;
  std::vector<double> seconds;
};

// `has_threads`: those of the last contender may spin for a while on cores that this one uses, and
// its own take a while to wake on cores of their own.
double timed(const std::function<void()>& run, bool has_threads) {
  if (has_threads) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    for (const double woken = bench::seconds_now(); bench::seconds_now() - woken < 10e-3;) {
      run();
    }
  }
  double start = bench::seconds_now();
  run();
  const double once = bench::seconds_now() - start;
  const int repeats = std::max(1, static_cast<int>(kWindowSeconds / once));
  start = bench::seconds_now();
  for (int i = 0; i < repeats; ++i) {
    run();
  }
  return (bench::seconds_now() - start) / repeats;
}

}  // namespace

std::vector<ConvLayer> choose_conv_layers(std::size_t count) {
  std::map<std::string, std::vector<ConvLayer>> by_class;
  std::set<ConvSizes> known;
  const ProblemTypeInfo* conv = nullptr;
  for (const ProblemTypeInfo* const type : problem_types()) {
    conv = type->schema.type == kConvProblem ? type : conv;
  }
  for (const NamedShapeSet& set : conv->shape_sets()) {
    for (const Problem& problem : set.make()) {
      const ConvSizes sizes = ConvProblem::from(problem)->sizes();
      const bool is_layer = set.name.starts_with("conv-") && sizes.n == 1 &&
                            sizes.operation == ConvOperation::kForward;
      if (is_layer && known.insert(sizes).second) {
        by_class[class_of(sizes)].push_back({sizes, class_of(sizes)});
      }
    }
  }
  std::vector<ConvLayer> chosen;
  const std::size_t each = std::max<std::size_t>(1, count / by_class.size());
  for (const auto& [name, layers] : by_class) {
    const std::size_t taken = std::min(each, layers.size());
    for (std::size_t i = 0; i < taken; ++i) {
      chosen.push_back(layers[i * layers.size() / taken]);
    }
  }
  return chosen;
}

std::string text_of(const ConvSizes& sizes) {
  const ConvSizes& s = sizes;
  const auto volume = [](std::int64_t d, std::int64_t h, std::int64_t w) {
    return concat(d > 1 ? concat(d, "x") : "", h, "x", w);
  };
  return concat(s.c, "->", s.k, " ", volume(s.di, s.hi, s.wi), " f", volume(s.z, s.y, s.x),
                s.stride_w > 1 ? concat(" s", s.stride_w) : "",
                s.dilation_w > 1 ? concat(" d", s.dilation_w) : "",
                s.g > 1 ? concat(" g", s.g) : "");
}

Result<Config> tune_conv(const std::shared_ptr<const Family>& family, const Problem& problem,
                         double seconds) {
  Context context;
  context.machine = family->info().fingerprint.digest();
  context.device = family->info().fingerprint.device;
  context.threads = family->info().max_threads;
  Protocol protocol;
  protocol.windows = 2;
  protocol.max_windows = 3;
  const std::unique_ptr<Measurer> measurer = make_local_measurer(family, protocol, context);
  CollectHooks hooks;
  hooks.now_s = &bench::seconds_now;
  TuneOptions options;
  options.strategy = "local";
  options.budget.seconds = seconds;
  FORETUNE_TRY(const TuneResult result,
               tune_problem(*family, *measurer, nullptr, problem, options, hooks));
  return result.finalists.front().config;
}

Result<ConvTimes> compare_with_peer(const Family& family, const ConvProblem& problem,
                                    const Config& config, int rounds) {
  const Problem asked = problem.to_problem();
  FORETUNE_TRY(const auto data,
               cpu_conv::ConvData::create(problem, 1, {.has_plain_integers = true}));
  FORETUNE_TRY(const auto artifact, family.prepare(asked, config));
  FORETUNE_TRY(const std::shared_ptr<Run> ours, artifact->bind(asked, *data));
  const PeerConvolution peer =
      prepare_onednn(problem, data->input(), data->weights(), data->output(),
                     problem.has_sums() ? nullptr : data->quantization().scales);
  if (!peer.run) {
    return fail(ErrorCode::kUnsupported, "oneDNN does not run ", asked.text());
  }
  std::vector<Contender> contenders{{[&] { ours->run(); }, {}}, {peer.run, {}}, {peer.whole, {}}};
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    data->poison();
    contenders[i].run();
    if (i == 1) {
      peer.finish();
    }
    if (const Support right = data->verify(); !right) {
      return fail(ErrorCode::kInvalidArgument, i == 0 ? "foretune" : "oneDNN", " is wrong for ",
                  asked.text(), ": ", right.reason());
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender& next = contenders[(i + static_cast<std::size_t>(round)) % contenders.size()];
      next.seconds.push_back(timed(next.run, family.info().max_threads > 1));
    }
  }
  return ConvTimes{median(contenders[0].seconds), median(contenders[1].seconds),
                   median(contenders[2].seconds)};
}

void print_ratios(const std::string& name, const std::vector<double>& ratios) {
  Rng rng(1);
  const BootstrapInterval interval = bootstrap_interval(ratios, &geometric_mean, kResamples, rng);
  std::printf("  %-14s %3zu layers: %.3f (%.3f to %.3f), least %.3f\n", name.c_str(), ratios.size(),
              geometric_mean(ratios), interval.low, interval.high,
              *std::min_element(ratios.begin(), ratios.end()));
}

}  // namespace foretune::bench
