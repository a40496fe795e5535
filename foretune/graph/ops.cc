#include "foretune/graph/ops.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/graph/internal/op_rows.h"

namespace foretune::graph {

std::span<const OpInfo* const> all_ops() {
  static const std::array ops{
#define FORETUNE_GRAPH_OP(name) &name##_op(),
#include "foretune/graph/ops.inc"
#undef FORETUNE_GRAPH_OP
  };
  return ops;
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo* const op : all_ops()) {
    if (op->name == name) {
      return op;
    }
  }
  return nullptr;
}

Status check_axis(std::int64_t axis, std::size_t rank) {
  if (axis < 1 || axis >= static_cast<std::int64_t>(rank)) {
    return fail(ErrorCode::kInvalidArgument, "dimension ", axis, " is not one from 1 to ",
                static_cast<std::int64_t>(rank) - 1);
  }
  return {};
}

}  // namespace foretune::graph
