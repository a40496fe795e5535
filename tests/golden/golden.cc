// Opens files that earlier versions wrote and compares what they hold and answer, to the bit, with
// what those versions said.
//
//   golden tests/golden                 compares; lists what differs
//   golden tests/golden FILE...         prints the lines of new files, for expected.txt
//
// Files are named from the root of the sources. A file that is to be replaced is copied to
// tests/golden first, and its line gets the new place: no line is ever changed or removed.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/significant.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/graph/network_file.h"
#include "foretune/graph/reference.h"
#include "foretune/graph/task.h"
#include "foretune/problem/problem.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::string_view text) { return hash64(text, hash); }
std::uint64_t mixed(std::uint64_t hash, double value) {
  return hash_combine(hash, std::bit_cast<std::uint64_t>(value));
}

// A pick with its score, or the reason of an abstention, in 8 hexadecimal digits.
std::string answer_code(const Selector& selector, const Problem& problem) {
  std::uint64_t hash = 0;
  const auto add = [&](const Choice& choice) {
    hash = hash_combine(hash, static_cast<std::uint64_t>(choice.reason));
    if (choice.has_candidate) {
      hash = mixed(hash, selector.config_text(choice.candidate));
      hash = mixed(mixed(hash, choice.score), choice.margin);
    }
  };
  add(selector.select_uncached(problem));
  const FastChoice fast = selector.select_fast(problem);
  add(fast.choice);
  hash = mixed(hash_combine(hash, fast.exact ? 1U : 0U), fast.bound);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return std::string(digits).substr(8);
}

Result<std::vector<Problem>> read_problems(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  std::vector<Problem> out;
  for (const std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) {
      FORETUNE_TRY(Problem problem, Problem::parse(line));
      out.push_back(std::move(problem));
    }
  }
  return out;
}

// One code a problem of the model's type.
Result<std::string> model_answers(const std::filesystem::path& path,
                                  const std::vector<Problem>& problems) {
  FORETUNE_TRY(const std::unique_ptr<Selector> selector, Selector::open(path));
  std::string out;
  for (const Problem& problem : problems) {
    if (problem.type() == selector->model().problem_type) {
      out += concat(" ", answer_code(*selector, problem));
    }
  }
  return out;
}

// Counts and one code of all rows.
Result<std::string> dataset_answers(const std::filesystem::path& path) {
  FORETUNE_TRY(const Dataset dataset, read_dataset(path));
  std::uint64_t hash = 0;
  for (const Dataset::Row& row : dataset.rows()) {
    hash = mixed(hash, dataset.problems()[row.problem].text());
    hash = mixed(hash, to_text(dataset.header().config_schema, dataset.configs()[row.config]));
    const Context& context = dataset.contexts()[row.context];
    hash = hash_combine(mixed(hash, context.device), static_cast<std::uint64_t>(context.threads));
    hash = mixed(mixed(hash, to_string(row.outcome)), to_string(row.stage));
    hash = hash_combine(hash, row.flags);
    for (const float value : {row.time_ns, row.median_ns, row.spread}) {
      hash = mixed(hash, static_cast<double>(value));
    }
    hash = hash_combine(hash, row.samples);
  }
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    hash = mixed(mixed(hash_combine(hash, baseline.problem), baseline.name),
                 static_cast<double>(baseline.time_ns));
  }
  return concat(" ", dataset.problems().size(), " ", dataset.configs().size(), " ",
                dataset.rows().size(), " ", hash);
}

// The first output of a number of images, with six digits.
Result<std::string> network_answers(const graph::Network& network, const std::vector<float>& images,
                                    std::int64_t count) {
  FORETUNE_TRY(const auto outputs, graph::run_reference(network, {&images, 1}, count));
  std::string out;
  for (const double value : outputs[0]) {
    out += concat(" ", significant(value, 6));
  }
  return out;
}

Status check_bytes(const std::vector<std::byte>& read, const std::vector<std::byte>& written) {
  if (read != written) {
    return fail(ErrorCode::kMismatch, "written again, the file has other bytes");
  }
  return {};
}

// Two images of numbers from -1 to 1.
Result<std::string> network_file_answers(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  FORETUNE_TRY(const graph::Network network, graph::parse_network(bytes));
  FORETUNE_TRY_STATUS(check_bytes(bytes, graph::network_bytes(network)));
  const graph::Shape shape = graph::batch_shape(network.tensor(network.inputs()[0]), 2);
  std::vector<float> images(static_cast<std::size_t>(graph::element_count(shape)));
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] = static_cast<float>(i * 5 % 9) / 4 - 1;
  }
  FORETUNE_TRY(const std::string answers, network_answers(network, images, 2));
  return concat(" ", network.nodes().size(), " ", network.weight_bytes(), answers);
}

Result<std::string> task_answers(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  FORETUNE_TRY(const graph::Task task, graph::parse_task(bytes));
  FORETUNE_TRY_STATUS(check_bytes(bytes, graph::task_bytes(task)));
  std::string out;
  for (const graph::LabelledImages* const images : {&task.tuning, &task.test}) {
    out += concat(" ", images->count());
    for (const std::int32_t label : images->labels) {
      out += concat(" ", label);
    }
    std::vector<float> values(images->pixels.size());
    task.read_images(*images, 0, images->count(), values);
    FORETUNE_TRY(const std::string answers, network_answers(task.network, values, images->count()));
    out += answers;
  }
  return out;
}

Result<std::string> line_of(const std::string& file, const std::filesystem::path& root,
                            const std::vector<Problem>& problems) {
  FORETUNE_TRY(const std::string answers,
               file.ends_with(".ftm")   ? model_answers(root / file, problems)
               : file.ends_with(".ftn") ? network_file_answers(root / file)
               : file.ends_with(".ftt") ? task_answers(root / file)
                                        : dataset_answers(root / file));
  return file + answers;
}

// Returns true for a line that is as it was, and prints what differs in another.
bool is_same(std::string_view expected, const std::string& found,
             const std::vector<Problem>& problems) {
  if (expected == found) {
    return true;
  }
  const std::vector<std::string_view> before = split_words(expected);
  const std::vector<std::string_view> now = split_words(found);
  std::size_t different = 0;
  for (std::size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    different += i < before.size() && i < now.size() && before[i] == now[i] ? 0U : 1U;
  }
  std::printf("%s: %zu of %zu answers differ (%zu problems are asked)\n",
              std::string(before[0]).c_str(), different, before.size() - 1, problems.size());
  return false;
}

int run(const std::filesystem::path& folder, const std::vector<std::string>& files) {
  const std::filesystem::path root = folder / ".." / "..";
  const Result<std::vector<Problem>> problems = read_problems(folder / "problems.txt");
  const Result<std::string> text = read_text_file(folder / "expected.txt");
  if (!problems || (!text && files.empty())) {
    std::printf("%s has no problems.txt or no expected.txt that can be read\n", folder.c_str());
    return 2;
  }
  int failed = 0;
  std::size_t checked = 0;
  const auto answer = [&](const std::string& file) {
    Result<std::string> line = line_of(file, root, *problems);
    if (!line) {
      std::printf("%s: %s\n", file.c_str(), line.error().message.c_str());
      ++failed;
    }
    return line;
  };
  if (!files.empty()) {
    for (const std::string& file : files) {
      if (const Result<std::string> line = answer(file)) {
        std::printf("%s\n", line->c_str());
      }
    }
    return failed == 0 ? 0 : 1;
  }
  for (const std::string_view line : split(*text, '\n')) {
    if (trim(line).empty()) {
      continue;
    }
    ++checked;
    const Result<std::string> found = answer(std::string(split_words(line)[0]));
    if (found && !is_same(line, *found, *problems)) {
      ++failed;
    }
  }
  std::printf("golden: %zu files, %d of them differ\n", checked, failed);
  return failed == 0 && checked > 0 ? 0 : 1;
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  if (argc < 2) {
    std::printf("usage: golden FOLDER [FILE...]\n");
    return 2;
  }
  return foretune::run(argv[1], {argv + 2, argv + argc});
}
