#include "foretune/workflow/problem_arguments.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/families/families.h"
#include "foretune/interop/ck/ck_words.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/network_layers.h"
#include "foretune/problem/problem_type.h"
#include "foretune/workflow/family_arguments.h"

namespace foretune::workflow {
namespace {

// A field of one or more types: types share names where they mean the same kind of thing.
struct SharedField {
  const ProblemField* field = nullptr;
  std::string help;  // that of each type
  bool has_default = true;
};

// Returns all fields of all types with labels, or all without, in the order of the table.
std::vector<SharedField> shared_fields(bool with_labels) {
  std::vector<SharedField> out;
  for (const ProblemTypeInfo* type : problem_types()) {
    for (const ProblemField& field : type->schema.fields) {
      if (field.labels.empty() == with_labels) {
        continue;
      }
      const std::string help =
          with_labels
              ? concat(
                    type->schema.name, ": ",
                    join(std::vector<std::string>(field.labels.begin(), field.labels.end()), ", "))
              : concat(type->schema.name, ": ", field.help);
      const auto known = std::find_if(out.begin(), out.end(), [&](const SharedField& shared) {
        return shared.field->name == field.name;
      });
      if (known == out.end()) {
        out.push_back({&field, help, field.default_value.has_value()});
      } else {
        known->help += concat("; ", help);
      }
    }
  }
  return out;
}

// Returns the names of drawn sizes, with the usual moments of each type.
struct SharedSize {
  std::string name;
  std::string mean;
  std::string deviation;
};

std::vector<SharedSize> shared_sizes() {
  std::vector<SharedSize> out;
  for (const ProblemTypeInfo* type : problem_types()) {
    for (const DrawnSize& drawn : type->drawn_sizes) {
      const std::string name(type->schema.fields[drawn.field].name);
      auto known = std::find_if(out.begin(), out.end(),
                                [&](const SharedSize& shared) { return shared.name == name; });
      if (known == out.end()) {
        known = out.insert(out.end(), {name, "", ""});
      }
      const std::string_view comma = known->mean.empty() ? "" : ", ";
      known->mean += concat(comma, type->schema.name, " ", fixed(drawn.log_mean, 2));
      known->deviation += concat(comma, type->schema.name, " ", fixed(drawn.log_deviation, 2));
    }
  }
  return out;
}

// "op" is written out, and several labels are a plural.
std::string option_name(std::string_view field) {
  return field == "op" ? "operation" : std::string(field);
}

// An option that takes several labels is a plural.
std::string plural_name(std::string_view field) {
  const std::string name = option_name(field);
  return name.ends_with('s') ? name : name + "s";
}

constexpr std::string_view kDataType = "dtype";

}  // namespace

void ProblemArguments::visit(OptionList& list, const std::function<bool()>& has_own) {
  list.section("Problems");
  list.add("num-shapes", num_shapes, "N",
           "number of problems to draw; 0 takes all of a shape set or a recorded family")
      .at_least(0);
  list.add_switch("log-normal", log_normal, "draw sizes log-normally, as in real workloads");
  list.add_switch("random", random, "draw sizes uniformly between bounds (default)");
  list.add(
      "shapeset", shapeset, "FILE",
      concat("take problems from an operation shape set or a CSV file, or ", shape_set_names()));
  for (const SharedField& shared : shared_fields(true)) {
    const std::string field(shared.field->name);
    Option& option = list.add(
        plural_name(field), labels[field], "LABEL",
        concat("use only problems with one of these values of ", field, " (", shared.help, ")"));
    if (plural_name(field) != field) {
      option.also(field);
    }
  }
  list.add("max-flops", max_flops, "X", "leave out problems with more floating-point operations")
      .at_least(1);
  list.add("max-bytes", max_bytes, "X", "leave out problems that touch more bytes of memory")
      .at_least(1);
  list.section("Log-normal sizes", {"with --log-normal", [this] { return log_normal; }});
  for (const SharedSize& size : shared_sizes()) {
    list.add(concat("log-normal-", size.name, "-mean"), log_means[size.name], "X",
             concat("mean of ln ", size.name, " (default: ", size.mean, ")"));
    list.add(concat("log-normal-", size.name, "-std"), log_deviations[size.name], "X",
             concat("standard deviation of ln ", size.name, " (default: ", size.deviation, ")"))
        .at_least(0);
  }
  list.section("Uniform sizes",
               {"without --log-normal, --shapeset and --family recorded",
                [this, has_own] { return !log_normal && shapeset.empty() && !has_own(); }});
  list.add("min-size", uniform_sizes.min_size, "N", "smallest size").at_least(1);
  list.add("max-size", uniform_sizes.max_size, "N", "largest size").at_least(1);
  list.add_switch("power-of-two", uniform_sizes.power_of_two, "draw powers of two only");
  list.add_switch("no-rectangular", no_rectangular, "draw equal sizes only: m = n = k");
  list.add_switch("no-odd-sizes", no_odd_sizes, "draw multiples of 8 only");
}

std::string shape_set_names() {
  std::vector<std::string> names;
  for (const ProblemTypeInfo* type : problem_types()) {
    if (type->shape_sets == nullptr) {
      continue;
    }
    for (const NamedShapeSet& set : type->shape_sets()) {
      if (set.in_help) {
        names.push_back(set.name);
      }
    }
  }
  return concat("one that is built in: ", join(names, ", "),
                ", or the set of a network (docs/reference/problems.md)");
}

Result<std::vector<Problem>> read_shapes(const std::string& set, PayloadStore& payloads) {
  return is_named_shape_set(set) ? named_shape_set(set) : read_shape_set(set, nullptr, &payloads);
}

namespace {

// Returns the problems in each of the data types.
Result<std::vector<Problem>> in_data_types(const std::vector<Problem>& shapes,
                                           const std::vector<std::string>& dtypes) {
  std::vector<Problem> out;
  for (const Problem& shape : shapes) {
    for (const std::string& dtype : dtypes) {
      FORETUNE_TRY(Problem typed, with_label(shape, kDataType, dtype));
      out.push_back(std::move(typed));
    }
  }
  return out;
}

// Returns the labels and rules of the command line. Errors: kInvalidArgument for labels of a field
// that the type does not have.
Result<ProblemSampling> sampling_of(const ProblemArguments& arguments,
                                    const ProblemSchema& schema) {
  ProblemSampling sampling;
  sampling.limits = {arguments.max_flops, arguments.max_bytes};
  for (const auto& [field, labels] : arguments.labels) {
    if (labels.empty()) {
      continue;
    }
    if (!schema.find(field)) {
      return fail(ErrorCode::kInvalidArgument, "--", plural_name(field), ": a ", schema.name,
                  " problem has no ", field);
    }
    sampling.labels[field] = labels;
  }
  return sampling;
}

// Shape sets carry the data type of their device. When the family does not want that type, the
// problems get the family's usual type, or those of the options.
Result<std::vector<Problem>> listed_shapes(const ProblemArguments& arguments, const Family& family,
                                           PayloadStore& payloads) {
  const ProblemSchema& schema = find_problem_type(family.info().problem_type)->schema;
  FORETUNE_TRY(std::vector<Problem> shapes, read_shapes(arguments.shapeset, payloads));
  std::erase_if(shapes, [&](const Problem& shape) { return shape.type() != schema.type; });
  if (shapes.empty()) {
    return fail(ErrorCode::kMismatch, "there is no ", schema.name, " problem in the shape set ",
                arguments.shapeset, ", and the family ", family.info().name, " runs nothing else");
  }
  const std::optional<std::size_t> field = schema.find(kDataType);
  if (!known_problems(family).empty() || !field) {
    return shapes;
  }
  std::vector<std::string> dtypes;
  if (const auto named = arguments.labels.find(std::string(kDataType));
      named != arguments.labels.end()) {
    dtypes = named->second;
  }
  if (dtypes.empty() && is_on_device(family.info().name)) {
    return shapes;
  }
  if (dtypes.empty()) {
    const ProblemField& described = schema.fields[*field];
    dtypes.emplace_back(
        described.labels[static_cast<std::size_t>(described.default_value.value_or(0))]);
  }
  return in_data_types(shapes, dtypes);
}

LogNormalSizes log_normal_sizes(const ProblemArguments& arguments, const ProblemTypeInfo& type) {
  LogNormalSizes out;
  for (const DrawnSize& drawn : type.drawn_sizes) {
    const std::string name(type.schema.fields[drawn.field].name);
    const auto value_in = [&](const std::map<std::string, std::optional<double>>& values,
                              double otherwise) {
      const auto found = values.find(name);
      return found == values.end() ? otherwise : found->second.value_or(otherwise);
    };
    out[name] = {value_in(arguments.log_means, drawn.log_mean),
                 value_in(arguments.log_deviations, drawn.log_deviation)};
  }
  return out;
}

}  // namespace

namespace {

// Does the work of make_problems(), without resolving payloads.
Result<SampledProblems> choose_problems(const ProblemArguments& arguments, const Family& family,
                                        std::uint64_t seed, PayloadStore& payloads,
                                        std::unordered_set<std::uint64_t> excluded_groups) {
  const int modes =
      int{arguments.log_normal} + int{arguments.random} + int{!arguments.shapeset.empty()};
  if (modes > 1) {
    return fail(ErrorCode::kInvalidArgument, "choose one of --log-normal, --random and --shapeset");
  }
  const ProblemTypeInfo& type = *find_problem_type(family.info().problem_type);
  FORETUNE_TRY(ProblemSampling sampling, sampling_of(arguments, type.schema));
  sampling.excluded_groups = std::move(excluded_groups);
  Rng rng = Rng(seed).split(hash64("problems"));
  const auto count = static_cast<std::size_t>(arguments.num_shapes);
  const std::span<const Problem> known = known_problems(family);
  if (!known.empty() && (arguments.log_normal || arguments.random)) {
    return fail(ErrorCode::kInvalidArgument, family.info().name, " knows ",
                count_of(known.size(), "problem"),
                " and cannot draw others; without --log-normal and --random it takes "
                "those");
  }
  if (!arguments.shapeset.empty()) {
    FORETUNE_TRY(const std::vector<Problem> shapes, listed_shapes(arguments, family, payloads));
    return sample_shape_set(shapes, count, sampling, rng);
  }
  if (!known.empty()) {
    return sample_shape_set({known.begin(), known.end()}, count, sampling, rng);
  }
  if (count == 0) {
    return fail(ErrorCode::kInvalidArgument, "--num-shapes is 0; nothing to do");
  }
  if (arguments.log_normal) {
    return sample_log_normal(type, count, log_normal_sizes(arguments, type), sampling, rng);
  }
  UniformSizes sizes = arguments.uniform_sizes;
  sizes.rectangular = !arguments.no_rectangular;
  sizes.odd_sizes = !arguments.no_odd_sizes;
  return sample_uniform(type, count, sizes, sampling, rng);
}

}  // namespace

Result<SampledProblems> make_problems(const ProblemArguments& arguments, const Family& family,
                                      std::uint64_t seed, PayloadStore& payloads,
                                      std::unordered_set<std::uint64_t> excluded_groups) {
  FORETUNE_TRY(SampledProblems out,
               choose_problems(arguments, family, seed, payloads, std::move(excluded_groups)));
  FORETUNE_TRY_STATUS(resolve_all(out.problems, payloads));
  return out;
}

std::vector<std::pair<std::string, std::string>> problem_field_options() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const ProblemTypeInfo* type : problem_types()) {
    std::string flags;
    for (const ProblemField& field : type->schema.fields) {
      flags += concat(flags.empty() ? "--" : " --", field.name);
    }
    out.emplace_back(type->schema.name, std::move(flags));
  }
  return out;
}

void OneProblemArguments::visit(OptionList& list) {
  list.add_positional("problem", text, "problem as text: gemm m=128 n=1536 k=7168");
  list.section(std::string(kProblemFieldsSection));
  const Condition is_by_sizes{"with sizes such as --m, --n and --k",
                              [this] { return text.empty() && has_sizes(); }};
  for (const SharedField& shared : shared_fields(false)) {
    const std::string name(shared.field->name);
    Option& option = list.add(name, sizes[name], "N", shared.help);
    option.at_least(shared.field->minimum);
    if (shared.has_default) {
      option.only(is_by_sizes);
    }
  }
  for (const SharedField& shared : shared_fields(true)) {
    const std::string name(shared.field->name);
    Option& option = list.add(name, labels[name], "LABEL", shared.help).only(is_by_sizes);
    if (option_name(name) != name) {
      option.also(option_name(name));
    }
  }
  // Composable Kernel's command lines have an operation and a direction.
  list.add("direction", direction, "LABEL", "conv: forward, bwd_data, bwd_weight")
      .only(is_by_sizes)
      .hide();
  list.add("payload", payload, "@FILE|DIGEST", "gemm: the weights to use as B, from --payloads")
      .only(is_by_sizes);
  list.section("");
}

bool OneProblemArguments::has_sizes() const {
  return std::any_of(sizes.begin(), sizes.end(),
                     [](const auto& size) { return size.second.has_value(); });
}

bool OneProblemArguments::gives(std::string_view field) const {
  const std::string all = join(text, " ");
  const std::string prefix = concat(field, "=");
  const std::vector<std::string_view> words = split_words(all);
  const auto size = sizes.find(std::string(field));
  return (size != sizes.end() && size->second) ||
         std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return word.starts_with(prefix); });
}

void OneProblemArguments::assume(const std::string& field, std::string label) {
  assumed_[field] = std::move(label);
}

Result<std::map<std::string, std::string>> OneProblemArguments::own_labels(
    const ProblemSchema& schema) const {
  constexpr const char* kOperation = "op";
  std::map<std::string, std::string> out;
  for (const auto& [field, label] : assumed_) {
    if (schema.find(field)) {
      out[field] = label;
    }
  }
  std::map<std::string, std::string> given = labels;
  if (const auto named = parse_ck_operation(given[kOperation])) {
    // Types of problems have operations of their own under such names, too.
    const auto field = schema.find(kOperation);
    const std::span<const std::string_view> known =
        field ? schema.fields[*field].labels : std::span<const std::string_view>();
    if (std::find(known.begin(), known.end(), given[kOperation]) == known.end()) {
      if (named->type != schema.type) {
        return fail(ErrorCode::kMismatch, "the operation ", given[kOperation],
                    " has other problems than ", schema.name, ", which the model is for");
      }
      given[kOperation] = named->label;
    }
  }
  if (!direction.empty()) {
    given[kOperation] = direction;
  }
  for (const auto& [field, label] : given) {
    if (!label.empty()) {
      out[field] = our_label(field, label);
    }
  }
  return out;
}

Result<Problem> OneProblemArguments::parse(ProblemType type, PayloadStore& payloads) const {
  if (!text.empty()) {
    if (has_sizes()) {
      return fail(ErrorCode::kInvalidArgument,
                  "give the problem as text or by its sizes (--m, --n, --k), not both");
    }
    return parse_problem(join(text, " "), payloads);
  }
  const ProblemSchema& schema = find_problem_type(type)->schema;
  if (!has_sizes() && payload.empty()) {
    std::string options;
    std::string example(schema.name);
    for (const ProblemField& field : schema.fields) {
      if (!field.default_value) {
        options += concat(options.empty() ? "" : ", ", "--", field.name);
        example += concat(" ", field.name, "=...");
      }
    }
    return fail(ErrorCode::kInvalidArgument, "no problem is given: ",
                options.empty() ? std::string() : concat("by ", options, ", or "),
                "as text: ", example);
  }
  std::string all(schema.name);
  for (const auto& [name, value] : sizes) {
    if (!value) {
      continue;
    }
    if (!schema.find(name)) {
      return fail(ErrorCode::kInvalidArgument, "--", name, ": a ", schema.name, " problem has no ",
                  name, "; the family or the model decides the type");
    }
    all += concat(" ", name, "=", *value);
  }
  FORETUNE_TRY(const auto own, own_labels(schema));
  for (const auto& [name, value] : own) {
    all += concat(" ", name, "=", value);
  }
  if (!payload.empty()) {
    all += concat(" payload=", payload);
  }
  return parse_problem(all, payloads);
}

}  // namespace foretune::workflow
