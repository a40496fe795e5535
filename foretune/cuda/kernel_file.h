// Files of kernels from a compiler outside of this library (Triton's, in Python): machine code for
// one device and the parameters of its launch, found by a text key that says what a kernel computes
// and how. Format: docs/reference/file-formats/kernels.md.
//
//   FORETUNE_TRY(auto writer, KernelFileWriter::open("kernels.ftk", {"sm_90", "triton-3.6.0"}));
//   FORETUNE_TRY_STATUS(writer->append({.key = "template=1 block_m=64", .function = "matmul",
//   ...}));
//
//   FORETUNE_TRY(const auto file, KernelFile::open("kernels.ftk"));
//   const CompiledKernel* const kernel = file->find("template=1 block_m=64");
//
// A record is appended by one system call; kill -9 loses at most the one being written. Reading
// ignores a torn tail; damage anywhere else is an error. One writer at a time, by a lock.
// Thread safety: a file is immutable; a writer belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/descriptor.h"
#include "foretune/base/file.h"
#include "foretune/base/result.h"

namespace foretune::cuda {

// The device and the compiler of the kernels.
struct KernelFileHeader {
  std::string target;    // instruction set of the device: "sm_90"
  std::string compiler;  // with its version: "triton-3.6.0"
  bool operator==(const KernelFileHeader&) const = default;
};

struct CompiledKernel {
  std::string key;
  // The compiler's reason why there is no code; the members below are empty then.
  std::string error;
  std::string function;             // its name in the image
  std::uint32_t threads = 0;        // of a block
  std::uint32_t shared_bytes = 0;   // of a block, dynamic
  std::uint32_t scratch_bytes = 0;  // of global memory, for every block
  std::vector<std::byte> image;     // input of cuModuleLoadData; of a read kernel, see image()
};

class KernelFile {
 public:
  // Errors: kNotFound, kIo, kCorrupt with the position.
  static Result<std::shared_ptr<const KernelFile>> open(const std::filesystem::path& path);
  // Reads a file from memory, which must outlive it; the fuzzer calls this.
  static Result<std::shared_ptr<const KernelFile>> parse(std::span<const std::byte> bytes);

  [[nodiscard]] const KernelFileHeader& header() const { return header_; }
  // Returns the last record of this key, without its image; nullptr when there is none.
  [[nodiscard]] const CompiledKernel* find(std::string_view key) const;
  [[nodiscard]] std::span<const std::byte> image(const CompiledKernel& kernel) const;
  [[nodiscard]] const std::vector<CompiledKernel>& kernels() const { return kernels_; }
  // Returns the bytes up to the end of the last whole record.
  [[nodiscard]] std::size_t whole_bytes() const { return whole_bytes_; }

 private:
  Status read(std::span<const std::byte> bytes);

  MappedFile file_;
  KernelFileHeader header_;
  std::vector<CompiledKernel> kernels_;
  std::vector<std::span<const std::byte>> images_;  // in their order
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t whole_bytes_ = 0;
};

class KernelFileWriter {
 public:
  // Creates the file or continues it; a torn tail is cut off. Errors: kMismatch when an existing
  // file has another header, kCorrupt, kIo also when another writer holds the lock.
  static Result<std::unique_ptr<KernelFileWriter>> open(const std::filesystem::path& path,
                                                        const KernelFileHeader& header);
  [[nodiscard]] bool contains(const std::string& key) const { return keys_.contains(key); }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  // Errors: kIo, and the file is as before; kInvalidArgument for a kernel with neither code nor
  // error.
  Status append(const CompiledKernel& kernel);

 private:
  KernelFileWriter(Descriptor file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}
  Status start(const std::filesystem::path& path, const KernelFileHeader& header);

  Descriptor file_;
  std::string name_;  // for errors
  std::unordered_set<std::string> keys_;
};

}  // namespace foretune::cuda
