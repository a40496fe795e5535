#include "foretune/families/command/command_family.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/fork.h"
#include "foretune/base/text.h"
#include "foretune/families/command/command_file.h"
#include "foretune/families/command/command_run.h"
#include "foretune/families/command/command_spec.h"

namespace foretune {
namespace {

using command_internal::Command;
using command_internal::CommandArtifact;
using command_internal::CommandData;
using command_internal::CommandMetric;
using command_internal::CommandParameter;
using command_internal::CommandProblem;
using command_internal::CommandSpec;
using command_internal::Expansion;
using command_internal::Placeholder;
using command_internal::ProcessEnd;
using command_internal::ResultCheck;
using command_internal::WorkFolder;

// Builds and reference outputs that are kept; each build is a folder on disk.
constexpr std::size_t kMaxKept = 1024;

// A few results by name, those of failures too; the oldest go first.
template <class Value>
class Kept {
 public:
  // Returns the value of that name, which make() makes where it is not kept. Two threads that ask
  // at once may both make it, and get the same.
  template <class Make>
  Result<Value> get(const std::string& name, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = values_.find(name); found != values_.end()) {
        return found->second;
      }
    }
    Result<Value> made = make();
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = values_.emplace(name, std::move(made));
    const Result<Value> out = place->second;
    if (is_new) {
      order_.push_back(name);
      if (order_.size() > kMaxKept) {
        values_.erase(order_.front());
        order_.pop_front();
      }
    }
    return out;
  }

 private:
  ForkSafeMutex mutex_;
  std::unordered_map<std::string, Result<Value>> values_;
  std::deque<std::string> order_;
};

std::string text_of(const CommandParameter& parameter, std::int32_t word) {
  const auto index = static_cast<std::size_t>(word);
  return index < parameter.texts.size() ? parameter.texts[index] : concat(word);
}

Status check_options(const CommandSpec& spec, const FamilyOptions& options) {
  if (!options.parameters.empty()) {
    return fail(ErrorCode::kInvalidArgument, spec.name, " has no option ",
                quoted(options.parameters.front().first, 40), "; its file says everything");
  }
  if (options.build_jobs > 0 && (!spec.build || !spec.build->words.mentions(Placeholder::kJobs))) {
    return fail(ErrorCode::kInvalidArgument, "the build command of ", spec.name,
                " does not mention {jobs}, so build jobs would change nothing");
  }
  return {};
}

class CommandFamily final : public Family {
 public:
  static Result<std::unique_ptr<Family>> create(std::shared_ptr<const CommandSpec> spec,
                                                const FamilyOptions& options);

  const FamilyInfo& info() const override { return info_; }
  Support supports(const Problem& problem) const override {
    return problem.type() == info_.problem_type
               ? Support::yes()
               : Support::no(spec_->name, " runs no ", problem.schema().name, " problems");
  }
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    FORETUNE_TRY(std::unique_ptr<Space> space,
                 ParametricSpace::bind(info_.space, problem, info_.fingerprint.hardware));
    return space;
  }
  std::vector<Config> default_configs(const Problem& problem) const override;
  std::string artifact_key(const Problem& problem, const Config& config) const override {
    return concat(problem.text(), "|", to_text(info_.config_schema, config));
  }
  Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                            const Config& config) const override;
  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override;

  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

 private:
  CommandFamily(std::shared_ptr<const CommandSpec> spec, const FamilyOptions& options);
  [[nodiscard]] Expansion values_of(const Problem& problem) const;
  [[nodiscard]] Result<std::shared_ptr<const WorkFolder>> built(const Expansion& values) const;
  [[nodiscard]] Result<std::string> reference_output(const Problem& problem) const;

  std::shared_ptr<const CommandSpec> spec_;
  int jobs_ = 1;
  FamilyInfo info_;
  std::vector<Problem> problems_;
  // Configs share what was built by the same words, whatever else they differ in.
  mutable Kept<std::shared_ptr<const WorkFolder>> builds_;
  mutable Kept<std::string> references_;
};

CommandFamily::CommandFamily(std::shared_ptr<const CommandSpec> spec, const FamilyOptions& options)
    : spec_(std::move(spec)) {
  const double cores = options.fingerprint.hardware.get(HardwareValue::kCores);
  jobs_ = options.build_jobs > 0 ? options.build_jobs : std::max(1, static_cast<int>(cores));
  info_.name = spec_->name;
  info_.description = spec_->description;
  info_.problem_type = added_problem_type(command_internal::problem_name(spec_->name));
  info_.fingerprint = options.fingerprint;
  info_.feature_table = concat(spec_->name, "-plain");
  // A command crashes and hangs in a process of its own, within its own limits.
  info_.needs_worker = false;
  info_.max_threads =
      options.threads > 0 && spec_->takes_threads() ? options.threads : spec_->threads;
  if (!spec_->has_time_section) {
    info_.note = concat("times are those of whole processes, their start included: ", spec_->file,
                        " has no [time]");
  }
  for (const CommandMetric& metric : spec_->metrics) {
    info_.metrics.push_back(metric.info);
  }
}

Result<std::unique_ptr<Family>> CommandFamily::create(std::shared_ptr<const CommandSpec> spec,
                                                      const FamilyOptions& options) {
  FORETUNE_TRY_STATUS(check_options(*spec, options));
  std::unique_ptr<CommandFamily> family(new CommandFamily(std::move(spec), options));
  FORETUNE_TRY(family->info_.space,
               CompiledSpace::create(command_internal::space_definition(*family->spec_)));
  family->info_.config_schema = family->info_.space->definition().schema;
  for (const std::string& text : family->spec_->problems) {
    FORETUNE_TRY(
        Problem problem,
        Problem::parse(concat(command_internal::problem_name(family->spec_->name), " ", text)));
    family->problems_.push_back(std::move(problem));
  }
  return family;
}

std::vector<Config> CommandFamily::default_configs(const Problem& problem) const {
  Config config{.schema = info_.space->schema_id(), .words = {}};
  for (const CommandParameter& parameter : spec_->parameters) {
    config.words.push_back(parameter.default_word);
  }
  const Hardware& hardware = info_.fingerprint.hardware;
  config = info_.space->canonical(std::move(config), problem, hardware);
  return info_.space->why_not(config, problem, hardware) ? std::vector<Config>{config}
                                                         : std::vector<Config>();
}

Expansion CommandFamily::values_of(const Problem& problem) const {
  Expansion out;
  for (std::size_t i = 0; i < spec_->fields.size(); ++i) {
    out.fields.push_back(problem.field_text(i));
  }
  out.source = spec_->source;
  out.threads = info_.max_threads;
  out.jobs = jobs_;
  return out;
}

Result<std::shared_ptr<const WorkFolder>> CommandFamily::built(const Expansion& values) const {
  const Command& build = *spec_->build;
  const std::vector<std::string> words = expand(build.words, values);
  std::string key;
  for (const std::string& word : words) {
    key += word;
    key += '\0';  // in no word
  }
  return builds_.get(key, [&]() -> Result<std::shared_ptr<const WorkFolder>> {
    FORETUNE_TRY(WorkFolder folder, WorkFolder::create());
    FORETUNE_TRY(const ProcessEnd end, run_process(words, folder.path(), build.limits));
    if (!end.is_good()) {
      return fail(ErrorCode::kInternal, "the build ", end.text());
    }
    return std::make_shared<const WorkFolder>(std::move(folder));
  });
}

Result<std::unique_ptr<Artifact>> CommandFamily::prepare(const Problem& problem,
                                                         const Config& config) const {
  Expansion values = values_of(problem);
  for (std::size_t i = 0; i < spec_->parameters.size(); ++i) {
    values.parameters.push_back(text_of(spec_->parameters[i], config.words[i]));
  }
  std::shared_ptr<const WorkFolder> folder;
  if (spec_->build) {
    FORETUNE_TRY(folder, built(values));
  }
  return std::make_unique<CommandArtifact>(spec_, std::move(folder), std::move(values));
}

Result<std::string> CommandFamily::reference_output(const Problem& problem) const {
  return references_.get(problem.text(), [&]() -> Result<std::string> {
    FORETUNE_TRY(const WorkFolder folder, WorkFolder::create());
    Expansion values = values_of(problem);
    values.folder = folder.path().string();
    const ResultCheck& check = spec_->check;
    for (const Command* command : {check.prepare ? &*check.prepare : nullptr, &check.command}) {
      if (command == nullptr) {
        continue;
      }
      FORETUNE_TRY(ProcessEnd end,
                   run_process(expand(command->words, values), folder.path(), command->limits));
      if (!end.is_good()) {
        return fail(ErrorCode::kInternal,
                    command == &check.command ? "the reference " : "preparing the reference ",
                    end.text());
      }
      if (command == &check.command) {
        return std::move(end.output);
      }
    }
    return std::string();
  });
}

Result<std::unique_ptr<ProblemData>> CommandFamily::make_data(const Problem& problem,
                                                              std::uint64_t /*seed*/) const {
  std::optional<std::string> expected;
  if (spec_->check.kind == ResultCheck::Kind::kExpected) {
    const std::filesystem::path path =
        std::filesystem::path(spec_->source) / expand(spec_->check.expected, values_of(problem));
    FORETUNE_TRY(expected, read_text_file(path));
  } else if (spec_->check.kind == ResultCheck::Kind::kReference) {
    FORETUNE_TRY(expected, reference_output(problem));
  }
  return std::make_unique<CommandData>(spec_, std::move(expected));
}

}  // namespace

Result<CommandFamilyParts> read_command_family(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  FORETUNE_TRY(std::shared_ptr<const CommandSpec> spec,
               command_internal::parse_command_file(text, path.string(), folder.string()));
  const auto problem = std::make_shared<const CommandProblem>(spec);
  CommandFamilyParts out;
  out.problem_type = problem->info();
  out.config_schema = command_internal::space_definition(*spec).schema;
  out.feature_table = concat(spec->name, "-plain");
  out.entry.name = spec->name;
  out.entry.description = spec->description;
  out.entry.available = [](const FamilyOptions& /*options*/) { return Support::yes(); };
  out.entry.create = [spec, problem](const FamilyOptions& options) {
    return CommandFamily::create(spec, options);
  };
  out.entry.builds = spec->build.has_value();
  out.keep = problem;
  return out;
}

std::span<const Problem> command_problems(const Family& family) {
  const auto* commands = dynamic_cast<const CommandFamily*>(&family);
  return commands == nullptr ? std::span<const Problem>() : commands->problems();
}

}  // namespace foretune
