#include "bench/conv_peer.h"

#ifdef FORETUNE_HAS_ONEDNN
#include <dnnl.hpp>
#include <initializer_list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

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

namespace {

// The tensors of a convolution as oneDNN sees them.
struct Tensor {
  memory ours;
  memory theirs;
  [[nodiscard]] bool is_reordered() const { return ours.get_desc() != theirs.get_desc(); }
};

Tensor tensor_of(const memory::desc& plain, const memory::desc& preferred, float* values,
                 const dnnl::engine& engine) {
  memory ours(plain, engine, values);
  memory theirs = preferred == plain ? ours : memory(preferred, engine);
  return {std::move(ours), std::move(theirs)};
}

// Handles are copied because oneDNN wants them changeable.
void reorder(const dnnl::stream& stream, memory from, memory to) {
  dnnl::reorder(from, to).execute(stream, from, to);
}

// Distances between elements with channels last, for the order n, c, d, h, w.
memory::dims channels_last(const memory::dims& dims) {
  memory::dims strides(dims.size());
  strides[1] = 1;
  memory::dim step = dims[1];
  for (std::size_t i = dims.size() - 1; i >= 2; --i) {
    strides[i] = step;
    step *= dims[i];
  }
  strides[0] = step;
  return strides;
}

memory::desc any_of(const memory::dims& dims, memory::data_type type) {
  return {dims, type, memory::format_tag::any};
}

// The types of a problem's three tensors.
struct Types {
  memory::data_type input = memory::data_type::f32;
  memory::data_type weights = memory::data_type::f32;
  memory::data_type output = memory::data_type::f32;
};

Types types_of(const ConvProblem& problem) {
  using Type = memory::data_type;
  if (problem.dtype() == DataType::kI8) {
    return {Type::u8, Type::s8, problem.has_sums() ? Type::s32 : Type::s8};
  }
  const Type type = problem.dtype() == DataType::kBf16 ? Type::bf16 : Type::f32;
  Types types{type, type, type};
  if (problem.has_sums()) {
    (problem.operation() == ConvOperation::kForward        ? types.output
     : problem.operation() == ConvOperation::kBackwardData ? types.input
                                                           : types.weights) = Type::f32;
  }
  return types;
}

}  // namespace

PeerConvolution prepare_onednn(const ConvProblem& problem, float* input, float* weights,
                               float* output, const float* scales) {
  const ConvSizes& s = problem.sizes();
  // Leading axes of one point are left out: oneDNN has convolutions of its own for each dimension.
  const std::size_t axes = problem.is_3d() ? 3 : s.hi == 1 && s.y == 1 ? 1 : 2;
  const auto last = [axes](std::initializer_list<std::int64_t> values) {
    return memory::dims(values.end() - static_cast<std::ptrdiff_t>(axes), values.end());
  };
  const auto joined = [](memory::dims first, const memory::dims& rest) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  };
  const memory::dims in = joined({s.n, s.c}, last({s.di, s.hi, s.wi}));
  const memory::dims out =
      joined({s.n, s.k}, last({problem.depth_out(), problem.ho(), problem.wo()}));
  const memory::dims filter = joined({s.k / s.g, s.c / s.g}, last({s.z, s.y, s.x}));
  memory::dims filters = filter;
  memory::dims filter_strides = channels_last(filter);
  if (s.g > 1) {
    filters.insert(filters.begin(), s.g);
    filter_strides.insert(filter_strides.begin(), filter[0] * filter_strides[0]);
  }
  const memory::dims strides = last({s.stride_d, s.stride_h, s.stride_w});
  const memory::dims dilations = last({s.dilation_d - 1, s.dilation_h - 1, s.dilation_w - 1});
  const memory::dims padding = last({s.pad_d, s.pad_h, s.pad_w});
  const Types types = types_of(problem);
  dnnl::primitive_attr attributes;
  if (scales != nullptr) {
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, s.g > 1 ? 3 : 1);
  }
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    auto stream = std::make_shared<dnnl::stream>(engine);
    const bool is_forward = problem.operation() == ConvOperation::kForward;
    const dnnl::convolution_forward::primitive_desc forward(
        engine, is_forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training,
        kAlgorithm, any_of(in, types.input), any_of(filters, types.weights),
        any_of(out, types.output), strides, dilations, padding, padding, attributes);
    dnnl::primitive primitive;
    memory::desc in_desc;
    memory::desc filter_desc;
    memory::desc out_desc;
    switch (problem.operation()) {
      case ConvOperation::kForward:
        primitive = dnnl::convolution_forward(forward);
        in_desc = forward.src_desc();
        filter_desc = forward.weights_desc();
        out_desc = forward.dst_desc();
        break;
      case ConvOperation::kBackwardData: {
        const dnnl::convolution_backward_data::primitive_desc described(
            engine, kAlgorithm, any_of(in, types.input), any_of(filters, types.weights),
            any_of(out, types.output), strides, dilations, padding, padding, forward);
        primitive = dnnl::convolution_backward_data(described);
        in_desc = described.diff_src_desc();
        filter_desc = described.weights_desc();
        out_desc = described.diff_dst_desc();
        break;
      }
      case ConvOperation::kBackwardWeight: {
        const dnnl::convolution_backward_weights::primitive_desc described(
            engine, kAlgorithm, any_of(in, types.input), any_of(filters, types.weights),
            any_of(out, types.output), strides, dilations, padding, padding, forward);
        primitive = dnnl::convolution_backward_weights(described);
        in_desc = described.src_desc();
        filter_desc = described.diff_weights_desc();
        out_desc = described.diff_dst_desc();
        break;
      }
    }
    const Tensor x = tensor_of({in, types.input, channels_last(in)}, in_desc, input, engine);
    const Tensor w =
        tensor_of({filters, types.weights, filter_strides}, filter_desc, weights, engine);
    const Tensor y = tensor_of({out, types.output, channels_last(out)}, out_desc, output, engine);
    const Tensor& result = is_forward                                            ? y
                           : problem.operation() == ConvOperation::kBackwardData ? x
                                                                                 : w;
    std::vector<Tensor> sources;
    for (const Tensor* const tensor : {&x, &w, &y}) {
      if (tensor == &result || !tensor->is_reordered()) {
        continue;
      }
      reorder(*stream, tensor->ours, tensor->theirs);
      if (tensor != &w) {
        sources.push_back(*tensor);
      }
    }
    stream->wait();
    const bool is_data = problem.operation() == ConvOperation::kBackwardData;
    const bool is_weight = problem.operation() == ConvOperation::kBackwardWeight;
    std::unordered_map<int, memory> arguments{
        {is_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, x.theirs},
        {is_weight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, w.theirs},
        {is_forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y.theirs}};
    if (scales != nullptr) {
      // Handles are changeable even where nothing is changed.
      arguments[DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS] =
          memory({{s.k}, memory::data_type::f32, memory::format_tag::x}, engine,
                 const_cast<float*>(scales));  // NOLINT(*-const-cast)
    }
    const auto run = [stream, primitive, arguments] {
      primitive.execute(*stream, arguments);
      stream->wait();
    };
    const auto finish = [stream, result] {
      if (result.is_reordered()) {
        reorder(*stream, result.theirs, result.ours);
        stream->wait();
      }
    };
    const auto whole = [stream, sources, run, finish] {
      for (const Tensor& tensor : sources) {
        reorder(*stream, tensor.ours, tensor.theirs);
      }
      run();
      finish();
    };
    return {.run = run, .whole = whole, .finish = finish};
  } catch (const dnnl::error&) {
    return {};
  }
}

bool limit_onednn(DataType dtype) {
  const dnnl::cpu_isa isa = dtype == DataType::kI8     ? dnnl::cpu_isa::avx512_core_vnni
                            : dtype == DataType::kBf16 ? dnnl::cpu_isa::avx512_core_bf16
                                                       : dnnl::cpu_isa::avx512_core;
  return dnnl::set_max_cpu_isa(isa) == dnnl::status::success;
}

#else

std::string onednn_name() { return {}; }

PeerConvolution prepare_onednn(const ConvProblem& /*problem*/, float* /*input*/, float* /*weights*/,
                               float* /*output*/, const float* /*scales*/) {
  return {};
}

bool limit_onednn(DataType /*dtype*/) { return false; }

std::function<void()> prepare_onednn_convolution(const loop::ConvSizes& /*sizes*/, float* /*image*/,
                                                 float* /*weights*/, float* /*output*/) {
  return {};
}

#endif

}  // namespace foretune
