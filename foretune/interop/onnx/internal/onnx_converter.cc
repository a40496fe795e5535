// The walk over a model's nodes.
#include "foretune/interop/onnx/internal/onnx_converter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/onnx/internal/onnx_batch.h"
#include "foretune/interop/onnx/internal/onnx_operators.h"

namespace foretune::onnx_internal {

namespace {

// The opset of the first release.
constexpr std::int64_t kMinOpset = 1;
// ONNX's own operators have kept their meaning up to here.
constexpr std::int64_t kMaxOpset = 30;

std::string label_of(const NodeData& node) {
  const std::string name = !node.name.empty()     ? node.name
                           : node.outputs.empty() ? std::string()
                                                  : node.outputs[0];
  return foretune::concat("the node ", foretune::quoted(name), " (", foretune::quoted(node.op),
                          ")");
}

// Operators of models whose weights and tensors became integers, in any domain.
bool is_quantised(const std::string& op) {
  return op.starts_with("QLinear") || op.ends_with("QuantizeLinear") || op.ends_with("Integer") ||
         op == "DequantizeLinear" || op == "QAttention" || op == "QGemm";
}

bool is_own_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

}  // namespace

Converter::Converter(ModelData model, const OnnxOptions& options)
    : model_(std::move(model)),
      options_(options),
      builder_(options.name.empty() ? model_.name : options.name),
      allowance_(options.max_constants) {}

Result<graph::Network> Converter::run() {
  if (model_.opset < kMinOpset || model_.opset > kMaxOpset) {
    return fail(ErrorCode::kUnsupported, "operators of opset ", model_.opset, " are not read");
  }
  find_needed();
  for (const InputData& input : model_.inputs) {
    FORETUNE_TRY_STATUS(add_input(input));
  }
  for (std::size_t i = 0; i < model_.nodes.size(); ++i) {
    if (auto status = add_node(i); !status) {
      return fail_because(status.error(), label_of(model_.nodes[i]));
    }
  }
  std::vector<graph::TensorId> outputs;
  for (const std::string& name : model_.outputs) {
    FORETUNE_TRY(const Value output, value(name));
    if (output.is_constant()) {
      return fail(ErrorCode::kUnsupported, "the output ", foretune::quoted(name), " is constant");
    }
    if (builder_.find(output.id)->is_input()) {
      return fail(ErrorCode::kUnsupported, "the output ", foretune::quoted(name),
                  " is an input as it came");
    }
    outputs.push_back(output.id);
  }
  FORETUNE_TRY_STATUS(check_batch());
  return builder_.finish(std::move(outputs));
}

Status Converter::check_batch() const {
  const auto found = [&](const std::string& name) -> const Value* {
    const auto place = values_.find(name);
    return place == values_.end() ? nullptr : &place->second;
  };
  BatchTracker tracker(
      [&](const std::string& name) -> const graph::Shape* {
        const Value* const value = found(name);
        return value == nullptr || value->is_constant() ? nullptr : &shape(*value);
      },
      [&](const std::string& name) -> const std::vector<std::int64_t>* {
        const Value* const value = found(name);
        return value != nullptr && value->is_constant() ? &value->array->integers : nullptr;
      });
  for (const InputData& input : model_.inputs) {
    tracker.start(input.name);
  }
  for (const NodeData& node : model_.nodes) {
    tracker.follow(node);
  }
  for (const std::string& name : model_.outputs) {
    if (tracker.points_before(name) > 1) {
      return fail(ErrorCode::kUnsupported, "the output ", foretune::quoted(name), " of ",
                  graph::to_text(shape(*found(name))),
                  " has other dimensions before the batch; transpose it in the model");
    }
  }
  return {};
}

void Converter::find_needed() {
  needed_.insert(model_.outputs.begin(), model_.outputs.end());
  for (const std::string& name : model_.outputs) {
    readers_[name].push_back(model_.nodes.size());
  }
  for (std::size_t i = model_.nodes.size(); i-- > 0;) {
    const NodeData& node = model_.nodes[i];
    bool is_needed = false;
    for (const std::string& name : node.outputs) {
      is_needed = is_needed || (!name.empty() && needed_.contains(name));
    }
    if (!is_needed) {
      done_.insert(i);
      continue;
    }
    for (const std::string& name : node.inputs) {
      needed_.insert(name);
      readers_[name].push_back(i);
    }
  }
}

// Refuses an input whose first dimension is not the batch, as far as its file tells.
Status Converter::check_input(const InputData& input) const {
  const auto refuse = [&](std::size_t dimension) {
    return fail(ErrorCode::kUnsupported, "the input ", foretune::quoted(input.name),
                " has the batch in dimension ", dimension,
                ", behind others; transpose it in the model");
  };
  const auto given = options_.input_shapes.find(input.name);
  const bool is_given = given != options_.input_shapes.end();
  const graph::Shape& shape = is_given ? given->second : input.shape;
  const auto is_first = [&](std::size_t dimension) {
    return std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(dimension),
                       [](std::int64_t extent) { return extent == 1; });
  };
  const auto named = static_cast<std::size_t>(std::max<std::int64_t>(input.named_batch, 0));
  if (named > 0 && named < shape.size() && !is_first(named)) {
    return refuse(named);
  }
  // Images of several rows that the file fixes, and one of something that it leaves open.
  if (is_given && shape.size() == input.shape.size() && !shape.empty() && shape[0] > 1 &&
      shape[0] == input.shape[0]) {
    for (std::size_t i = 1; i < shape.size(); ++i) {
      if (input.shape[i] == kOpenExtent && shape[i] == 1) {
        return refuse(i);
      }
    }
  }
  return {};
}

Status Converter::add_input(const InputData& input) {
  // Older models list their weights among the inputs.
  if (!needed_.contains(input.name) || model_.initializers.contains(input.name)) {
    return {};
  }
  if (values_.contains(input.name)) {
    return fail(ErrorCode::kCorrupt, "two inputs are called ", foretune::quoted(input.name));
  }
  if (!is_floating(input.type)) {
    return fail(ErrorCode::kUnsupported, "the input ", foretune::quoted(input.name),
                " is not of floats, but of ONNX's type ", input.type_number);
  }
  FORETUNE_TRY_STATUS(check_input(input));
  graph::Shape shape = input.shape;
  const auto given = options_.input_shapes.find(input.name);
  if (given != options_.input_shapes.end()) {
    shape = given->second;
  } else if (!input.has_shape) {
    return fail(ErrorCode::kInvalidArgument, "the input ", foretune::quoted(input.name),
                " has no shape; give one");
  } else if (!shape.empty()) {
    if (batch_ > 0 && shape[0] > 0 && shape[0] != batch_) {
      return fail(ErrorCode::kUnsupported, "inputs fix batches of ", batch_, " and ", shape[0]);
    }
    batch_ = std::max(batch_, shape[0]);
    shape[0] = 1;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 1) {
      return fail(ErrorCode::kInvalidArgument, "the input ", foretune::quoted(input.name),
                  " is open in dimension ", i, "; give its shape");
    }
  }
  const graph::TensorId id = builder_.input(input.name, std::move(shape));
  if (id == graph::kNoTensor) {
    return tl::unexpected<Error>(builder_.finish({}).error());
  }
  values_[input.name] = {.id = id};
  return {};
}

Status Converter::add_node(std::size_t position) {
  if (done_.contains(position)) {
    return {};
  }
  const NodeData& node = model_.nodes[position];
  const ConvertOperator convert = is_own_domain(node.domain) ? find_operator(node.op) : nullptr;
  if (convert == nullptr && is_quantised(node.op)) {
    return fail(ErrorCode::kUnsupported,
                "the model is quantised; give the one of floats that it was made of");
  }
  if (convert == nullptr) {
    return fail(ErrorCode::kUnsupported, "no operation of networks does this; its opset is ",
                is_own_domain(node.domain) ? foretune::concat("ai.onnx ", model_.opset)
                                           : foretune::quoted(node.domain));
  }
  for (const std::string& name : node.outputs) {
    if (values_.contains(name) && !name.empty()) {
      return fail(ErrorCode::kCorrupt, foretune::quoted(name), " is computed twice");
    }
  }
  NodeContext context(*this, node);
  FORETUNE_TRY_STATUS(convert(context));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (context.wants(i) && !values_.contains(node.outputs[i])) {
      return fail(ErrorCode::kUnsupported, "the output ", foretune::quoted(node.outputs[i]),
                  " is used");
    }
  }
  return {};
}

Result<Value> Converter::value(const std::string& name) {
  if (const auto found = values_.find(name); found != values_.end()) {
    return found->second;
  }
  const auto initializer = model_.initializers.find(name);
  if (initializer == model_.initializers.end()) {
    return fail(ErrorCode::kCorrupt, foretune::quoted(name), " is used before it is computed");
  }
  auto array = decode(initializer->second, allowance_);
  if (!array) {
    return fail_because(array.error(), "the weights ", foretune::quoted(name));
  }
  // Frees the bytes of the file.
  initializer->second = {};
  Array named = **array;
  named.name = name;
  Value weights{.array = std::make_shared<const Array>(std::move(named))};
  values_[name] = weights;
  return weights;
}

graph::TensorId Converter::tensor(const Value& value) {
  if (!value.is_constant()) {
    return value.id;
  }
  const auto [place, is_new] = constants_.try_emplace(value.array.get(), graph::kNoTensor);
  if (is_new) {
    std::string name = value.array->name.empty() ? foretune::concat("constant_", constants_.size())
                                                 : value.array->name;
    place->second =
        builder_.constant(std::move(name), value.array->shape, numbers_of(*value.array));
    kept_.push_back(value.array);
  }
  return place->second;
}

const graph::Shape& Converter::shape(const Value& value) const {
  if (const Array* const array = value.array.get()) {
    return array->shape;
  }
  return builder_.shape(value.id);
}

}  // namespace foretune::onnx_internal
