// The table of all families in this build: the only place that knows them all. An absent family is
// a row that says why.
// Thread safety: constant after static initialisation.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/problem.h"

namespace foretune {

std::span<const FamilyEntry> families();
// Errors: kNotFound for an unknown name (with the nearest one), kUnsupported with the reason,
// kInvalidArgument for build jobs of a family that builds nothing, data for one that replays none,
// and a number of threads that the family's kernels cannot be limited to.
Result<std::unique_ptr<Family>> create_family(std::string_view name, const FamilyOptions& options);
// The same without asking whether the family can run here: for its spaces and defaults.
Result<std::unique_ptr<Family>> create_detached_family(std::string_view name,
                                                       const FamilyOptions& options);
// The problems that a family is limited to (those a recorded one has data for); empty when it takes
// any. Valid as long as the family.
std::span<const Problem> known_problems(const Family& family);

}  // namespace foretune
