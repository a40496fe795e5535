// Imports published measurements of sparse schedules: tables with the columns matrix, rows, cols,
// nnz, schedule and time_ms, in AutoSparse's notation or in WACO's. A row becomes a problem of the
// type `sparse`, a config of sparse_schedule_schema() and a time.
//
// The columns say neither the operation nor the machine, so the file's name has to:
//
//   OPERATION[_early][_waco][_nn][_nWIDTH]_MACHINE.csv[.zst|.gz] spmm_waco_n256_epyc7543.csv.zst
//
// The operation is spmv, spmm, sddmm, mmadd, plus2 or plus3, the machine a built-in device profile.
// Dense operands have 128 columns, or the stated width; 256 on xeon_e5_2680v3, whose data WACO
// published; with `nn`, matrices of networks, 256 for a square attention mask and the number of
// rows for a layer's weights. `early` marks runs that a later one of the same machine supersedes:
// their context has fidelity 1, which keeps the two apart.
//
//   ImportReport report;
//   FORETUNE_TRY(const ScheduleTable table, parse_schedule_table("spmm_epyc7543.csv.zst"));
//   FORETUNE_TRY(const Dataset dataset, import_schedule_text(text, table, {}, &report));
//
// The threads that the machine had are in the context, not in the config. The group of a problem is
// the matrix that its own was resampled from; net100 and net150, which one generator made, are one
// group, and so are the layers of one network.
//
// Thread safety: free functions without state. Cost: about 2 us a row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/hardware/hardware.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/payload_store.h"
#include "foretune/problem/sparse/sparse_problem.h"

namespace foretune {

// The facts that a file's name tells.
struct ScheduleTable {
  SparseOperation operation = SparseOperation::kSpmm;
  Fingerprint fingerprint;
  std::int64_t width = 1;       // of dense operands; 0: it depends on the matrix (nn)
  bool is_waco = false;         // its texts are WACO's
  bool is_of_networks = false;  // nn
  bool is_superseded = false;   // early
  bool operator==(const ScheduleTable&) const = default;
};

// Errors: kInvalidArgument, with the form that a name must have; kNotFound for an unknown machine.
Result<ScheduleTable> parse_schedule_table(std::string_view file_name);

struct ScheduleImportOptions {
  std::string family = "recorded";
  DatasetRole role = DatasetRole::kTraining;
  // Has the patterns, as files named MATRIX.mtx.gz, .mtx or .csr; borrowed. Problems of a matrix
  // that is there get its payload and descriptor. nullptr: only sizes are known.
  PayloadStore* payloads = nullptr;
  // Keeps each measurement of a schedule as a row of its own instead of the median of them.
  bool keep_repeats = false;
};

// Returns true for a text whose first line has the columns of such a table.
bool is_schedule_csv(std::string_view text);
// Reads a table. Rows that make no sense are dropped and counted, changes are noted. Errors:
// kCorrupt for a text without the columns or without a usable row, kMismatch for a pattern of other
// sizes than the table's.
Result<Dataset> import_schedule_text(std::string_view text, const ScheduleTable& table,
                                     const ScheduleImportOptions& options,
                                     ImportReport* report = nullptr);
// Reads a file, which may be compressed, with the facts of its name. Errors also: those of
// parse_schedule_table() and of reading.
Result<Dataset> import_schedule_file(const std::filesystem::path& path,
                                     const ScheduleImportOptions& options,
                                     ImportReport* report = nullptr);

}  // namespace foretune
