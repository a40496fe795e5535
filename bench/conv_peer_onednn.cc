#include "bench/conv_peer.h"

#ifdef FORETUNE_HAS_ONEDNN
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

#include "foretune/base/text.h"
#endif

namespace foretune {

#ifdef FORETUNE_HAS_ONEDNN
namespace {

using dnnl::memory;

memory::desc plain(const memory::dims& dims, memory::format_tag tag) {
  return {dims, memory::data_type::f32, tag};
}

dnnl::convolution_forward::primitive_desc describe(const dnnl::engine& engine,
                                                   const loop::ConvSizes& s,
                                                   const memory::desc& image,
                                                   const memory::desc& weights,
                                                   const memory::desc& output) {
  const memory::dims strides{s.stride, s.stride};
  const memory::dims dilations{s.dilation - 1, s.dilation - 1};
  const memory::dims padding{s.pad, s.pad};
  constexpr auto kKind = dnnl::prop_kind::forward_inference;
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR < 3
  return {dnnl::convolution_forward::desc(kKind, kAlgorithm, image, weights, output, strides,
                                          dilations, padding, padding),
          engine};
#else
  return {engine, kKind, kAlgorithm, image, weights, output, strides, dilations, padding, padding};
#endif
}

}  // namespace

std::string onednn_name() {
  return concat("oneDNN ", DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR, ".", DNNL_VERSION_PATCH);
}

std::function<void()> prepare_onednn_convolution(const loop::ConvSizes& s, float* image,
                                                 float* weights, float* output) {
  const auto out_size = [&](std::int64_t size, std::int64_t kernel) {
    return (size + 2 * s.pad - s.dilation * (kernel - 1) - 1) / s.stride + 1;
  };
  const memory::dims image_dims{s.batch, s.channels, s.height, s.width};
  const memory::dims output_dims{s.batch, s.out_channels, out_size(s.height, s.kernel_height),
                                 out_size(s.width, s.kernel_width)};
  const bool is_grouped = s.groups > 1;
  const memory::dims weights_dims =
      is_grouped ? memory::dims{s.groups, s.out_channels / s.groups, s.channels / s.groups,
                                s.kernel_height, s.kernel_width}
                 : memory::dims{s.out_channels, s.channels, s.kernel_height, s.kernel_width};
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    auto stream = std::make_shared<dnnl::stream>(engine);
    const memory::desc image_desc = plain(image_dims, memory::format_tag::nhwc);
    const memory::desc output_desc = plain(output_dims, memory::format_tag::nhwc);
    const memory::desc any = plain(weights_dims, memory::format_tag::any);
    const auto described = describe(engine, s, image_desc, any, output_desc);
    memory ours(
        plain(weights_dims, is_grouped ? memory::format_tag::hwigo : memory::format_tag::hwio),
        engine, weights);
    memory theirs(described.weights_desc(), engine);
    dnnl::reorder(ours, theirs).execute(*stream, ours, theirs);
    stream->wait();
    const std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, memory(image_desc, engine, image)},
        {DNNL_ARG_WEIGHTS, theirs},
        {DNNL_ARG_DST, memory(output_desc, engine, output)}};
    return [stream, arguments, run = dnnl::convolution_forward(described)] {
      run.execute(*stream, arguments);
      stream->wait();
    };
  } catch (const dnnl::error&) {
    return {};
  }
}

#else

std::string onednn_name() { return {}; }

std::function<void()> prepare_onednn_convolution(const loop::ConvSizes& /*sizes*/, float* /*image*/,
                                                 float* /*weights*/, float* /*output*/) {
  return {};
}

#endif

}  // namespace foretune
