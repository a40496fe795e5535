// The header of a data set that holds measurements of a family.
//
// Thread safety: a free function.
#pragma once

#include "foretune/dataset/dataset.h"
#include "foretune/family/family.h"

namespace foretune {

// Names the family, its problem type, schema, space, machine and metrics. Role, seed and created_by
// are left to the caller.
DatasetHeader header_of(const FamilyInfo& info);

}  // namespace foretune
