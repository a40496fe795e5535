// Features of cuDNN's configs, made from the names of fields and parameters alone.
#include <memory>

#include "foretune/base/check.h"
#include "foretune/features/plain_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune::features_internal {

const FeatureTable& conv_cudnn_plain_table() {
  static const std::unique_ptr<const FeatureTable> table = [] {
    const ProblemTypeInfo* const type = find_problem_type(kConvProblem);
    FORETUNE_CHECK(type != nullptr);
    return make_plain_table("conv-cudnn-plain", *type, cudnn_schema());
  }();
  return *table;
}

}  // namespace foretune::features_internal
