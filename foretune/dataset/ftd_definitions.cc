// Definitions of interned values: those that a block uses first come first in its payload.
#include <limits>

#include "foretune/base/text.h"
#include "foretune/dataset/ftd_format.h"

namespace foretune::ftd {
namespace {

// Bits of the byte that says which tables grow.
constexpr std::uint8_t kProblems = 1;
constexpr std::uint8_t kConfigs = 2;
constexpr std::uint8_t kContexts = 4;
constexpr std::uint8_t kReasons = 8;

void put_problem(ByteWriter& out, const Problem& problem) {
  for (const std::int64_t field : problem.fields()) {
    out.put_zigzag(field);
  }
  if (problem.schema().has_payload) {
    out.put(problem.payload().high);
    out.put(problem.payload().low);
  }
}

Result<Problem> get_problem(ByteReader& in, const ProblemSchema& schema) {
  Problem::Fields fields;
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    fields.push_back(in.get_zigzag());
  }
  Digest payload;
  if (schema.has_payload) {
    payload.high = in.get<std::uint64_t>();
    payload.low = in.get<std::uint64_t>();
  }
  return Problem::create(schema.type, std::move(fields), payload);
}

void put_config(ByteWriter& out, const ConfigSchema& schema, const Config& config) {
  if (schema.kind == SchemaKind::kSequence) {
    out.put_varint(config.words.size());
  }
  for (const std::int32_t word : config.words.view()) {
    out.put_zigzag(word);
  }
}

Config get_config(ByteReader& in, const ConfigSchema& schema, std::uint64_t schema_id) {
  Config config{.schema = schema_id, .words = {}};
  const std::uint64_t words =
      schema.kind == SchemaKind::kSequence ? in.get_count(1) : schema.parameters.size();
  if (schema.kind == SchemaKind::kSequence && words > kMaxSequenceWords) {
    in.fail();
  }
  for (std::uint64_t i = 0; i < words && in.ok(); ++i) {
    const std::int64_t word = in.get_zigzag();
    if (word < std::numeric_limits<std::int32_t>::min() ||
        word > std::numeric_limits<std::int32_t>::max()) {
      in.fail();
      break;
    }
    config.words.push_back(static_cast<std::int32_t>(word));
  }
  return config;
}

void put_context(ByteWriter& out, const Context& context) {
  out.put(context.machine);
  out.put_string(context.device);
  out.put_zigzag(context.threads);
  out.put(static_cast<std::uint8_t>(context.cache));
  out.put_zigzag(context.clock_mhz);
  out.put_zigzag(context.fidelity);
}

std::int32_t get_int32(ByteReader& in) {
  const std::int64_t value = in.get_zigzag();
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    in.fail();
    return 0;
  }
  return static_cast<std::int32_t>(value);
}

Context get_context(ByteReader& in) {
  Context context;
  context.machine = in.get<std::uint64_t>();
  context.device = in.get_string(kMaxNameBytes);
  context.threads = get_int32(in);
  context.cache = static_cast<CacheState>(in.get<std::uint8_t>());
  context.clock_mhz = get_int32(in);
  context.fidelity = get_int32(in);
  return context;
}

// The position and the number of the definitions that follow. They must continue the table.
Result<std::uint64_t> get_range(ByteReader& in, std::string_view what, std::size_t known,
                                std::size_t limit) {
  const std::uint64_t first = in.get_varint();
  const std::uint64_t count = in.get_count(1);
  if (!in.ok()) {
    return fail(ErrorCode::kCorrupt, "the number of its ", what, "s cannot be read");
  }
  if (first != known) {
    return fail(ErrorCode::kCorrupt, "it defines ", what, " ", first, " where ", known,
                " should follow");
  }
  if (count > limit - known) {
    return fail(ErrorCode::kCorrupt, "it defines too many ", what, "s");
  }
  return count;
}

tl::unexpected<Error> unreadable(std::string_view what, std::size_t number) {
  return fail(ErrorCode::kCorrupt, what, " ", number, " cannot be read");
}

tl::unexpected<Error> repeated(std::string_view what, std::size_t number) {
  return fail(ErrorCode::kCorrupt, what, " ", number, " is defined a second time");
}

Status get_problems(ByteReader& in, Dataset& dataset) {
  const ProblemSchema& schema = *find_problem_schema(dataset.header().problem_type);
  const std::size_t known = dataset.problems().size();
  FORETUNE_TRY(const std::uint64_t count, get_range(in, "problem", known, kMaxRows));
  for (std::size_t i = known; i < known + count; ++i) {
    const Result<Problem> problem = get_problem(in, schema);
    if (!in.ok()) {
      return unreadable("problem", i);
    }
    if (!problem) {
      return fail(ErrorCode::kCorrupt, "problem ", i, " is refused: ", problem.error().message);
    }
    if (dataset.intern_problem(*problem) != i) {
      return repeated("problem", i);
    }
  }
  return {};
}

Status get_configs(ByteReader& in, Dataset& dataset) {
  const std::uint64_t schema_id = dataset.header().config_schema.id();
  const std::size_t known = dataset.configs().size();
  FORETUNE_TRY(const std::uint64_t count, get_range(in, "config", known, kMaxRows));
  for (std::size_t i = known; i < known + count; ++i) {
    const Config config = get_config(in, dataset.header().config_schema, schema_id);
    if (!in.ok()) {
      return unreadable("config", i);
    }
    if (const Status status = check_config(dataset.header(), schema_id, config); !status) {
      return fail(ErrorCode::kCorrupt, "config ", i, " is refused: ", status.error().message);
    }
    if (dataset.intern_config(config) != i) {
      return repeated("config", i);
    }
  }
  return {};
}

Status get_contexts(ByteReader& in, Dataset& dataset) {
  const std::size_t known = dataset.contexts().size();
  FORETUNE_TRY(const std::uint64_t count, get_range(in, "context", known, kMaxContexts));
  for (std::size_t i = known; i < known + count; ++i) {
    const Context context = get_context(in);
    if (!in.ok() || !check_context(context)) {
      return unreadable("context", i);
    }
    if (dataset.intern_context(context) != i) {
      return repeated("context", i);
    }
  }
  return {};
}

Status get_reasons(ByteReader& in, Dataset& dataset) {
  const std::size_t known = dataset.reason_count();
  FORETUNE_TRY(const std::uint64_t count, get_range(in, "reason", known, kMaxRows));
  for (std::size_t i = known; i < known + count; ++i) {
    const std::string reason = in.get_string(kMaxReasonBytes);
    if (!in.ok()) {
      return unreadable("reason", i);
    }
    if (dataset.intern_reason(reason) != i) {
      return repeated("reason", i);
    }
  }
  return {};
}

}  // namespace

void put_definitions(ByteWriter& out, const Dataset& dataset, const Watermark& from,
                     const Watermark& to) {
  out.put(static_cast<std::uint8_t>((to.problems > from.problems ? kProblems : 0U) |
                                    (to.configs > from.configs ? kConfigs : 0U) |
                                    (to.contexts > from.contexts ? kContexts : 0U) |
                                    (to.reasons > from.reasons ? kReasons : 0U)));
  const auto put_range = [&out](std::size_t first, std::size_t end, const auto& put_one) {
    if (end == first) {
      return;
    }
    out.put_varint(first);
    out.put_varint(end - first);
    for (std::size_t i = first; i < end; ++i) {
      put_one(i);
    }
  };
  put_range(from.problems, to.problems,
            [&](std::size_t i) { put_problem(out, dataset.problems()[i]); });
  put_range(from.configs, to.configs, [&](std::size_t i) {
    put_config(out, dataset.header().config_schema, dataset.configs()[i]);
  });
  put_range(from.contexts, to.contexts,
            [&](std::size_t i) { put_context(out, dataset.contexts()[i]); });
  put_range(from.reasons, to.reasons, [&](std::size_t i) {
    out.put_string(dataset.reason(static_cast<std::uint32_t>(i)));
  });
}

Status get_definitions(ByteReader& in, Dataset& dataset) {
  const auto tables = in.get<std::uint8_t>();
  if (!in.ok() || tables > (kProblems | kConfigs | kContexts | kReasons)) {
    return fail(ErrorCode::kCorrupt, "its definitions cannot be read");
  }
  if ((tables & kProblems) != 0) {
    FORETUNE_TRY_STATUS(get_problems(in, dataset));
  }
  if ((tables & kConfigs) != 0) {
    FORETUNE_TRY_STATUS(get_configs(in, dataset));
  }
  if ((tables & kContexts) != 0) {
    FORETUNE_TRY_STATUS(get_contexts(in, dataset));
  }
  if ((tables & kReasons) != 0) {
    FORETUNE_TRY_STATUS(get_reasons(in, dataset));
  }
  return {};
}

}  // namespace foretune::ftd
