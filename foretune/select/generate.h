// Configs for a problem whose space nobody lists, as that of schedules: the model's portfolio, what
// the space proposes and the neighbours of the best of these are scored, round by round.
//
//   FORETUNE_TRY(const GeneratedConfigs found, generate_configs(model, problem, {}));
//   run(found.configs.front());
//
// Thread safety: a free function without state. Cost: as long as the options allow, some tenths of
// a second by default; it allocates.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

struct GenerateOptions {
  double seconds = 0.3;         // no further round begins after so many
  std::size_t proposals = 128;  // of the space
  std::size_t rounds = 4;       // of neighbours
  std::size_t beam = 6;         // the best so far whose neighbours are scored
  std::size_t kept = 64;        // how many of the best are returned
};

struct GeneratedConfigs {
  std::vector<Config> configs;     // legal, and not known to fail; best first, at least one
  std::vector<double> scores;      // as Scorer scores them: lower is better
  std::vector<std::string> texts;  // for people
  std::size_t considered = 0;      // how many were scored
  bool ran_out_of_time = false;
};

// Returns true where no pool holds what is worth a look: for schemas of kind sequence.
inline bool needs_generating(const Model& model) {
  return model.config_schema.kind == SchemaKind::kSequence;
}

// Scores are of the model's first metric. Errors: kMismatch for problems that the model is not for;
// kUnsupported where the model's feature table knows no space of its configs, and when nothing
// could be generated; those of prepare_checked().
Result<GeneratedConfigs> generate_configs(const Model& model, const Problem& problem,
                                          const GenerateOptions& options);

// Returns the model for problems of another type. Only a kind that builds configs step by step is
// for every type that its feature table describes. Errors: kMismatch for the others.
Result<Model> for_problem_type(const Model& model, ProblemType type);

// The model with what was generated for one problem as its pool, for a Selector to rank.
Model with_pool(const Model& model, std::vector<Config> pool);

}  // namespace foretune
