// Published times of sparse schedules, models that are judged on matrices they never saw, and what
// such a judgement is held against: choosing at random, a single measurement, the best schedule of
// the nearest other matrix. For bench/sparse_model.cc.
//
// All of them choose among 200 schedules of a matrix that are drawn at random, 200 times. Top-k is
// the best time of the draw over the best time of the k schedules that come first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"
#include "foretune/problem/payload_store.h"

namespace foretune::bench {

inline constexpr std::array<std::size_t, 4> kTopCounts{1, 3, 5, 10};

// One table of records. Ids of problems and configs are the same in both data sets.
struct SparseRecords {
  std::string operation;
  std::string machine;
  Dataset repeats;  // a row for each measurement, in their order
  Dataset merged;   // a row for each schedule, with the median
};

// Reads FOLDER/OPERATION_MACHINE.csv.zst. `payloads` may be nullptr.
Result<SparseRecords> read_sparse_records(const std::string& folder, const std::string& operation,
                                          const std::string& machine, PayloadStore* payloads);

// Scores of a data set's rows, NaN where there is none; lower is better.
using RowScores = std::vector<double>;

struct LearnOptions {
  TrainOptions train;
  std::size_t rows = 1500;    // of a matrix, to learn from
  std::uint32_t threads = 2;  // trainings at once
  std::uint64_t seed = 1;
};

// Deals the groups of `all` to `parts` parts, or one to each for 0, and scores the rows of each
// part by a model of `data` without these groups.
Result<RowScores> scores_by_group(const Dataset& all, const Dataset& data, std::size_t parts,
                                  const LearnOptions& options);
// Trains on all groups but one, for each.
Result<RowScores> leave_originals_out(const Dataset& all, const LearnOptions& options);
// Trains on all matrices but one, for each that has a relative: the relative is in the training
// data.
Result<RowScores> leave_names_out(const Dataset& all, const LearnOptions& options);
// Deals the rows of every problem to five parts, so that each matrix is on both sides.
Result<RowScores> leave_rows_out(const Dataset& all, const LearnOptions& options);

// Scores rows by how many words of their configs differ from the best schedule of the nearest other
// matrix, by the logarithms of sizes and of non-zeros.
RowScores nearest_matrix_scores(const Dataset& all);

// The figures of one matrix, for each of kTopCounts.
struct TopFigures {
  std::uint32_t problem = 0;
  std::array<double, kTopCounts.size()> ratio{};   // mean of best over chosen
  std::array<double, kTopCounts.size()> chosen{};  // mean of the chosen times
  double best = 0;                                 // mean of the best times
};

// Candidates of one matrix: times to be judged by, and scores to choose by.
struct JudgedMatrix {
  std::uint32_t problem = 0;
  std::vector<double> time_ns;
  std::vector<std::pair<std::string, std::vector<double>>> scores;  // by the chooser's name
};

// Returns every matrix with all its schedules, by their medians.
std::vector<JudgedMatrix> all_schedules(const SparseRecords& records);
// Returns every matrix with the schedules that were measured at least twice: judged by the second
// time, with the first one as the scores named "ceiling".
std::vector<JudgedMatrix> repeated_schedules(const SparseRecords& records);
// Adds scores of rows of `records.merged` to the schedules that all_schedules() or
// repeated_schedules() listed.
void add_scores(const SparseRecords& records, const RowScores& scores, const std::string& name,
                std::vector<JudgedMatrix>& matrices);

// Returns the figures of a chooser on every matrix of at least 200 schedules that it has scores of;
// "random" chooses by the order of the draw. Draws depend on the seed and the matrix alone.
std::vector<TopFigures> judge(const std::vector<JudgedMatrix>& matrices, std::string_view chooser,
                              std::size_t draws, std::uint64_t seed);

}  // namespace foretune::bench
