#include "foretune/families/command/reading.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/formats/json.h"

namespace foretune::command_internal {
namespace {

using formats::Json;

constexpr std::size_t kMaxPattern = 400;
constexpr std::uintmax_t kMaxFile = std::uintmax_t{1} << 26U;

Result<double> number_of(std::string_view text, std::string_view where) {
  const std::optional<double> value = parse_double(trim(text));
  if (!value || !std::isfinite(*value)) {
    return fail(ErrorCode::kCorrupt, where, " holds ", quoted(trim(text), 40),
                ", which is no number");
  }
  return *value;
}

// A document between other output: from the first line that begins with a brace to the last brace.
Result<Json> find_json(std::string_view text) {
  Result<Json> whole = formats::parse_json(text);
  if (whole) {
    return whole;
  }
  std::size_t begin = 0;
  while (begin < text.size() && text[begin] != '{') {
    const std::size_t line = text.find('\n', begin);
    begin = line == std::string_view::npos ? text.size() : line + 1;
  }
  const std::size_t end = text.rfind('}');
  if (begin == text.size() || end == std::string_view::npos || end < begin) {
    return whole;
  }
  return formats::parse_json(text.substr(begin, end + 1 - begin));
}

const Json* member_at(const Json& value, const std::string& key) {
  if (value.is_object()) {
    const auto found = value.find(key);
    return found == value.end() ? nullptr : &*found;
  }
  const std::optional<std::uint64_t> index = parse_uint(key);
  return value.is_array() && index && *index < value.size() ? &value[*index] : nullptr;
}

Result<double> json_number(const NumberSource& source, std::string_view text,
                           const std::string& where) {
  const Result<Json> document = find_json(text);
  if (!document) {
    return fail(ErrorCode::kCorrupt, where, " is no JSON document");
  }
  const Json* value = &*document;
  for (const std::string& key : source.path) {
    value = member_at(*value, key);
    if (value == nullptr) {
      return fail(ErrorCode::kCorrupt, where, " has nothing at ", source.text);
    }
  }
  if (value->is_number() && std::isfinite(value->get<double>())) {
    return value->get<double>();
  }
  return fail(ErrorCode::kCorrupt, where, " has no number at ", source.text);
}

std::filesystem::path path_of(const TemplateWord& file, const Expansion& values) {
  return std::filesystem::path(values.folder) / expand(file, values);
}

}  // namespace

struct GroupPattern::State {
  regex_t compiled{};
};

Result<std::shared_ptr<const GroupPattern>> GroupPattern::compile(const std::string& text) {
  // Counted repetitions of counted repetitions would take memory without bound.
  if (text.size() > kMaxPattern || text.find('{') != std::string::npos) {
    return fail(ErrorCode::kInvalidArgument, "is a regular expression with { or of more than ",
                kMaxPattern, " bytes; write out what is repeated");
  }
  auto state = std::make_unique<State>();
  const int problem = ::regcomp(&state->compiled, text.c_str(), REG_EXTENDED | REG_NEWLINE);
  if (problem != 0) {
    std::array<char, 200> message{};
    ::regerror(problem, &state->compiled, message.data(), message.size());
    return fail(ErrorCode::kInvalidArgument, "is no regular expression: ", message.data());
  }
  std::shared_ptr<GroupPattern> out(new GroupPattern());
  out->state_ = std::move(state);
  if (out->state_->compiled.re_nsub != 1) {
    return fail(ErrorCode::kInvalidArgument, "has ", out->state_->compiled.re_nsub,
                " groups; one pair of parentheses must stand around the number");
  }
  return out;
}

GroupPattern::~GroupPattern() {
  if (state_ != nullptr) {
    ::regfree(&state_->compiled);
  }
}

std::optional<std::string> GroupPattern::find(const std::string& text) const {
  std::array<regmatch_t, 2> matches{};
  if (::regexec(&state_->compiled, text.c_str(), matches.size(), matches.data(), 0) != 0 ||
      matches[1].rm_so < 0) {
    return std::nullopt;
  }
  return text.substr(static_cast<std::size_t>(matches[1].rm_so),
                     static_cast<std::size_t>(matches[1].rm_eo - matches[1].rm_so));
}

Result<std::vector<std::string>> parse_json_path(std::string_view text) {
  if (text.empty() || text.front() != '/') {
    return fail(ErrorCode::kInvalidArgument, "is ", quoted(text, 60),
                "; a path into JSON begins with /, as in /result/ms");
  }
  std::vector<std::string> out;
  for (const std::string_view part : split(text.substr(1), '/')) {
    std::string key;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] != '~') {
        key += part[i];
        continue;
      }
      ++i;
      if (i == part.size() || (part[i] != '0' && part[i] != '1')) {
        return fail(ErrorCode::kInvalidArgument, "is ", quoted(text, 60),
                    "; in a path into JSON ~0 is ~ and ~1 is /");
      }
      key += part[i] == '0' ? '~' : '/';
    }
    out.push_back(std::move(key));
  }
  return out;
}

Result<double> read_number(const NumberSource& source, const std::string& output,
                           const Expansion& values) {
  std::string from_file;
  std::string where = "the output";
  if (source.file) {
    const std::filesystem::path path = path_of(*source.file, values);
    where = concat("the file ", path.filename().string());
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) {
      return fail(ErrorCode::kCorrupt, where, " is not there");
    }
    if (source.kind == NumberSource::Kind::kBytes) {
      return static_cast<double>(size);
    }
    if (size > kMaxFile) {
      return fail(ErrorCode::kCorrupt, where, " has ", size, " bytes, too many to read");
    }
    FORETUNE_TRY(from_file, read_text_file(path));
  }
  const std::string& text = source.file ? from_file : output;
  switch (source.kind) {
    case NumberSource::Kind::kJson:
      return json_number(source, text, where);
    case NumberSource::Kind::kRegex: {
      const std::optional<std::string> group = source.pattern->find(text);
      if (!group) {
        return fail(ErrorCode::kCorrupt, where, " has nothing like ", quoted(source.text, 60));
      }
      return number_of(*group, concat(quoted(source.text, 60), " in ", where));
    }
    case NumberSource::Kind::kWhole:
    case NumberSource::Kind::kBytes:
    case NumberSource::Kind::kWall:
      break;
  }
  return number_of(text, where);
}

}  // namespace foretune::command_internal
