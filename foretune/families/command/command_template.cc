#include "foretune/families/command/command_template.h"

#include <algorithm>

#include "foretune/base/text.h"

namespace foretune::command_internal {
namespace {

Result<TemplateWord::Piece> piece_of(std::string_view name, std::span<const TemplateName> names,
                                     bool& splits) {
  std::vector<std::string> known;
  for (const TemplateName& candidate : names) {
    if (candidate.name == name) {
      splits = splits || candidate.splits;
      return TemplateWord::Piece{candidate.kind, candidate.name, candidate.index};
    }
    known.push_back(candidate.name);
  }
  const std::string near = nearest_word(name, known);
  return fail(ErrorCode::kInvalidArgument, "mentions ", quoted(concat("{", name, "}"), 60),
              ", which nothing is called here",
              near.empty() ? concat("; there are ", join(known, ", "))
                           : concat("; did you mean {", near, "}?"));
}

const std::string& text_of(const TemplateWord::Piece& piece, const Expansion& values,
                           std::string& number) {
  switch (piece.kind) {
    case Placeholder::kParameter:
      return values.parameters[piece.index];
    case Placeholder::kField:
      return values.fields[piece.index];
    case Placeholder::kSource:
      return values.source;
    case Placeholder::kBuild:
      return values.build;
    case Placeholder::kFolder:
      return values.folder;
    case Placeholder::kOutput:
      return values.output;
    case Placeholder::kThreads:
      number = concat(values.threads);
      return number;
    case Placeholder::kJobs:
      number = concat(values.jobs);
      return number;
    case Placeholder::kText:
      break;
  }
  return piece.text;
}

}  // namespace

bool CommandTemplate::mentions(Placeholder kind) const {
  return std::any_of(words.begin(), words.end(), [&](const TemplateWord& word) {
    return std::any_of(word.pieces.begin(), word.pieces.end(),
                       [&](const TemplateWord::Piece& piece) { return piece.kind == kind; });
  });
}

Result<TemplateWord> parse_word(std::string_view text, std::span<const TemplateName> names) {
  TemplateWord out;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) {
      out.pieces.push_back({Placeholder::kText, std::move(plain), 0});
      plain.clear();
    }
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if ((c == '{' || c == '}') && at + 1 < text.size() && text[at + 1] == c) {
      plain += c;
      ++at;
    } else if (c == '{') {
      const std::size_t end = text.find('}', at);
      if (end == std::string_view::npos) {
        return fail(ErrorCode::kInvalidArgument, "has a { without its } in ", quoted(text, 60),
                    "; a brace itself is {{");
      }
      flush();
      FORETUNE_TRY(TemplateWord::Piece piece,
                   piece_of(text.substr(at + 1, end - at - 1), names, out.splits));
      out.pieces.push_back(std::move(piece));
      at = end;
    } else if (c == '}') {
      return fail(ErrorCode::kInvalidArgument, "has a } without its { in ", quoted(text, 60),
                  "; a brace itself is }}");
    } else {
      plain += c;
    }
  }
  flush();
  if (out.splits && out.pieces.size() != 1) {
    return fail(ErrorCode::kInvalidArgument, "has more than the placeholder in ", quoted(text, 60),
                "; a parameter that is split must be a word of its own");
  }
  return out;
}

std::string expand(const TemplateWord& word, const Expansion& values) {
  std::string out;
  std::string number;
  for (const TemplateWord::Piece& piece : word.pieces) {
    out += text_of(piece, values, number);
  }
  return out;
}

std::vector<std::string> expand(const CommandTemplate& command, const Expansion& values) {
  std::vector<std::string> out;
  for (const TemplateWord& word : command.words) {
    std::string text = expand(word, values);
    const bool is_value = word.pieces.size() == 1 && word.pieces[0].kind != Placeholder::kText;
    if (word.splits) {
      for (const std::string_view part : split_words(text)) {
        out.emplace_back(part);
      }
    } else if (!text.empty() || !is_value) {
      out.push_back(std::move(text));
    }
  }
  return out;
}

}  // namespace foretune::command_internal
