#include "foretune/families/command/command_run.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"

namespace foretune::command_internal {
namespace {

constexpr std::string_view kOutputFile = "foretune-output.txt";

// "line 2 is 'x' instead of 'y'": the first line in which two texts differ.
std::string difference(std::string_view got, std::string_view expected) {
  const std::vector<std::string_view> lines = split(got, '\n');
  const std::vector<std::string_view> wanted = split(expected, '\n');
  const auto at = static_cast<std::size_t>(
      std::mismatch(lines.begin(), lines.end(), wanted.begin(), wanted.end()).first -
      lines.begin());
  if (at >= lines.size() || at >= wanted.size()) {
    return concat("the output has ", lines.size(), " lines instead of ", wanted.size());
  }
  return concat("line ", at + 1, " of the output is ", quoted(lines[at], 60), " instead of ",
                quoted(wanted[at], 60));
}

// A run that the host times, or, where the program reports its time, one that times itself: every
// window is then a fresh run.
class CommandRun final : public Run, public DeviceClock, public Judged {
 public:
  CommandRun(std::shared_ptr<const CommandSpec> spec, std::shared_ptr<const WorkFolder> build,
             WorkFolder folder, Expansion values, CommandData& data)
      : spec_(std::move(spec)),
        build_(std::move(build)),
        folder_(std::move(folder)),
        values_(std::move(values)),
        words_(expand(spec_->run.words, values_)),
        data_(data) {}
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;
  ~CommandRun() override { data_.forget(this); }

  void run() override;
  std::optional<RunFailure> failure() const override { return failure_; }
  DeviceClock* device_clock() override { return spec_->time ? this : nullptr; }
  std::vector<MetricValue> metrics() override;
  Result<std::vector<MetricValue>> evaluate(std::span<const std::string> names) override;

  Result<double> first_run() override { return timed_run(); }
  // A run as its user starts it: neither a window of several nor cold caches would be one.
  Status time(std::int64_t runs, std::int32_t windows, bool cold,
              std::vector<double>& windows_ns) override;

  const std::optional<std::string>& output() const override { return output_; }
  Support ask(const Command& command) override;
  Support can_be_read() override;

 private:
  Result<double> timed_run();
  Result<ProcessEnd> beside(const Command& command);
  [[nodiscard]] Result<double> value_of(const CommandMetric& metric) const;

  std::shared_ptr<const CommandSpec> spec_;
  std::shared_ptr<const WorkFolder> build_;
  WorkFolder folder_;
  Expansion values_;
  std::vector<std::string> words_;
  CommandData& data_;
  std::optional<RunFailure> failure_;
  std::optional<std::string> output_;
  std::string errors_;
  double wall_ns_ = 0;
};

void CommandRun::run() {
  if (failure_) {
    return;
  }
  Result<ProcessEnd> end = run_process(words_, folder_.path(), spec_->run.limits);
  if (!end) {
    failure_ = RunFailure{RunFailure::Kind::kCrashed, end.error().message};
    return;
  }
  if (!end->is_good()) {
    failure_ = RunFailure{end->kind == ProcessEnd::Kind::kTimedOut ? RunFailure::Kind::kTimedOut
                                                                   : RunFailure::Kind::kCrashed,
                          concat("the command ", end->text())};
    return;
  }
  output_ = std::move(end->output);
  errors_ = std::move(end->errors);
  wall_ns_ = end->wall_ns;
  data_.set_last(this);
}

Result<double> CommandRun::timed_run() {
  if (spec_->time->from.file) {
    // A file that an earlier run left there does not hold this one's time.
    std::error_code ignored;
    std::filesystem::remove(folder_.path() / expand(*spec_->time->from.file, values_), ignored);
  }
  run();
  if (!failure_) {
    const Result<double> read = read_number(spec_->time->from, *output_, values_);
    const double time_ns = read ? *read * spec_->time->unit_ns : 0;
    if (time_ns > 0 && std::isfinite(time_ns)) {
      return time_ns;
    }
    const std::string_view words = trim(errors_);
    failure_ = RunFailure{
        RunFailure::Kind::kWrongResult,
        concat("the command reported no time: ",
               read ? concat("it is ", *read, ", which is not positive") : read.error().message,
               words.empty() ? "" : concat("; it said ", quoted(split(words, '\n').front(), 200)))};
  }
  return fail(ErrorCode::kInternal, failure_->reason);
}

Status CommandRun::time(std::int64_t /*runs*/, std::int32_t windows, bool /*cold*/,
                        std::vector<double>& windows_ns) {
  for (std::int32_t window = 0; window < windows; ++window) {
    FORETUNE_TRY(const double time_ns, timed_run());
    windows_ns.push_back(time_ns);
  }
  return {};
}

Result<double> CommandRun::value_of(const CommandMetric& metric) const {
  if (metric.from.kind == NumberSource::Kind::kWall) {
    return wall_ns_ / metric.unit_ns;
  }
  return read_number(metric.from, *output_, values_);
}

std::vector<MetricValue> CommandRun::metrics() {
  std::vector<MetricValue> out;
  for (const CommandMetric& metric : spec_->metrics) {
    if (metric.info.stage == MetricStage::kRun && output_) {
      if (const Result<double> value = value_of(metric)) {
        out.emplace_back(metric.info.name, *value, 0, 1);
      }
    }
  }
  return out;
}

Support CommandRun::can_be_read() {
  for (const CommandMetric& metric : spec_->metrics) {
    if (metric.info.stage != MetricStage::kRun) {
      continue;
    }
    if (const Result<double> value = value_of(metric); !value) {
      return Support::no(metric.info.name, " cannot be read: ", value.error().message);
    }
  }
  return Support::yes();
}

Result<ProcessEnd> CommandRun::beside(const Command& command) {
  if (command.words.mentions(Placeholder::kOutput)) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(values_.output, *output_));
  }
  return run_process(expand(command.words, values_), folder_.path(), command.limits);
}

Support CommandRun::ask(const Command& command) {
  const Result<ProcessEnd> end = beside(command);
  if (!end) {
    return Support::no("the check ", end.error().message);
  }
  return end->is_good() ? Support::yes() : Support::no("the check ", end->text());
}

Result<std::vector<MetricValue>> CommandRun::evaluate(std::span<const std::string> names) {
  run();
  if (failure_) {
    return fail(ErrorCode::kInternal, failure_->reason);
  }
  std::vector<MetricValue> out;
  for (const CommandMetric& metric : spec_->metrics) {
    if (std::find(names.begin(), names.end(), metric.info.name) == names.end()) {
      continue;
    }
    if (!metric.command) {
      FORETUNE_TRY(const double value, value_of(metric));
      out.emplace_back(metric.info.name, value, 0, 1);
      continue;
    }
    FORETUNE_TRY(const ProcessEnd end, beside(*metric.command));
    if (!end.is_good()) {
      return fail(ErrorCode::kInternal, "the command of ", metric.info.name, " ", end.text());
    }
    FORETUNE_TRY(const double value, read_number(metric.from, end.output, values_));
    out.emplace_back(metric.info.name, value, 0, 1);
  }
  return out;
}

}  // namespace

Support CommandData::verify() {
  if (last_ == nullptr || !last_->output()) {
    return Support::no("nothing ran");
  }
  if (expected_ && *last_->output() != *expected_) {
    return Support::no(difference(*last_->output(), *expected_));
  }
  if (spec_->check.kind == ResultCheck::Kind::kCommand) {
    if (Support right = last_->ask(spec_->check.command); !right) {
      return right;
    }
  }
  return last_->can_be_read();
}

Result<std::unique_ptr<Run>> CommandArtifact::bind(const Problem& /*problem*/, ProblemData& data) {
  FORETUNE_TRY(WorkFolder folder, WorkFolder::create());
  Expansion values = values_;
  values.build = build_ == nullptr ? "" : build_->path().string();
  values.folder = folder.path().string();
  values.output = (folder.path() / kOutputFile).string();
  return std::make_unique<CommandRun>(spec_, build_, std::move(folder), std::move(values),
                                      dynamic_cast<CommandData&>(data));
}

}  // namespace foretune::command_internal
