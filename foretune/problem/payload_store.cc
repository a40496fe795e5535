#include "foretune/problem/payload_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/problem/internal/payload_files.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

using problem_internal::FileStamp;
using problem_internal::IndexedPayload;

// A file may change twice within a tick of the system's clock, and then look the same. The digest
// of a file that changed so recently is therefore computed again.
constexpr std::int64_t kSettledNs = 2'000'000'000;

constexpr std::string_view kNameWord = "payload=@";

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  const auto nanoseconds = [](const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  };
  return FileStamp{static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim),
                   nanoseconds(status.st_ctim)};
}

std::int64_t now_since_epoch_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Files beside payloads only save time, and folders may be read-only.
void write_if_possible(const std::filesystem::path& path, const std::string& text) {
  std::error_code ignored;
  std::filesystem::create_directory(path.parent_path(), ignored);
  static_cast<void>(write_text_file_atomically(path, text));
}

// Keeps the descriptors of this process for good, because problems point to them.
class KeptDescriptors {
 public:
  const PayloadDescriptor* find(const PayloadInfo& info, const Digest& payload) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find({&info, payload});
    return found == kept_.end() ? nullptr : &found->second;
  }
  const PayloadDescriptor* keep(PayloadDescriptor&& descriptor) {
    const std::lock_guard lock(mutex_);
    const std::pair key(descriptor.info, descriptor.payload);
    return &kept_.try_emplace(key, std::move(descriptor)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<const PayloadInfo*, Digest>, PayloadDescriptor> kept_;
};

KeptDescriptors& kept_descriptors() {
  static KeptDescriptors kept;
  return kept;
}

}  // namespace

// Callers of the members hold the lock.
struct PayloadStore::State {
  struct File {
    std::string name;
    FileStamp stamp;
    std::optional<Digest> digest;  // of the content at that stamp
    std::optional<Digest> former;  // of a content that is gone
  };
  struct Folder {
    std::string path;
    std::vector<File> files;  // by name
    bool has_news = false;    // that its index lacks
  };
  struct Loaded {
    std::shared_ptr<const Payload> payload;
    FileStamp stamp;
  };
  using MaybePayload = std::shared_ptr<const Payload>;

  Status list_files(Folder& folder);
  void remember();
  // Maps the file as it is now and computes its digest; null where it cannot be read.
  MaybePayload read(Folder& folder, File& file);
  MaybePayload search(const Digest& digest);
  [[nodiscard]] MaybePayload find_loaded(const Digest& digest);
  Result<MaybePayload> load(const Digest& digest);
  Result<Digest> find(std::string_view name);
  Result<const PayloadDescriptor*> describe(const PayloadInfo& info, const Digest& digest);
  [[nodiscard]] std::string place_text() const;
  void note(std::string sentence);

  std::mutex mutex;
  InflateGzip inflate = nullptr;
  std::vector<Folder> folders;
  std::map<Digest, Loaded> loaded;
  std::vector<std::string> notes;  // why a payload may be missing; for the current call
};

Status PayloadStore::State::list_files(Folder& folder) {
  std::map<std::string, IndexedPayload, std::less<>> known;
  if (const auto text = read_text_file(problem_internal::payload_index_path(folder.path))) {
    if (auto index = problem_internal::parse_payload_index(*text)) {
      for (IndexedPayload& payload : *index) {
        known[payload.name] = payload;
      }
    }
  }
  std::map<std::string, Digest, std::less<>> former;
  for (const File& file : folder.files) {
    if (file.digest) {
      known[file.name] = {file.name, file.stamp, *file.digest};
    }
    if (file.former) {
      former[file.name] = *file.former;
    }
  }
  std::error_code error;
  std::filesystem::directory_iterator entries(folder.path, error);
  std::vector<File> files;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::string name = entries->path().filename().string();
    const std::optional<FileStamp> stamp =
        name.starts_with('.') ? std::nullopt : stamp_of(entries->path().string());
    if (!stamp) {
      continue;
    }
    const auto found = known.find(name);
    File& file = files.emplace_back(File{.name = std::move(name), .stamp = *stamp});
    if (const auto before = former.find(file.name); before != former.end()) {
      file.former = before->second;
    }
    if (found != known.end()) {
      (found->second.stamp == *stamp ? file.digest : file.former) = found->second.digest;
    }
  }
  if (error) {
    return fail(ErrorCode::kIo, "cannot list the folder of payloads ", folder.path, ": ",
                error.message());
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.name < b.name; });
  folder.files = std::move(files);
  return {};
}

void PayloadStore::State::remember() {
  const std::int64_t now_ns = now_since_epoch_ns();
  for (Folder& folder : folders) {
    if (!folder.has_news) {
      continue;
    }
    folder.has_news = false;
    std::vector<IndexedPayload> settled;
    for (const File& file : folder.files) {
      if (file.digest && now_ns - file.stamp.modified_ns > kSettledNs &&
          file.name.find('\n') == std::string::npos) {
        settled.push_back({file.name, file.stamp, *file.digest});
      }
    }
    if (!settled.empty()) {
      write_if_possible(problem_internal::payload_index_path(folder.path),
                        problem_internal::payload_index_text(settled));
    }
  }
}

PayloadStore::State::MaybePayload PayloadStore::State::read(Folder& folder, File& file) {
  const std::string path = (std::filesystem::path(folder.path) / file.name).string();
  file.former = file.digest ? file.digest : file.former;
  file.digest.reset();
  // The stamp is read before the bytes: a change during the read shows the next time.
  const std::optional<FileStamp> stamp = stamp_of(path);
  if (!stamp) {
    return nullptr;
  }
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) {
    note(mapped.error().message);
    return nullptr;
  }
  file.stamp = *stamp;
  file.digest = Digest::of(mapped->bytes());
  folder.has_news = true;
  std::vector<std::byte> content;
  if (inflate != nullptr && is_gzip(mapped->bytes())) {
    Result<std::vector<std::byte>> inflated = inflate(mapped->bytes());
    if (!inflated) {
      note(concat(path, ": ", inflated.error().message));
      return nullptr;
    }
    content = *std::move(inflated);
  }
  return std::make_shared<const Payload>(*std::move(mapped), std::move(content), *file.digest,
                                         path);
}

PayloadStore::State::MaybePayload PayloadStore::State::search(const Digest& digest) {
  for (const bool has_digest : {true, false}) {
    for (Folder& folder : folders) {
      for (File& file : folder.files) {
        if (file.digest.has_value() != has_digest || (has_digest && *file.digest != digest)) {
          continue;
        }
        MaybePayload payload = read(folder, file);
        if (payload != nullptr && payload->digest() == digest) {
          loaded[digest] = {payload, file.stamp};
          return payload;
        }
      }
    }
  }
  return nullptr;
}

PayloadStore::State::MaybePayload PayloadStore::State::find_loaded(const Digest& digest) {
  const auto found = loaded.find(digest);
  if (found == loaded.end()) {
    return nullptr;
  }
  if (stamp_of(found->second.payload->path()) == found->second.stamp) {
    return found->second.payload;
  }
  loaded.erase(found);
  return nullptr;
}

Result<PayloadStore::State::MaybePayload> PayloadStore::State::load(const Digest& digest) {
  if (MaybePayload payload = find_loaded(digest)) {
    return payload;
  }
  notes.clear();
  MaybePayload payload = search(digest);
  if (payload == nullptr) {
    // The file may have come since the folders were listed.
    for (Folder& folder : folders) {
      FORETUNE_TRY_STATUS(list_files(folder));
    }
    payload = search(digest);
  }
  remember();
  if (payload != nullptr) {
    return payload;
  }
  for (const Folder& folder : folders) {
    for (const File& file : folder.files) {
      if (file.former == digest) {
        note(concat(file.name, " in ", folder.path, " had it and has another content now"));
      }
    }
  }
  return fail(ErrorCode::kNotFound, "there is no payload ", digest.hex(), place_text(),
              notes.empty() ? "" : "; ", join(notes, "; "));
}

Result<Digest> PayloadStore::State::find(std::string_view name) {
  notes.clear();
  for (const bool again : {false, true}) {
    for (Folder& folder : folders) {
      if (again) {
        FORETUNE_TRY_STATUS(list_files(folder));
      }
      const auto file = std::find_if(folder.files.begin(), folder.files.end(),
                                     [&](const File& listed) { return listed.name == name; });
      if (file == folder.files.end()) {
        continue;
      }
      const std::string path = (std::filesystem::path(folder.path) / file->name).string();
      if (file->digest && stamp_of(path) == file->stamp) {
        return *file->digest;
      }
      if (MaybePayload payload = read(folder, *file)) {
        loaded[payload->digest()] = {payload, file->stamp};
        remember();
        return payload->digest();
      }
    }
  }
  return fail(ErrorCode::kNotFound, "there is no file ", foretune::quoted(name), place_text(),
              notes.empty() ? "" : "; ", join(notes, "; "));
}

Result<const PayloadDescriptor*> PayloadStore::State::describe(const PayloadInfo& info,
                                                               const Digest& digest) {
  if (const PayloadDescriptor* const kept = kept_descriptors().find(info, digest)) {
    return kept;
  }
  for (const Folder& folder : folders) {
    const auto text =
        read_text_file(problem_internal::payload_descriptor_path(folder.path, info, digest));
    if (text) {
      if (auto stored = problem_internal::parse_payload_descriptor(*text, info, digest)) {
        return kept_descriptors().keep(*std::move(stored));
      }
    }
  }
  FORETUNE_TRY(const MaybePayload payload, load(digest));
  PayloadDescriptor descriptor{&info, digest, std::vector<double>(info.values.size())};
  if (const Status described = info.describe(payload->bytes(), descriptor.values); !described) {
    return fail_because(described.error(), payload->path());
  }
  write_if_possible(problem_internal::payload_descriptor_path(
                        std::filesystem::path(payload->path()).parent_path(), info, digest),
                    problem_internal::payload_descriptor_text(descriptor));
  return kept_descriptors().keep(std::move(descriptor));
}

std::string PayloadStore::State::place_text() const {
  if (folders.empty()) {
    return ", since no folder of payloads was named";
  }
  std::vector<std::string> paths;
  for (const Folder& folder : folders) {
    paths.push_back(folder.path);
  }
  return concat(" in ", paths.size() == 1 ? "the folder " : "the folders ", join(paths, ", "));
}

void PayloadStore::State::note(std::string sentence) {
  if (std::find(notes.begin(), notes.end(), sentence) == notes.end()) {
    notes.push_back(std::move(sentence));
  }
}

PayloadStore::PayloadStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
PayloadStore::~PayloadStore() = default;

Result<std::shared_ptr<PayloadStore>> PayloadStore::open(std::span<const std::string> folders,
                                                         InflateGzip inflate) {
  auto state = std::make_unique<State>();
  state->inflate = inflate;
  for (const std::string& path : folders) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) {
      return fail(ErrorCode::kNotFound, "there is no folder of payloads ", foretune::quoted(path));
    }
    if (!std::filesystem::is_directory(status)) {
      return fail(ErrorCode::kInvalidArgument, path, " is a file, not a folder of payloads");
    }
    state->folders.push_back({.path = path, .files = {}});
    FORETUNE_TRY_STATUS(state->list_files(state->folders.back()));
  }
  return std::shared_ptr<PayloadStore>(new PayloadStore(std::move(state)));
}

Result<Digest> PayloadStore::find(std::string_view name) {
  const std::lock_guard lock(state_->mutex);
  return state_->find(name);
}

Result<std::string> PayloadStore::resolve_names(std::string_view text) {
  if (text.find(kNameWord) == std::string_view::npos) {
    return std::string(text);
  }
  const std::vector<std::string_view> given = split_words(text);
  std::vector<std::string> words;
  for (const std::string_view word : given) {
    if (!word.starts_with(kNameWord)) {
      words.emplace_back(word);
      continue;
    }
    const std::string_view name = word.substr(kNameWord.size());
    FORETUNE_TRY(const Digest digest, find(name));
    words.push_back(concat("payload=", digest.hex()));
    FORETUNE_TRY(const std::string fields, fields_of(given.front(), name, digest));
    for (const std::string_view field : split_words(fields)) {
      const std::string_view key = field.substr(0, field.find('=') + 1);
      if (std::none_of(given.begin(), given.end(),
                       [&](std::string_view other) { return other.starts_with(key); })) {
        words.emplace_back(field);
      }
    }
  }
  return join(words, " ");
}

Result<std::string> PayloadStore::fields_of(std::string_view type, std::string_view name,
                                            const Digest& digest) {
  const ProblemTypeInfo* const info = find_problem_type(type);
  if (info == nullptr || info->payload == nullptr || info->payload->fields == nullptr) {
    return std::string();
  }
  FORETUNE_TRY(const std::shared_ptr<const Payload> payload, load(digest));
  auto fields = info->payload->fields(name, payload->bytes());
  if (!fields) {
    return fail_because(fields.error(), payload->path());
  }
  return fields;
}

Result<std::shared_ptr<const Payload>> PayloadStore::load(const Digest& digest) {
  const std::lock_guard lock(state_->mutex);
  return state_->load(digest);
}

Result<Problem> PayloadStore::describe(Problem problem) {
  const PayloadInfo* const info = find_problem_type(problem.type())->payload;
  if (problem.has_payload() && info != nullptr) {
    const std::lock_guard lock(state_->mutex);
    FORETUNE_TRY(const PayloadDescriptor* const descriptor,
                 state_->describe(*info, problem.payload()));
    problem.set_descriptor(descriptor);
  }
  return problem;
}

Result<Problem> PayloadStore::resolve(Problem problem) {
  if (!problem.has_payload()) {
    return problem;
  }
  FORETUNE_TRY(const std::shared_ptr<const Payload> payload, load(problem.payload()));
  const PayloadInfo* const info = find_problem_type(problem.type())->payload;
  if (info != nullptr) {
    if (const Status fits = info->check(problem, payload->bytes()); !fits) {
      return fail_because(fits.error(), payload->path());
    }
  }
  return describe(std::move(problem));
}

}  // namespace foretune
