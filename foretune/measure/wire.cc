#include "foretune/measure/wire.h"

#include <algorithm>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

constexpr std::uint32_t kMagic = 0x4b575446;  // "FTWK"

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kCorrupt, "the worker's channel carried a damaged ", what);
}

void put(ByteWriter& out, const Problem& problem) {
  out.put(static_cast<std::uint16_t>(problem.type()));
  out.put_varint(problem.fields().size());
  for (const std::int64_t field : problem.fields()) {
    out.put_zigzag(field);
  }
  out.put(problem.payload().high, problem.payload().low);
}

Result<Problem> get_problem(ByteReader& in) {
  const auto type = in.get<std::uint16_t>();
  const std::uint64_t count = in.get_count(1);
  Problem::Fields fields;
  for (std::uint64_t i = 0; i < count; ++i) {
    fields.push_back(in.get_zigzag());
  }
  Digest payload;
  payload.high = in.get<std::uint64_t>();
  payload.low = in.get<std::uint64_t>();
  if (!in.ok() || find_problem_type(static_cast<ProblemType>(type)) == nullptr) {
    return damaged("problem");
  }
  return Problem::create(static_cast<ProblemType>(type), std::move(fields), payload);
}

void put(ByteWriter& out, const Config& config) {
  out.put(config.schema);
  out.put_varint(config.words.size());
  for (const std::int32_t word : config.words.view()) {
    out.put_zigzag(word);
  }
}

Config get_config(ByteReader& in) {
  Config config;
  config.schema = in.get<std::uint64_t>();
  const std::uint64_t count = in.get_count(1);
  for (std::uint64_t i = 0; i < count; ++i) {
    config.words.push_back(static_cast<std::int32_t>(in.get_zigzag()));
  }
  return config;
}

void put(ByteWriter& out, const Context& context) {
  out.put(context.machine);
  out.put_string(context.device);
  out.put(context.threads, static_cast<std::uint8_t>(context.cache), context.clock_mhz,
          context.fidelity);
}

Context get_context(ByteReader& in) {
  Context context;
  context.machine = in.get<std::uint64_t>();
  context.device = in.get_string();
  context.threads = in.get<std::int32_t>();
  context.cache = in.get<std::uint8_t>() == 0 ? CacheState::kWarm : CacheState::kCold;
  context.clock_mhz = in.get<std::int32_t>();
  context.fidelity = in.get<std::int32_t>();
  return context;
}

void put(ByteWriter& out, const Protocol& protocol) {
  out.put(protocol.window_ns, protocol.device_window_ns,
          static_cast<std::int32_t>(protocol.windows),
          static_cast<std::int32_t>(protocol.max_windows), protocol.target_spread,
          protocol.warmup_ns, static_cast<std::int32_t>(protocol.warmup_runs),
          protocol.max_total_ns, protocol.censor_factor, static_cast<std::uint8_t>(protocol.cache),
          static_cast<std::uint8_t>(protocol.keep_samples),
          static_cast<std::uint8_t>(protocol.verify), protocol.time_limit_s, protocol.data_seed);
}

Protocol get_protocol(ByteReader& in) {
  Protocol protocol;
  protocol.window_ns = in.get<double>();
  protocol.device_window_ns = in.get<double>();
  protocol.windows = in.get<std::int32_t>();
  protocol.max_windows = in.get<std::int32_t>();
  protocol.target_spread = in.get<double>();
  protocol.warmup_ns = in.get<double>();
  protocol.warmup_runs = in.get<std::int32_t>();
  protocol.max_total_ns = in.get<double>();
  protocol.censor_factor = in.get<double>();
  protocol.cache = in.get<std::uint8_t>() == 0 ? CacheState::kWarm : CacheState::kCold;
  protocol.keep_samples = in.get<std::uint8_t>() != 0;
  protocol.verify = in.get<std::uint8_t>() != 0;
  protocol.time_limit_s = in.get<double>();
  protocol.data_seed = in.get<std::uint64_t>();
  return protocol;
}

void put_result(ByteWriter& out, const Measurement& measurement) {
  out.put(static_cast<std::uint8_t>(measurement.outcome),
          static_cast<std::uint8_t>(measurement.stage), measurement.flags);
  out.put_string(measurement.reason);
  out.put_varint(measurement.metrics.size());
  for (const MetricValue& value : measurement.metrics) {
    out.put_string(value.metric);
    out.put(value.value, value.spread, value.samples);
  }
  out.put_varint(measurement.samples_ns.size());
  for (const float sample_ns : measurement.samples_ns) {
    out.put(sample_ns);
  }
}

void get_result(ByteReader& in, Measurement& measurement) {
  const auto outcome = in.get<std::uint8_t>();
  const auto stage = in.get<std::uint8_t>();
  measurement.outcome = static_cast<Outcome>(outcome);
  measurement.stage = static_cast<Stage>(stage);
  if (!is_known(measurement.outcome) || !is_known(measurement.stage)) {
    in.fail();
    return;
  }
  measurement.flags = in.get<std::uint8_t>();
  measurement.reason = in.get_string();
  measurement.metrics.clear();
  measurement.samples_ns.clear();
  for (std::uint64_t count = in.get_count(21); count > 0; --count) {
    MetricValue value;
    value.metric = in.get_string();
    value.value = in.get<double>();
    value.spread = in.get<double>();
    value.samples = in.get<std::uint32_t>();
    measurement.metrics.push_back(std::move(value));
  }
  for (std::uint64_t count = in.get_count(sizeof(float)); count > 0; --count) {
    measurement.samples_ns.push_back(in.get<float>());
  }
}

}  // namespace

std::vector<std::byte> encode_frame(FrameKind kind, std::span<const std::byte> payload) {
  const auto kind_byte = static_cast<std::byte>(kind);
  ByteWriter out;
  out.put(kMagic, static_cast<std::uint32_t>(payload.size()),
          crc32c(payload, crc32c(std::span(&kind_byte, 1))), static_cast<std::uint8_t>(kind));
  out.put_bytes(payload);
  return out.take();
}

Result<std::optional<Frame>> take_frame(std::vector<std::byte>& buffer) {
  ByteReader in(buffer);
  if (buffer.size() < kFrameHeaderBytes) {
    return std::optional<Frame>();
  }
  const auto magic = in.get<std::uint32_t>();
  const auto size = in.get<std::uint32_t>();
  const auto checksum = in.get<std::uint32_t>();
  if (magic != kMagic || size > kMaxFrameBytes) {
    return damaged("frame");
  }
  if (buffer.size() < kFrameHeaderBytes + size) {
    return std::optional<Frame>();
  }
  const std::span<const std::byte> sealed =
      std::span(buffer).subspan(kFrameHeaderBytes - 1, std::size_t{1} + size);
  if (crc32c(sealed) != checksum) {
    return damaged("frame");
  }
  Frame frame;
  frame.kind = static_cast<FrameKind>(sealed[0]);
  frame.payload.assign(sealed.begin() + 1, sealed.end());
  buffer.erase(buffer.begin(),
               buffer.begin() + static_cast<std::ptrdiff_t>(kFrameHeaderBytes + size));
  return std::optional<Frame>(std::move(frame));
}

std::vector<std::byte> encode(const HelloMessage& message) {
  ByteWriter out;
  out.put(message.version, message.parent_process);
  out.put_string(message.family);
  out.put_string(message.options.fingerprint.text());
  out.put_string(message.options.data_path);
  out.put(static_cast<std::int32_t>(message.options.build_jobs),
          static_cast<std::int32_t>(message.options.threads));
  out.put_varint(message.options.parameters.size());
  for (const auto& [key, value] : message.options.parameters) {
    out.put_string(key);
    out.put_string(value);
  }
  out.put_varint(message.options.payload_folders.size());
  for (const std::string& folder : message.options.payload_folders) {
    out.put_string(folder);
  }
  put(out, message.protocol);
  put(out, message.context);
  return out.take();
}

Result<HelloMessage> decode_hello(std::span<const std::byte> payload) {
  ByteReader in(payload);
  HelloMessage message;
  message.version = in.get<std::uint32_t>();
  if (in.ok() && message.version != kWireVersion) {
    return fail(ErrorCode::kMismatch, "the worker speaks version ", kWireVersion,
                " of the protocol, the program that started it version ", message.version);
  }
  message.parent_process = in.get<std::int64_t>();
  message.family = in.get_string();
  const std::string fingerprint = in.get_string();
  message.options.data_path = in.get_string();
  message.options.build_jobs = in.get<std::int32_t>();
  message.options.threads = in.get<std::int32_t>();
  for (std::uint64_t count = in.get_count(8); count > 0; --count) {
    std::string key = in.get_string();
    std::string value = in.get_string();
    message.options.parameters.emplace_back(std::move(key), std::move(value));
  }
  for (std::uint64_t count = in.get_count(4); count > 0; --count) {
    message.options.payload_folders.push_back(in.get_string());
  }
  message.protocol = get_protocol(in);
  message.context = get_context(in);
  if (!in.ok() || !in.at_end()) {
    return damaged("greeting");
  }
  if (!fingerprint.empty()) {
    FORETUNE_TRY(message.options.fingerprint, Fingerprint::parse(fingerprint));
  }
  return message;
}

std::vector<std::byte> encode(const Request& request) {
  ByteWriter out;
  put(out, request.problem);
  put(out, request.config);
  out.put(request.incumbent_ns);
  out.put_varint(request.evaluate.size());
  for (const std::string& metric : request.evaluate) {
    out.put_string(metric);
  }
  return out.take();
}

Result<Request> decode_request(std::span<const std::byte> payload) {
  ByteReader in(payload);
  FORETUNE_TRY(const Problem problem, get_problem(in));
  Request request{.problem = problem, .config = get_config(in)};
  request.incumbent_ns = in.get<double>();
  for (std::uint64_t count = in.get_count(1); count > 0; --count) {
    request.evaluate.push_back(in.get_string());
  }
  if (!in.ok() || !in.at_end()) {
    return damaged("request");
  }
  return request;
}

std::vector<std::byte> encode(const CompareMessage& message) {
  ByteWriter out;
  put(out, message.problem);
  out.put_varint(message.configs.size());
  for (const Config& config : message.configs) {
    put(out, config);
  }
  out.put(message.rounds);
  return out.take();
}

Result<CompareMessage> decode_compare(std::span<const std::byte> payload) {
  ByteReader in(payload);
  FORETUNE_TRY(const Problem problem, get_problem(in));
  CompareMessage message{.problem = problem, .configs = {}};
  for (std::uint64_t count = in.get_count(9); count > 0; --count) {
    message.configs.push_back(get_config(in));
  }
  message.rounds = in.get<std::int32_t>();
  if (!in.ok() || !in.at_end()) {
    return damaged("request");
  }
  return message;
}

std::vector<std::byte> encode(const StageMessage& message) {
  ByteWriter out;
  out.put(message.config, static_cast<std::uint8_t>(message.stage));
  return out.take();
}

Result<StageMessage> decode_stage(std::span<const std::byte> payload) {
  ByteReader in(payload);
  StageMessage message;
  message.config = in.get<std::uint32_t>();
  const auto stage = in.get<std::uint8_t>();
  message.stage = static_cast<Stage>(stage);
  if (!in.ok() || !in.at_end() || !is_known(message.stage)) {
    return damaged("announcement");
  }
  return message;
}

std::vector<std::byte> encode(const Error& error) {
  ByteWriter out;
  out.put(static_cast<std::uint8_t>(error.code));
  out.put_string(error.message);
  return out.take();
}

std::vector<std::byte> encode_text(std::string_view text) {
  ByteWriter out;
  out.put_string(text);
  return out.take();
}

Result<std::string> decode_text(std::span<const std::byte> payload) {
  ByteReader in(payload);
  std::string text = in.get_string();
  if (!in.ok() || !in.at_end()) {
    return damaged("description");
  }
  return text;
}

Error decode_error(std::span<const std::byte> payload) {
  ByteReader in(payload);
  const auto code = in.get<std::uint8_t>();
  std::string message = in.get_string();
  if (!in.ok() || !in.at_end() || code < static_cast<std::uint8_t>(ErrorCode::kInvalidArgument) ||
      code > static_cast<std::uint8_t>(ErrorCode::kInternal)) {
    return damaged("error").value();
  }
  return Error{static_cast<ErrorCode>(code), std::move(message)};
}

std::vector<std::byte> encode_results(std::span<const Measurement> measurements) {
  ByteWriter out;
  out.put_varint(measurements.size());
  for (const Measurement& measurement : measurements) {
    put_result(out, measurement);
  }
  return out.take();
}

Status decode_results(std::span<const std::byte> payload, std::span<Measurement> measurements) {
  ByteReader in(payload);
  if (in.get_count(1) != measurements.size()) {
    return damaged("result");
  }
  for (Measurement& measurement : measurements) {
    get_result(in, measurement);
  }
  if (!in.ok() || !in.at_end()) {
    return damaged("result");
  }
  return {};
}

}  // namespace foretune
