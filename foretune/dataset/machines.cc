// Data sets of several machines: whose rows are whose, and one problem for each machine that
// measured it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/internal/machine_notes.h"
#include "foretune/dataset/internal/row_copier.h"

namespace foretune {
namespace {

using dataset_internal::kMachineNote;
using dataset_internal::RowCopier;

// Returns the digests of machines with facts by the number of a context; those of the header also
// stand for machines without.
std::vector<std::uint64_t> digest_of_context(const Dataset& dataset,
                                             const std::vector<Fingerprint>& machines) {
  std::vector<std::uint64_t> out;
  for (const Context& context : dataset.contexts()) {
    const bool is_known = std::any_of(
        machines.begin(), machines.end(),
        [&](const Fingerprint& machine) { return machine.digest() == context.machine; });
    out.push_back(is_known ? context.machine : machines.front().digest());
  }
  return out;
}

// Returns the only machine that measured a problem; nothing for several.
std::vector<std::optional<std::uint64_t>> only_machines(const Dataset& dataset,
                                                        std::span<const std::uint64_t> digests) {
  std::vector<std::set<std::uint64_t>> of_problem(dataset.problems().size());
  for (const Dataset::Row& row : dataset.rows()) {
    of_problem[row.problem].insert(digests[row.context]);
  }
  std::vector<std::optional<std::uint64_t>> out;
  for (const std::set<std::uint64_t>& machines : of_problem) {
    out.push_back(machines.size() == 1 ? std::optional(*machines.begin()) : std::nullopt);
  }
  return out;
}

}  // namespace

Result<std::vector<Fingerprint>> Dataset::machines() const {
  std::set<std::uint64_t> named;
  for (const Row& row : rows_) {
    named.insert(contexts_[row.context].machine);
  }
  std::map<std::uint64_t, Fingerprint> others;
  for (const auto& [name, text] : notes_) {
    if (!name.starts_with(kMachineNote)) {
      continue;
    }
    const Result<Fingerprint> facts = Fingerprint::parse(text);
    if (!facts) {
      return fail_because(facts.error(), concat("the note \"", name, "\""));
    }
    const std::uint64_t digest = facts->digest();
    if (digest != header_.fingerprint.digest() && named.contains(digest)) {
      others.emplace(digest, *facts);
    }
  }
  std::vector<Fingerprint> out{header_.fingerprint};
  for (const auto& [digest, facts] : others) {
    out.push_back(facts);
    named.erase(digest);
  }
  // The header's machine may have measured nothing.
  if (out.size() > 1 && named.empty()) {
    out.erase(out.begin());
  }
  return out;
}

Result<Dataset> Dataset::by_machine() const {
  FORETUNE_TRY(const std::vector<Fingerprint> all, machines());
  if (all.size() < 2) {
    return *this;
  }
  const std::vector<std::uint64_t> digests = digest_of_context(*this, all);
  const std::vector<std::optional<std::uint64_t>> only = only_machines(*this, digests);
  Dataset out(header_);
  out.notes_ = notes_;
  for (const Fingerprint& machine : all) {
    out.told_apart_.emplace(machine.digest(), machine);
  }
  RowCopier(*this, out)
      .copy({.keeps_row = {},
             .keeps_baseline = [&](std::uint32_t problem) { return only[problem].has_value(); },
             .machine_of_row = [&](const Row& row) { return digests[row.context]; },
             .machine_of_baseline = [&](std::uint32_t problem) { return *only[problem]; }});
  return out;
}

Dataset Dataset::of_machine(const Fingerprint& machine) const {
  const std::uint64_t wanted = machine.digest();
  const Result<std::vector<Fingerprint>> all = machines();
  Dataset out(header_);
  out.header_.fingerprint = machine;
  out.notes_ = notes_;
  std::erase_if(out.notes_, [](const auto& note) { return note.first.starts_with(kMachineNote); });
  if (!all) {
    return out;
  }
  const std::vector<std::uint64_t> digests = digest_of_context(*this, *all);
  const std::vector<std::optional<std::uint64_t>> only = only_machines(*this, digests);
  RowCopier(*this, out)
      .copy({.keeps_row = [&](const Row& row) { return digests[row.context] == wanted; },
             .keeps_baseline = [&](std::uint32_t problem) { return only[problem] == wanted; },
             .machine_of_row = {},
             .machine_of_baseline = {}});
  return out;
}

const Fingerprint& Dataset::machine_of(const Problem& problem) const {
  const auto found = told_apart_.find(problem.machine());
  return found == told_apart_.end() ? header_.fingerprint : found->second;
}

std::vector<Fingerprint> Dataset::told_apart() const {
  std::vector<Fingerprint> out;
  for (const auto& [digest, machine] : told_apart_) {
    out.push_back(machine);
  }
  return out;
}

}  // namespace foretune
