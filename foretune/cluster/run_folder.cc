#include "foretune/cluster/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <optional>
#include <system_error>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/formats/json.h"

namespace foretune::cluster {
namespace {

using formats::Json;

constexpr std::int64_t kPlanVersion = 1;
constexpr const char* kPlanFile = "plan.json";
constexpr std::array<const char*, 6> kFolders{"todo",   "leased",   "done",
                                              "failed", "journals", "tasks"};

std::string shard_name(std::size_t index) {
  std::string digits = concat(index);
  return concat("s", std::string(6 - std::min<std::size_t>(6, digits.size()), '0'), digits);
}

Result<std::vector<std::string>> texts_of(const Json& value, const char* name) {
  std::vector<std::string> out;
  if (!value.is_array()) {
    return fail(ErrorCode::kCorrupt, "'", name, "' is not a list");
  }
  for (const Json& text : value) {
    if (!text.is_string()) {
      return fail(ErrorCode::kCorrupt, "'", name, "' holds something that is not text");
    }
    out.push_back(text.get<std::string>());
  }
  return out;
}

Result<std::vector<std::string>> texts_at(const Json& object, const char* name) {
  const Json* const value = formats::member(object, name);
  if (value == nullptr) {
    return fail(ErrorCode::kCorrupt, "'", name, "' is missing");
  }
  return texts_of(*value, name);
}

Result<std::string> required_text(const Json& object, const char* name) {
  std::optional<std::string> text = formats::text_at(object, name);
  if (!text) {
    return fail(ErrorCode::kCorrupt, "'", name, "' is missing or not text");
  }
  return *std::move(text);
}

Status write_shards(const std::filesystem::path& folder, const RunPlan& plan) {
  std::error_code error;
  for (const char* const name : kFolders) {
    if (!std::filesystem::create_directories(folder / name, error) && error) {
      return fail(ErrorCode::kIo, "cannot create ", (folder / name).string(), ": ",
                  error.message());
    }
  }
  for (const Shard& shard : plan.shards) {
    // The folder is not in its place yet, so an ordinary file will do.
    if (!std::ofstream(folder / "todo" / shard.name)) {
      return fail(ErrorCode::kIo, "cannot create a file in ", (folder / "todo").string());
    }
  }
  return write_text_file_atomically(folder / kPlanFile, plan.json());
}

}  // namespace

void RunPlan::share_out(const std::vector<std::string>& problems, std::size_t per_shard) {
  shards.clear();
  for (std::size_t i = 0; i < problems.size(); i += per_shard) {
    const std::size_t end = std::min(problems.size(), i + per_shard);
    shards.push_back({shard_name(shards.size()),
                      {problems.begin() + static_cast<std::ptrdiff_t>(i),
                       problems.begin() + static_cast<std::ptrdiff_t>(end)}});
  }
}

bool RunPlan::is_same_work(const RunPlan& other) const {
  return command == other.command && seed == other.seed && options == other.options &&
         shards == other.shards;
}

std::string RunPlan::json() const {
  Json given = Json::array();
  for (const auto& [name, values] : options) {
    given.push_back({{"name", name}, {"values", values}});
  }
  Json parts = Json::array();
  for (const Shard& shard : shards) {
    parts.push_back({{"name", shard.name}, {"problems", shard.problems}});
  }
  const Json document{{"format", "foretune-run"},
                      {"version", kPlanVersion},
                      {"command", command},
                      {"command_line", command_line},
                      {"seed", seed},
                      {"lease_s", lease_s},
                      {"plugins", plugins},
                      {"options", given},
                      {"shards", parts}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunPlan> RunPlan::parse(std::string_view text) {
  FORETUNE_TRY(const Json document, formats::parse_json(text));
  FORETUNE_TRY(const std::string format, required_text(document, "format"));
  const std::optional<std::int64_t> version = formats::integer_at(document, "version");
  if (format != "foretune-run" || !version) {
    return fail(ErrorCode::kCorrupt, "it is not the plan of a run");
  }
  if (*version > kPlanVersion) {
    return fail(ErrorCode::kUnsupported, "version ", *version, " of a run's plan is newer than ",
                kPlanVersion, ", which this program knows");
  }
  RunPlan plan;
  FORETUNE_TRY(plan.command, required_text(document, "command"));
  FORETUNE_TRY(plan.command_line, required_text(document, "command_line"));
  const Json* const seed = formats::member(document, "seed");
  const Json* const lease = formats::member(document, "lease_s");
  if (seed == nullptr || !seed->is_number_unsigned() || lease == nullptr || !lease->is_number() ||
      !(lease->get<double>() > 0)) {
    return fail(ErrorCode::kCorrupt, "'seed' or 'lease_s' is missing or makes no sense");
  }
  plan.seed = seed->get<std::uint64_t>();
  plan.lease_s = lease->get<double>();
  FORETUNE_TRY(plan.plugins, texts_at(document, "plugins"));
  const Json* const given = formats::member(document, "options");
  const Json* const shards = formats::member(document, "shards");
  if (given == nullptr || !given->is_array() || shards == nullptr || !shards->is_array()) {
    return fail(ErrorCode::kCorrupt, "'options' or 'shards' is missing");
  }
  for (const Json& option : *given) {
    FORETUNE_TRY(std::string name, required_text(option, "name"));
    FORETUNE_TRY(std::vector<std::string> values, texts_at(option, "values"));
    plan.options.emplace_back(std::move(name), std::move(values));
  }
  for (const Json& part : *shards) {
    Shard shard;
    FORETUNE_TRY(shard.name, required_text(part, "name"));
    FORETUNE_TRY_STATUS(check_task_name(shard.name));
    FORETUNE_TRY(shard.problems, texts_at(part, "problems"));
    plan.shards.push_back(std::move(shard));
  }
  return plan;
}

bool RunFolder::exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path / kPlanFile, ignored);
}

Result<RunFolder> RunFolder::create(const std::filesystem::path& path, const RunPlan& plan) {
  std::filesystem::path absolute = std::filesystem::absolute(path).lexically_normal();
  if (absolute.filename().empty()) {
    absolute = absolute.parent_path();
  }
  const std::filesystem::path fresh = concat(absolute.string(), ".new.", ::getpid());
  std::error_code error;
  Status written = write_shards(fresh, plan);
  if (written) {
    std::filesystem::rename(fresh, absolute, error);
    // A file server may have done it and lost its answer.
    if (error && std::filesystem::exists(fresh)) {
      written = fail(ErrorCode::kInvalidArgument, "cannot begin a run in ", absolute.string(), ": ",
                     error.message());
    }
  }
  if (!written) {
    std::filesystem::remove_all(fresh, error);
    return tl::unexpected(written.error());
  }
  return RunFolder(std::move(absolute), plan);
}

Result<RunFolder> RunFolder::open(const std::filesystem::path& path) {
  if (!exists(path)) {
    return fail(ErrorCode::kNotFound, path.string(), " is not the folder of a run: it has no ",
                kPlanFile);
  }
  FORETUNE_TRY(const std::string text, read_text_file(path / kPlanFile));
  auto plan = RunPlan::parse(text);
  if (!plan) {
    return fail_because(plan.error(), (path / kPlanFile).string());
  }
  return RunFolder(std::filesystem::absolute(path).lexically_normal(), *std::move(plan));
}

std::filesystem::path RunFolder::journal(const std::string& task) const {
  return path_ / "journals" / concat(task, ".ftd");
}

std::filesystem::path RunFolder::task_file(const std::string& task) const {
  return path_ / "tasks" / concat(task, ".json");
}

std::filesystem::path RunFolder::task_log(const std::string& task) const {
  return path_ / "tasks" / concat(task, ".log");
}

Result<std::vector<std::string>> RunFolder::names(const std::string& state) const {
  std::vector<std::string> out;
  std::error_code error;
  std::filesystem::directory_iterator files(path_ / state, error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    std::string name = files->path().filename().string();
    // Others are temporary files of a file server (.nfs...) or of us.
    if (!name.starts_with(".") && name.find(".tmp.") == std::string::npos) {
      out.push_back(std::move(name));
    }
  }
  if (error) {
    return fail(ErrorCode::kIo, "cannot list ", (path_ / state).string(), ": ", error.message());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<RunCounts> RunFolder::counts() const {
  RunCounts counts;
  // Shards move forward meanwhile; in this order none is missed.
  FORETUNE_TRY(const auto todo, names("todo"));
  FORETUNE_TRY(const auto leased, names("leased"));
  FORETUNE_TRY(const auto failed, names("failed"));
  FORETUNE_TRY(const auto done, names("done"));
  counts.failed = failed.size();
  counts.done = std::min(done.size(), plan_.shards.size());
  const std::size_t open =
      plan_.shards.size() - std::min(plan_.shards.size(), counts.done + counts.failed);
  counts.leased = std::min(leased.size(), open);
  counts.todo = open - counts.leased;
  return counts;
}

Result<std::optional<Dataset>> RunFolder::read_journal(const std::string& task,
                                                       ReadReport* report) const {
  const std::filesystem::path path = journal(task);
  const Result<bool> only_begun = is_only_begun(path);
  if (!only_begun && only_begun.error().code == ErrorCode::kNotFound) {
    return std::optional<Dataset>();
  }
  FORETUNE_TRY(const bool is_empty, only_begun);
  if (is_empty) {
    return std::optional<Dataset>();
  }
  FORETUNE_TRY(Dataset dataset, read_dataset(path, report));
  return std::optional(std::move(dataset));
}

const Shard* RunFolder::find(const std::string& shard) const {
  const auto found = std::find_if(plan_.shards.begin(), plan_.shards.end(),
                                  [&](const Shard& known) { return known.name == shard; });
  return found == plan_.shards.end() ? nullptr : &*found;
}

Status check_task_name(const std::string& name) {
  constexpr std::size_t kMaxName = 100;
  const bool is_plain = !name.empty() && name.size() <= kMaxName &&
                        std::all_of(name.begin(), name.end(), [](unsigned char letter) {
                          return std::isalnum(letter) != 0 || letter == '-' || letter == '_';
                        });
  if (!is_plain) {
    return fail(ErrorCode::kInvalidArgument, "the name '", name,
                "' should have letters, digits, - and _ only, and at most ", kMaxName);
  }
  return {};
}

std::pair<std::string, std::string> split_lease(const std::string& name) {
  const std::size_t dot = name.find('.');
  return dot == std::string::npos ? std::pair{name, std::string()}
                                  : std::pair{name.substr(0, dot), name.substr(dot + 1)};
}

}  // namespace foretune::cluster
