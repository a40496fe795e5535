// Base of the pools whose features a table computes, and the scorer of models with several members
// (forests, networks). Internal to the module. Thread safety: immutable after creation; every
// thread brings its own workspace.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/pool_columns.h"
#include "foretune/model/scorer.h"

namespace foretune {

// Lays out the workspace and computes the problem's features; the derived class scores with them.
class TablePool : public PreparedPool {
 public:
  std::size_t size() const final { return configs_.size(); }
  std::size_t workspace_bytes() const final { return reserved_ + kPoolAlignment; }

  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept final {
    FORETUNE_CHECK(workspace.size() >= workspace_bytes() && scores.size() == size());
    FORETUNE_CHECK(uncertainty.empty() || uncertainty.size() == size());
    std::byte* const base = pool_base(workspace, reserved_);
    const std::span problem_row(reinterpret_cast<double*>(base), problem_columns_);
    table_.problem_row(problem, hardware_, problem_row);
    score_candidates(problem, problem_row, base, scores, uncertainty);
  }

 protected:
  // `table` must outlive the pool.
  TablePool(const FeatureTable& table, const Hardware& hardware, ConfigWords configs)
      : table_(table),
        hardware_(hardware),
        configs_(configs),
        problem_columns_(feature_count(table, FeatureKind::kProblem)),
        reserved_(pool_aligned(problem_columns_ * sizeof(double))) {}

  // `base` is aligned and has room for all that was reserved.
  virtual void score_candidates(const Problem& problem, std::span<const double> problem_row,
                                std::byte* base, std::span<double> scores,
                                std::span<double> uncertainty) const noexcept = 0;

  // Reserves an aligned part of the workspace and returns its distance from the base.
  std::size_t reserve(std::size_t bytes) {
    return std::exchange(reserved_, reserved_ + pool_aligned(bytes));
  }

  const FeatureTable& table() const { return table_; }
  ConfigWords configs() const { return configs_; }
  std::size_t problem_columns() const { return problem_columns_; }

  // Writes the features of problem and config, column by column. A column has room for `stride`
  // values.
  void interaction_columns(const Problem& problem, ConfigWords configs, std::span<double> columns,
                           std::size_t stride) const {
    table_.interaction_columns(problem, hardware_, configs, columns, stride);
  }

 private:
  const FeatureTable& table_;
  Hardware hardware_;
  ConfigList configs_;
  std::size_t problem_columns_;
  std::size_t reserved_;
};

// Keeps members that fit the table, and makes pools of them.
template <class Member>
class MemberScorer final : public Scorer {
 public:
  using Prepare = Result<std::unique_ptr<PreparedPool>> (*)(const std::vector<Member>& members,
                                                            const FeatureTable& table,
                                                            double residual_std,
                                                            ConfigWords configs,
                                                            const Hardware& hardware, CpuIsa isa);
  MemberScorer(Prepare make_pool, std::vector<Member> members, const FeatureTable& table,
               double residual_std, CpuIsa isa)
      : make_pool_(make_pool),
        members_(std::move(members)),
        table_(table),
        residual_std_(residual_std),
        isa_(isa) {}

  Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                const Hardware& hardware) const override {
    return make_pool_(members_, table_, residual_std_, configs, hardware, isa_);
  }

 private:
  Prepare make_pool_;
  std::vector<Member> members_;
  const FeatureTable& table_;
  double residual_std_;
  CpuIsa isa_;
};

}  // namespace foretune
