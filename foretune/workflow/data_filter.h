// The part of the measurements that a training learns from, by operation, data type and device.
// Thread safety: one thread at a time may use a filter.
#pragma once

#include <string>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct DataFilter {
  std::string op;
  std::string dtype;
  std::string arch;

  void visit(OptionList& list);
  [[nodiscard]] bool takes_all() const { return op.empty() && dtype.empty() && arch.empty(); }
  // Returns the measurements that pass; none of another device.
  [[nodiscard]] Dataset apply(Dataset dataset) const;
  // Errors: kNotFound when no measurement is left, with the filters.
  [[nodiscard]] Result<Dataset> apply_to_all(Dataset dataset) const;
};

}  // namespace foretune::workflow
