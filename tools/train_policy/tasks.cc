#include "tasks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>
#include <utility>

#include "bench/loop_problems.h"
#include "foretune/base/check.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/computation_text.h"

namespace foretune::policy_training {
namespace {

using loop::gym::Benchmark;

// Longer runs take their time. Only what does not fit the caches has something more to teach, so
// a few products of up to kLargestFlops are among the others.
constexpr double kLeastFlops = 2e4;
constexpr double kMostFlops = 1.2e7;
constexpr double kLargestFlops = 1e9;
// One in as many products.
constexpr std::uint64_t kLargeOneIn = 9;

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : rng_(seed) {
    if (const auto test = loop::gym::load_benchmarks("mm64_256_16_test25")) {
      for (const Benchmark& benchmark : *test) {
        seen_.insert(benchmark.computation.name);
      }
    }
    for (const char* const text : bench::kEnumeratedNests) {
      seen_.insert(loop::parse_computation(text)->name);
    }
  }

  // Draws until `text` gives a computation that is new and of a fitting size.
  template <class Text>
  Benchmark draw(const Text& text) {
    for (;;) {
      auto parsed = loop::parse_computation(text());
      if (parsed && parsed->flops() <= most_flops_ && parsed->flops() >= kLeastFlops &&
          seen_.insert(parsed->name).second) {
        Benchmark out;
        out.name = parsed->name;
        out.computation = *std::move(parsed);
        return out;
      }
    }
  }

  Benchmark product() {
    const bool is_large = rng_.below(kLargeOneIn) == 0;
    most_flops_ = is_large ? kLargestFlops : kMostFlops;
    Benchmark out =
        draw([&] { return is_large ? product_text(16, 192, 2048) : product_text(8, 8, 512); });
    most_flops_ = kMostFlops;
    return out;
  }
  std::string convolution() {
    const std::int64_t kernel = std::vector<std::int64_t>{1, 3, 3, 3, 5, 7}[rng_.below(6)];
    const std::int64_t image = size(7, 64);
    const bool is_depthwise = rng_.below(4) == 0;
    const std::int64_t channels = size(3, 96);
    const std::int64_t out = is_depthwise ? channels : size(8, 128);
    return concat("conv b=1 c=", channels, " h=", image, " w=", image, " o=", out, " r=", kernel,
                  " s=", kernel, rng_.below(4) == 0 ? " stride=2" : "",
                  kernel > 1 && rng_.below(2) == 0 ? concat(" pad=", kernel / 2) : "",
                  is_depthwise ? concat(" groups=", channels) : "",
                  rng_.below(3) == 0 ? " nhwc" : "", rng_.below(4) == 0 ? " relu" : "");
  }
  std::string reduction() {
    return concat("reduce r=", size(32, 2048), " c=", size(32, 2048),
                  rng_.below(2) == 0 ? " op=add" : " op=max",
                  rng_.below(2) == 0 ? " of_columns" : "");
  }
  std::string chain() {
    static const std::vector<std::string> kChains = {
        "relu", "bias_relu", "residual", "scale", "scale_shift", "relu6", "scale_shift_relu"};
    return concat("map r=", size(32, 2048), " c=", size(32, 2048),
                  " chain=", kChains[rng_.below(kChains.size())]);
  }
  Rng& rng() { return rng_; }

 private:
  // The second operand has at least `least` rows and columns.
  std::string product_text(std::int64_t least_m, std::int64_t least, std::int64_t most) {
    // A half of the sizes are multiples of 16, as most of those that people multiply.
    const std::int64_t m = size(least_m, most);
    const std::int64_t n = size(least, most);
    return concat("mm m=", m, " n=", n, " k=", size(least, most), rng_.below(8) == 0 ? " relu" : "",
                  rng_.below(8) == 0 ? " tb" : "");
  }
  std::int64_t size(std::int64_t low, std::int64_t high) {
    const double exponent =
        std::log(static_cast<double>(low)) +
        rng_.uniform() * std::log(static_cast<double>(high) / static_cast<double>(low));
    const auto drawn = static_cast<std::int64_t>(std::lround(std::exp(exponent)));
    return drawn >= 16 && rng_.below(2) == 0 ? drawn / 16 * 16 : drawn;
  }

  Rng rng_;
  std::unordered_set<std::string> seen_;
  double most_flops_ = kMostFlops;
};

}  // namespace

std::vector<Benchmark> draw_mixed(std::size_t count, std::uint64_t seed) {
  Drawer drawer(seed);
  std::vector<Benchmark> out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t kind = drawer.rng().below(10);
    out.push_back(kind < 5   ? drawer.product()
                  : kind < 8 ? drawer.draw([&] { return drawer.convolution(); })
                  : kind < 9 ? drawer.draw([&] { return drawer.reduction(); })
                             : drawer.draw([&] { return drawer.chain(); }));
  }
  return out;
}

std::vector<Benchmark> draw_products(std::size_t count, std::uint64_t seed) {
  Drawer drawer(seed);
  std::vector<Benchmark> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(drawer.product());
  }
  return out;
}

Result<std::vector<Benchmark>> benchmarks_of(std::string_view name, std::size_t count,
                                             std::uint64_t seed) {
  std::vector<Benchmark> out;
  for (const std::string_view part : split(name, ';')) {
    std::vector<Benchmark> more;
    if (trim(part) == "mixed") {
      more = draw_mixed(count, seed);
    } else if (trim(part) == "products") {
      more = draw_products(count, seed);
    } else {
      FORETUNE_TRY(more, loop::gym::load_benchmarks(trim(part)));
    }
    std::move(more.begin(), more.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace foretune::policy_training
