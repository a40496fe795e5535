#include "bench/conv_contest.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "bench/contest.h"
#include "bench/conv_peer.h"
#include "foretune/base/check.h"
#include "foretune/base/statistics.h"
#include "foretune/families/cpu_conv/conv_data.h"
#include "foretune/problem/problem_type.h"

namespace foretune::bench {
namespace {

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

}  // namespace

std::vector<ConvLayer> choose_conv_layers(std::size_t count) {
  std::map<std::string, std::vector<ConvLayer>> by_class;
  std::set<ConvSizes> known;
  const ProblemTypeInfo* const conv = find_problem_type(kConvProblem);
  FORETUNE_CHECK(conv != nullptr);
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
  time_in_turn(contenders, rounds, family.info().max_threads > 1);
  return ConvTimes{median(contenders[0].seconds), median(contenders[1].seconds),
                   median(contenders[2].seconds)};
}

}  // namespace foretune::bench
