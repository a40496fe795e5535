// Finds payloads by their digests, in folders of files:
//
//   FORETUNE_TRY(const auto store, PayloadStore::open({"weights/"}));
//   FORETUNE_TRY(const std::string text, store->resolve_names("gemm m=8 ... payload=@up.npy"));
//   FORETUNE_TRY(Problem problem, Problem::parse(text));      // holds the digest
//   FORETUNE_TRY(problem, store->resolve(problem));           // and the payload's descriptor
//   FORETUNE_TRY(const auto payload, store->load(problem.payload()));
//   use(payload->bytes());                                    // mapped, read-only
//
// The digest covers a file's whole content, so the file's name and place mean nothing: a payload
// may be renamed, copied and lie in several folders. Every regular file of a folder is a payload,
// except those whose names begin with a dot; subfolders are not searched. A digest is computed when
// it is first needed and stored in the folder with the file's size and times; where the folder
// cannot be written, the store remembers it as long as it lives. Loading a payload checks its
// content against its digest. Thread safety: all members may be called from several threads, and
// wait for each other. Cost: opening lists the folders; a file is read once to compute its digest
// and once, in each process, to be loaded, at 1.5 GB/s or as fast as the disk. A file must not be
// made shorter while it is in use (the system ends programs that read missing bytes); replacing it
// is safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/problem/payload.h"
#include "foretune/problem/problem.h"

namespace foretune {

class Payload {
 public:
  // `content` stands for the bytes of a compressed file.
  Payload(MappedFile file, std::vector<std::byte> content, Digest digest, std::string path)
      : file_(std::move(file)),
        content_(std::move(content)),
        digest_(digest),
        path_(std::move(path)) {}
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return content_.empty() ? file_.bytes() : std::span<const std::byte>(content_);
  }
  [[nodiscard]] const Digest& digest() const { return digest_; }
  [[nodiscard]] const std::string& path() const { return path_; }  // for messages

 private:
  MappedFile file_;
  std::vector<std::byte> content_;
  Digest digest_;
  std::string path_;
};

// Returns the content of gzip data. Errors: one sentence.
using InflateGzip = Result<std::vector<std::byte>> (*)(std::span<const std::byte> bytes);

class PayloadStore {
 public:
  ~PayloadStore();
  PayloadStore(const PayloadStore&) = delete;
  PayloadStore& operator=(const PayloadStore&) = delete;
  // Opens the folders. Where two folders have a file of the same name, the earlier folder counts.
  // Without folders, the store has no payloads. Files that are gzip are inflated by `inflate`; a
  // store without it has their bytes as they are, since products link no decompressor. Digests are
  // those of the files. Errors: kNotFound, kInvalidArgument for a path that is not a folder, kIo.
  static Result<std::shared_ptr<PayloadStore>> open(std::span<const std::string> folders,
                                                    InflateGzip inflate = nullptr);

  // Returns the digest of the file with this name. Errors: kNotFound, with the folders; kIo.
  [[nodiscard]] Result<Digest> find(std::string_view name);
  // Returns the text of a problem with digests in place of names (`payload=@NAME`), and with the
  // fields that follow from the file (PayloadInfo::fields()) where the text lacks them. Errors: as
  // find() and load(), and those of the type for a file that is no such payload.
  [[nodiscard]] Result<std::string> resolve_names(std::string_view text);
  // Returns the payload, mapped; all callers share one mapping. Errors: kNotFound, with the digest
  // and the folders, also for a file whose content has changed since; kIo.
  [[nodiscard]] Result<std::shared_ptr<const Payload>> load(const Digest& digest);

  // Returns the problem with the descriptor of its payload. The numbers are read from a folder,
  // where they stay beside the payload, or else computed from its bytes: a problem may be described
  // where only the numbers were kept. A problem without payload stays unchanged. Errors: those of
  // load() and of the type's PayloadInfo::describe().
  [[nodiscard]] Result<Problem> describe(Problem problem);
  // Describes a problem that is to be run: the payload has to exist and to fit. Errors: those of
  // describe() and of PayloadInfo::check().
  [[nodiscard]] Result<Problem> resolve(Problem problem);

 private:
  struct State;
  explicit PayloadStore(std::unique_ptr<State> state);
  // Returns the fields that follow from a file, for a problem whose text begins with `type`.
  Result<std::string> fields_of(std::string_view type, std::string_view name, const Digest& digest);

  std::unique_ptr<State> state_;
};

}  // namespace foretune
