#include "foretune/cudnn/node.h"

namespace foretune::cudnn {

Node::~Node() {
  if (descriptor_ != nullptr) {
    api_->descriptor_destroy(descriptor_);  // a destructor cannot report an error
  }
}

Result<Node> Node::make(const std::shared_ptr<const Api>& api, Kind kind) {
  Node node;
  node.api_ = api;
  FORETUNE_TRY_STATUS(
      api->check(api->descriptor_create(kind, &node.descriptor_), "cudnnBackendCreateDescriptor"));
  return node;
}

Status Node::finalize(std::string_view what) {
  return api_->check(api_->finalize(descriptor_), what);
}

Status Node::set_raw(Attribute attribute, Type type, std::size_t count, const void* values) {
  return api_->check(
      api_->set(descriptor_, attribute, type, static_cast<std::int64_t>(count), values),
      "cudnnBackendSetAttribute");
}

Status Node::get_raw(Attribute attribute, Type type, std::size_t most, std::int64_t& count,
                     void* values) const {
  return api_->check(
      api_->get(descriptor_, attribute, type, static_cast<std::int64_t>(most), &count, values),
      "cudnnBackendGetAttribute");
}

Result<std::vector<Node>> Node::nodes(Attribute attribute, Kind kind, std::size_t most) const {
  // The library fills descriptors that the caller made.
  std::vector<Node> nodes;
  std::vector<Descriptor> descriptors;
  for (std::size_t i = 0; i < most; ++i) {
    FORETUNE_TRY(Node node, make(api_, kind));
    descriptors.push_back(node.get());
    nodes.push_back(std::move(node));
  }
  std::int64_t count = 0;
  FORETUNE_TRY_STATUS(get_raw(attribute, Type::kDescriptor, most, count, descriptors.data()));
  nodes.resize(std::min(most, static_cast<std::size_t>(std::max<std::int64_t>(0, count))));
  return nodes;
}

}  // namespace foretune::cudnn
