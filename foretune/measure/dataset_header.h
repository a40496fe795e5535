// The header of a data set that holds measurements of a family.
//
// Thread safety: a free function.
#pragma once

#include "foretune/dataset/dataset.h"
#include "foretune/family/family.h"

namespace foretune {

// Returns a header with the family, its problem type, schema, space, machine and metrics. The
// caller sets role, seed and created_by.
DatasetHeader header_of(const FamilyInfo& info);

}  // namespace foretune
