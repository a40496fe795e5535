// One config of a family of commands at work: its runs, and their report.
// Internal to the module. Thread safety: an artifact may be shared; the rest belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "foretune/families/command/command_spec.h"
#include "foretune/families/command/work_folder.h"
#include "foretune/family/family.h"

namespace foretune::command_internal {

// Whoever ran last on some data, and can be asked for the result.
class Judged {
 public:
  virtual ~Judged() = default;
  // The text that a run printed which ended well; nothing before the first one.
  [[nodiscard]] virtual const std::optional<std::string>& output() const = 0;
  // Runs a command beside the run, which says no with its exit code.
  virtual Support ask(const Command& command) = 0;
  // Says whether every metric of the run can be read.
  virtual Support can_be_read() = 0;
};

// The expected output, where there is one. The outputs themselves belong to the runs.
class CommandData final : public ProblemData {
 public:
  CommandData(std::shared_ptr<const CommandSpec> spec, std::optional<std::string> expected)
      : spec_(std::move(spec)), expected_(std::move(expected)) {}
  void poison() override { last_ = nullptr; }
  Support verify() override;
  std::int64_t bytes() const override {
    return expected_ ? static_cast<std::int64_t>(expected_->size()) : 0;
  }
  void set_last(Judged* run) { last_ = run; }
  // `run` is about to go.
  void forget(const Judged* run) { last_ = last_ == run ? nullptr : last_; }

 private:
  std::shared_ptr<const CommandSpec> spec_;
  std::optional<std::string> expected_;
  Judged* last_ = nullptr;
};

// A config with what was built for it, which other configs may share.
class CommandArtifact final : public Artifact {
 public:
  // `build` is nullptr where nothing is built.
  CommandArtifact(std::shared_ptr<const CommandSpec> spec, std::shared_ptr<const WorkFolder> build,
                  Expansion values)
      : spec_(std::move(spec)), build_(std::move(build)), values_(std::move(values)) {}
  // Makes the config's folder. Errors: kIo.
  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override;

 private:
  std::shared_ptr<const CommandSpec> spec_;
  std::shared_ptr<const WorkFolder> build_;
  Expansion values_;
};

}  // namespace foretune::command_internal
