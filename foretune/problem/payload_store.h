// Payloads by their digests, from folders of files:
//
//   FORETUNE_TRY(const auto store, PayloadStore::open({"weights/"}));
//   FORETUNE_TRY(const std::string text, store->resolve_names("gemm m=8 ... payload=@up.npy"));
//   FORETUNE_TRY(Problem problem, Problem::parse(text));      // holds the digest
//   FORETUNE_TRY(problem, store->resolve(problem));           // and what is known of the payload
//   FORETUNE_TRY(const auto payload, store->load(problem.payload()));
//   use(payload->bytes());                                    // mapped, read-only
//
// The digest is that of a file's whole content, so the file's name and place mean nothing: a
// payload may be renamed, copied and lie in several folders. Every regular file of a folder is a
// payload, but for those whose names begin with a dot; folders within are not looked into. Digests
// are computed when they are first asked for and remembered in the folder with the file's size and
// times; where that cannot be written, for as long as the store lives. A payload's content is held
// against its digest when it is loaded.
// Thread safety: all members may be called from several threads, and wait for each other. Cost:
// opening lists the folders; a file is read once to learn its digest and once, in each process, to
// be loaded, at 1.5 GB/s or as fast as the disk. A file must not be made shorter while it is in use
// (the system ends programs that read what is gone); replacing it is safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/problem/payload.h"
#include "foretune/problem/problem.h"

namespace foretune {

class Payload {
 public:
  Payload(MappedFile file, Digest digest, std::string path)
      : file_(std::move(file)), digest_(digest), path_(std::move(path)) {}
  [[nodiscard]] std::span<const std::byte> bytes() const { return file_.bytes(); }
  [[nodiscard]] const Digest& digest() const { return digest_; }
  [[nodiscard]] const std::string& path() const { return path_; }  // for messages

 private:
  MappedFile file_;
  Digest digest_;
  std::string path_;
};

class PayloadStore {
 public:
  ~PayloadStore();
  PayloadStore(const PayloadStore&) = delete;
  PayloadStore& operator=(const PayloadStore&) = delete;
  // Earlier folders come first where two have a file of the same name. None is a store without
  // payloads. Errors: kNotFound, kInvalidArgument for what is no folder, kIo.
  static Result<std::shared_ptr<PayloadStore>> open(std::span<const std::string> folders);

  // The digest of the file with this name. Errors: kNotFound, with the folders; kIo.
  [[nodiscard]] Result<Digest> find(std::string_view name);
  // The text of a problem with digests in place of names: `payload=@NAME`. Errors: as find().
  [[nodiscard]] Result<std::string> resolve_names(std::string_view text);
  // The same payload is mapped once, whoever asks. Errors: kNotFound, with the digest and the
  // folders, also for a file whose content is another one now; kIo.
  [[nodiscard]] Result<std::shared_ptr<const Payload>> load(const Digest& digest);

  // The problem with what is known of its payload. The numbers are read from a folder, where they
  // stay beside the payload, or else computed from its bytes: a problem may be described where only
  // they were kept. A problem without payload stays as it is. Errors: as load(), and what the
  // type's PayloadInfo::describe() refuses.
  [[nodiscard]] Result<Problem> describe(Problem problem);
  // The same for a problem that is to be run: the payload has to be there and to fit. Errors:
  // those, and what PayloadInfo::check() refuses.
  [[nodiscard]] Result<Problem> resolve(Problem problem);

 private:
  struct State;
  explicit PayloadStore(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace foretune
