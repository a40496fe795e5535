// Loop nests on this CPU: a product, a convolution, a reduction or a chain of elementwise
// operations, compiled to machine code as a schedule says (loop/nest.h, loop/machine/jit.h).
//
//   foretune tune nest_mm m=192 n=96 k=64 --family loop-nest
//   foretune collect --family loop-nest --family-option type=nest_conv --output convs.ftd
//
// `type` names the type of its problems, nest_mm unless it is given: nest_mm, nest_conv,
// nest_reduce, nest_map. A config is a schedule (loop/schedule_space.h); its metrics are the bytes
// of its buffers and of its code. One thread runs a nest. An artifact belongs to a pair of problem
// and config, for the sizes are compiled in.
//
// Thread safety: a family may be used from several threads, its artifacts and runs by one each.
// Cost: preparing takes some 20 to 90 us.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/family/family.h"

namespace foretune {

// Needs AVX2.
Support loop_nest_available(const FamilyOptions& options);
// Errors: kInvalidArgument for an option that it does not have.
Result<std::unique_ptr<Family>> make_loop_nest(const FamilyOptions& options);

}  // namespace foretune
