// Loop nests on this CPU: a product, a convolution, a reduction or a chain of elementwise
// operations, compiled to machine code as a schedule says (loop/nest.h, loop/machine/jit.h).
//
//   foretune tune nest_mm m=192 n=96 k=64 --family loop-nest
//   foretune collect --family loop-nest --family-option type=nest_conv --output convs.ftd
//
// A config is a schedule (loop/schedule_space.h), whatever the options below; its metrics are the
// bytes of its buffers and of its code. FamilyOptions::threads says how many threads run the loops
// that a schedule marks as parallel, 1 unless it is given. An artifact belongs to a pair of problem
// and config, for the sizes are compiled in.
//
// Thread safety: a family may be used from several threads, its artifacts and runs by one each.
// Cost: preparing takes some 20 to 90 us.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/problem/nest_mm/nest_mm.h"
#include "foretune/problem/problem.h"

namespace foretune {

// Needs AVX2.
Support loop_nest_available(const FamilyOptions& options);

// By the names of its options, each a `--family-option`.
struct LoopNestOptions {
  // type=NAME, of its problems: nest_mm (default), nest_conv, nest_reduce or nest_map.
  ProblemType type = kNestMmProblem;
  // actions=LIST: what strategies build schedules from. LoopTune's names joined by commas, or `all`
  // of them; `loops` (default, none here) are actions that name their loop.
  std::optional<loop::ActionSet> actions;
  // start=SCHEDULE: what strategies start from; the plain nest when left out.
  std::string start;
  // defaults=textbook|start: the default configs are the textbook's first 16 and the start, or the
  // start alone, so that a search shows what it finds by itself.
  bool has_textbook_defaults = true;
  // isa=avx2|avx512: what is compiled for; the best of this CPU when left out. Measurements for
  // other instructions than the best are told apart as those of another machine.
  std::optional<CpuIsa> isa;
  // Loops of a schedule, at most. No option by name: what is stored has no more than 10.
  std::size_t max_loops = 10;
};
// Errors: kInvalidArgument for an option that there is not, and for one that makes no sense.
Result<LoopNestOptions> parse_loop_nest_options(const FamilyOptions& options);

// Errors: those of parse_loop_nest_options(); kUnsupported for instructions that this CPU lacks.
Result<std::unique_ptr<Family>> make_loop_nest(const FamilyOptions& options);

// One computation of a program's own as a family with one problem, to be measured in the process.
struct NestBench {
  std::shared_ptr<Family> family;
  Problem problem;
  // False where no problem type describes the computation: the problem only stands for it, and must
  // not be stored.
  bool is_described = false;
};
// `options.type` is not looked at. `fingerprint` is of this machine, and may be left out where
// nothing is stored. Errors: those of Computation::check(); kUnsupported for instructions that this
// CPU lacks.
Result<NestBench> make_nest_bench(loop::Computation computation, LoopNestOptions options,
                                  std::size_t threads = 1, const Fingerprint& fingerprint = {});

// The row of the table of families.
const FamilyEntry& loop_nest_family();

}  // namespace foretune
