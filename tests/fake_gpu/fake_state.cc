#include "tests/fake_gpu/fake_state.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/hash.h"

namespace foretune::fake_gpu {
namespace {

constexpr std::size_t kAlignment = 256;

std::string environment(const char* name, const char* otherwise) {
  // No code here changes the environment.
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? otherwise : value;
}

[[noreturn]] void refuse_fault(std::string_view word) {
  std::fprintf(stderr, "FORETUNE_FAKE_GPU_FAULTS: unknown fault '%.*s'\n",
               static_cast<int>(word.size()), word.data());
  std::abort();
}

void add_fault(Faults& faults, std::string_view word) {
  const std::size_t colon = word.find(':');
  const std::string_view name = word.substr(0, colon);
  if (colon == std::string_view::npos) {
    bool& flag = name == "throttle"   ? faults.throttle
                 : name == "nonvml"   ? faults.no_nvml
                 : name == "nodevice" ? faults.no_device
                 : name == "busy"     ? faults.busy
                                      : (refuse_fault(word), faults.throttle);
    flag = true;
    return;
  }
  const std::string_view digits = word.substr(colon + 1);
  unsigned tile = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), tile);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) {
    refuse_fault(word);
  }
  std::set<unsigned>& tiles = name == "wrong"    ? faults.wrong
                              : name == "nan"    ? faults.not_written
                              : name == "crash"  ? faults.crash
                              : name == "hang"   ? faults.hang
                              : name == "refuse" ? faults.refuse
                                                 : (refuse_fault(word), faults.wrong);
  tiles.insert(tile);
}

Faults parse_faults(std::string_view text) {
  Faults result;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) {
      add_fault(result, text.substr(0, comma));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return result;
}

Faults& changeable_faults() {
  static Faults result = parse_faults(environment("FORETUNE_FAKE_GPU_FAULTS", ""));
  return result;
}

}  // namespace

const Faults& faults() { return changeable_faults(); }

const std::string& device_name() {
  static const std::string result = environment("FORETUNE_FAKE_GPU_NAME", "Foretune Fake GPU");
  return result;
}

std::uint64_t mix(std::uint64_t value) { return mix64(value + 0x9e3779b97f4a7c15ULL); }

cuda::DevicePointer to_device(const void* pointer) {
  return std::bit_cast<cuda::DevicePointer>(pointer);
}

void Memory::Release::operator()(std::byte* block) const { std::free(block); }

int Memory::allocate(std::size_t bytes, cuda::DevicePointer& pointer) {
  if (bytes == 0) {
    return kInvalidArgument;
  }
  if (bytes > kTotal - used_) {
    return cuda::kDriverOutOfMemory;
  }
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  Allocation allocation{std::unique_ptr<std::byte, Release>(
                            static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded))),
                        bytes, std::nullopt};
  if (allocation.block == nullptr) {
    return cuda::kDriverOutOfMemory;
  }
  pointer = to_device(allocation.block.get());
  used_ += bytes;
  allocations_.emplace(pointer, std::move(allocation));
  return cuda::kDriverSuccess;
}

int Memory::free(cuda::DevicePointer pointer) {
  if (pointer == 0) {
    return cuda::kDriverSuccess;
  }
  const auto found = allocations_.find(pointer);
  if (found == allocations_.end()) {
    return kInvalidArgument;
  }
  used_ -= found->second.bytes;
  allocations_.erase(found);
  return cuda::kDriverSuccess;
}

void Memory::free_all() {
  allocations_.clear();
  used_ = 0;
}

Memory::Allocation* Memory::containing(cuda::DevicePointer pointer, std::size_t bytes) {
  auto after = allocations_.upper_bound(pointer);
  if (after == allocations_.begin()) {
    return nullptr;
  }
  auto& [begin, allocation] = *std::prev(after);
  const std::size_t offset = pointer - begin;
  const bool inside = offset <= allocation.bytes && bytes <= allocation.bytes - offset;
  return inside ? &allocation : nullptr;
}

const std::byte* Memory::readable(cuda::DevicePointer pointer, std::size_t bytes) const {
  Allocation* const found = const_cast<Memory*>(this)->containing(pointer, bytes);
  return found == nullptr ? nullptr
                          : found->block.get() + (pointer - to_device(found->block.get()));
}

std::byte* Memory::writable(cuda::DevicePointer pointer, std::size_t bytes) {
  Allocation* const found = containing(pointer, bytes);
  if (found == nullptr) {
    return nullptr;
  }
  found->filled.reset();
  return found->block.get() + (pointer - to_device(found->block.get()));
}

bool Memory::set(cuda::DevicePointer pointer, unsigned char value, std::size_t bytes) {
  Allocation* const found = containing(pointer, bytes);
  if (found == nullptr) {
    return false;
  }
  const Fill fill{pointer, bytes, value};
  if (found->filled == fill) {
    return true;
  }
  std::memset(writable(pointer, bytes), value, bytes);
  if (bytes >= kFlushBytes) {
    found->filled = fill;
  }
  return true;
}

cuda::StreamObject* State::find_stream(cuda::Stream stream) {
  if (stream == nullptr) {
    return &default_stream;
  }
  return streams.contains(stream) ? stream : nullptr;
}

int State::execute(const Operation& operation) {
  const int code = operation(*this);
  if (code != cuda::kDriverSuccess) {
    broken = code;
  }
  return code;
}

int State::submit(cuda::Stream stream, Operation operation) {
  cuda::StreamObject* const target = find_stream(stream);
  if (target == nullptr) {
    return kInvalidHandle;
  }
  if (!target->capture) {
    return execute(operation);
  }
  if (target->capture->lost) {
    return kCaptureInvalidated;
  }
  target->capture->operations.push_back(std::move(operation));
  return cuda::kDriverSuccess;
}

State& state() {
  static State* const result = new State;
  return *result;
}

bool& context_is_current() {
  thread_local bool result = false;
  return result;
}

}  // namespace foretune::fake_gpu

// The functions by which tests query and control the fake; see fake_gpu.h.
#pragma GCC visibility push(default)
extern "C" {

std::uint64_t foretune_fake_gpu_calls(const char* symbol);
void foretune_fake_gpu_last_algorithm(std::uint64_t* words);
void foretune_fake_gpu_set_faults(const char* faults);

std::uint64_t foretune_fake_gpu_calls(const char* symbol) {
  foretune::fake_gpu::State& device = foretune::fake_gpu::state();
  const std::lock_guard lock(device.mutex);
  const auto found = device.calls.find(std::string_view(symbol));
  return found == device.calls.end() ? 0 : found->second;
}

void foretune_fake_gpu_last_algorithm(std::uint64_t* words) {
  foretune::fake_gpu::State& device = foretune::fake_gpu::state();
  const std::lock_guard lock(device.mutex);
  std::ranges::copy(device.last_algorithm, words);
}

void foretune_fake_gpu_set_faults(const char* faults) {
  foretune::fake_gpu::changeable_faults() = foretune::fake_gpu::parse_faults(faults);
}

}  // extern "C"
#pragma GCC visibility pop
