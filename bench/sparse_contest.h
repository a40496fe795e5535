// One sparse product beside other libraries: the best config that tuning finds, plain rows, and
// every peer that supports the product, checked and timed in turn.
//
//   FORETUNE_TRY(const SparseTimes times, compare_sparse(family, problem, config, peers, 9));
//
// Thread safety: none; peers may have threads of their own.
#pragma once

#include <string>
#include <vector>

#include "bench/sparse_peers.h"
#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/space/config.h"

namespace foretune::bench {

struct SparsePeerTime {
  std::string library;
  double run_s = 0;
  double prepare_s = 0;  // once for a matrix: conversion, hints, tuning
};

// Seconds of one run are medians over the rounds.
struct SparseTimes {
  double ours_s = 0;
  double plain_s = 0;  // our default config: rows as they are
  double pack_s = 0;   // of our config; 0 where it packs nothing
  double copy_s = 0;   // of copying the matrix's arrays into fresh memory
  double describe_s = 0;
  std::vector<SparsePeerTime> peers;
  std::vector<std::string> wrong;  // a sentence for each peer whose result was wrong

  // Returns the fastest peer. There is at least one.
  [[nodiscard]] const SparsePeerTime& best() const;
  // Returns the time of a peer; 0 where it does not support the product.
  [[nodiscard]] double of(const std::string& library) const;
  // Returns the runs after which packing has paid, beside plain rows: 0 where nothing is packed,
  // infinite where the packed matrix is not faster.
  [[nodiscard]] double break_even() const;
};

// Checks every contender's first result against a sum in double precision, leaves out peers that
// are wrong, then times the others. The family is sparse-cpu. Errors: kInvalidArgument for a wrong
// result of ours.
Result<SparseTimes> compare_sparse(const Family& family, const Problem& problem,
                                   const Config& config, const SparsePeers& peers, int rounds);

}  // namespace foretune::bench
