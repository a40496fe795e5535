// The lease of a shard: the right of one task to work on it, as the name of one file.
//
//   FORETUNE_TRY(std::unique_ptr<Lease> lease, claim_shard(run, "node1-17"));
//   if (lease == nullptr) ...                    // nothing is free now
//   measure(lease->shard(), [&] { return lease->holds(); });
//   FORETUNE_TRY(const bool is_ours, lease->finish());
//
// A claim renames todo/SHARD to leased/SHARD.TASK. While a lease lives, a thread sets the file's
// time of modification, by the clock of the file server, four times in lease_s. A lease whose time
// is older than lease_s, by the same clock, is taken over: by renaming it to the taker's name,
// which succeeds for exactly one. Clocks of the machines do not matter.
//
// A holder that could not renew its lease for three quarters of lease_s, by its own monotonic clock
// (suspension counts), has lost it: holds() returns false before anybody else may take it over. So
// two tasks never work on a shard at a time, as long as both clocks run at about the same rate and
// a request to the file server takes less than a quarter of lease_s.
//
// On NFS an answer may get lost and the request come again, so a rename that returns an error is
// checked: it has happened when the new name exists, which no other task uses. Files are opened
// before their times are read, because an open asks the server and a stat may not.
// Thread safety: holds() may be called from any thread; the rest from one.
// Cost: a claim lists two folders and makes some five requests; holds() none.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cluster/run_folder.h"

namespace foretune::cluster {

class Lease {
 public:
  // Stops renewing. A lease that is neither finished nor given back stays, and expires.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  [[nodiscard]] const Shard& shard() const { return shard_; }
  // The tasks that had the shard before, and so may have measured a part of it; this one among them
  // when it had it earlier.
  [[nodiscard]] const std::vector<std::string>& holders() const { return holders_; }
  // True when another task's lease had expired.
  [[nodiscard]] bool was_taken_over() const { return was_taken_over_; }
  // Returns false once the lease is lost; it never comes back.
  [[nodiscard]] bool holds() const;

  // Moves the shard to done/. Returns false when the lease was lost. Errors: kIo.
  Result<bool> finish();
  // Moves the shard back to todo/, for any task to go on with. Returns false when the lease was
  // lost. Errors: kIo.
  Result<bool> give_back();
  // Writes down why the shard failed and gives it back, or moves it to failed/ when it has failed
  // in kMaxFailures tasks. Returns false when the lease was lost. Errors: kIo.
  Result<bool> fail_shard(const std::string& reason);

 private:
  friend class Claims;
  Lease(const RunFolder& run, const Shard& shard, std::filesystem::path file,
        std::vector<std::string> holders, bool was_taken_over, double valid_from_s);
  void start_renewing();
  void stop_renewing();
  bool renew();
  Result<bool> move_to(const std::string& state, const std::string& name);

  std::filesystem::path folder_;
  Shard shard_;
  std::filesystem::path file_;  // leased/SHARD.TASK
  std::vector<std::string> holders_;
  bool was_taken_over_;
  double lease_s_;
  std::atomic<double> renewed_s_;  // own clock, before the last renewal that succeeded
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread renewer_;
};

inline constexpr std::size_t kMaxFailures = 3;

// The lines of a shard's file.
struct ShardHistory {
  std::vector<std::string> holders;  // each once, in order
  std::uint64_t takeovers = 0;       // of expired leases
  std::size_t failures = 0;
  std::string last_failure;
};
// Errors: kNotFound, also when the shard has moved on meanwhile; kIo.
Result<ShardHistory> read_history(const std::filesystem::path& file);

// Claims a shard that nobody works on, or else one whose lease has expired. Returns nullptr when
// there is none now. Errors: kIo; kInvalidArgument for the name.
Result<std::unique_ptr<Lease>> claim_shard(const RunFolder& run, const std::string& task);

// Renames a file. Returns false when `from` does not exist; a rename that returned an error counts
// as done when `to` exists. `to` must be a name that nobody else uses. Errors: kIo.
Result<bool> rename_once(const std::filesystem::path& from, const std::filesystem::path& to);

// Returns the seconds by which the file's time of modification lies behind the clock of the file
// server, and a negative number for a file that does not exist. `probe` is a file of the caller on
// the same server, which is touched. Errors: kIo.
Result<double> server_age_s(const std::filesystem::path& file, const std::filesystem::path& probe);

}  // namespace foretune::cluster
