// An object of cuDNN's backend: a list of attributes that is set, finalised and then read.
//
//   FORETUNE_TRY(Node tensor, Node::make(library->api_pointer(), Kind::kTensor));
//   FORETUNE_TRY_STATUS(tensor.set(Attribute::kTensorDimensions, Type::kInt64, dimensions));
//   FORETUNE_TRY_STATUS(tensor.finalize("tensor"));
//
// Thread safety: one thread at a time. Cost: an allocation of the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/cudnn_api.h"

namespace foretune::cudnn {

class Node {
 public:
  Node() = default;
  Node(Node&& other) noexcept { *this = std::move(other); }
  Node& operator=(Node&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  // Errors: as Api::check().
  static Result<Node> make(const std::shared_ptr<const Api>& api, Kind kind);
  [[nodiscard]] Descriptor get() const { return descriptor_; }

  template <class T>
  Status set(Attribute attribute, Type type, std::span<const T> values) {
    return set_raw(attribute, type, values.size(), values.data());
  }
  template <class T>
  Status set(Attribute attribute, Type type, const T& value) {
    return set_raw(attribute, type, 1, &value);
  }
  // Sets a list of other nodes, which must live as long as this one.
  Status set(Attribute attribute, const Node& node) {
    return set(attribute, Type::kDescriptor, node.get());
  }
  Status finalize(std::string_view what);

  // Errors: as Api::check(); kInternal when the library gives no value.
  template <class T>
  [[nodiscard]] Result<T> value(Attribute attribute, Type type) const {
    T value{};
    std::int64_t count = 0;
    FORETUNE_TRY_STATUS(get_raw(attribute, type, 1, count, &value));
    if (count < 1) {
      return fail(ErrorCode::kInternal, "cuDNN gives no value of attribute ",
                  static_cast<int>(attribute));
    }
    return value;
  }
  // Returns up to `most` values; an empty list when the library refuses.
  template <class T>
  [[nodiscard]] std::vector<T> values(Attribute attribute, Type type, std::size_t most) const {
    std::vector<T> values(most);
    std::int64_t count = 0;
    if (!get_raw(attribute, type, most, count, values.data())) {
      return {};
    }
    values.resize(std::min(most, static_cast<std::size_t>(std::max<std::int64_t>(0, count))));
    return values;
  }
  // Returns up to `most` nodes of a list. Errors: as Api::check().
  [[nodiscard]] Result<std::vector<Node>> nodes(Attribute attribute, Kind kind,
                                                std::size_t most) const;

 private:
  Status set_raw(Attribute attribute, Type type, std::size_t count, const void* values);
  Status get_raw(Attribute attribute, Type type, std::size_t most, std::int64_t& count,
                 void* values) const;

  std::shared_ptr<const Api> api_;
  Descriptor descriptor_ = nullptr;
};

}  // namespace foretune::cudnn
