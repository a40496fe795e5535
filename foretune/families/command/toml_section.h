// Checked access to the tables of a TOML file. Every error is one sentence that begins with file
// and line and names the key by its full path.
//
//   const TomlSection run = *root.section("run");
//   FORETUNE_TRY_STATUS(run.check_keys({"command", "time_limit_s"}));
//   FORETUNE_TRY(const double limit, run.number("time_limit_s", 60, 0.001, 1e6));
//
// Internal to the module. Thread safety: plain values that point into a document.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/families/command/toml_document.h"

namespace foretune::command_internal {

class TomlSection {
 public:
  // `path` is empty for the whole document.
  TomlSection(const TomlValue& table, std::string file, std::string path)
      : table_(&table), file_(std::move(file)), path_(std::move(path)) {}

  [[nodiscard]] const TomlValue* find(std::string_view key) const { return table_->find(key); }
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] const TomlValue& table() const { return *table_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Refuses keys that are not among `known`, with the nearest one.
  [[nodiscard]] Status check_keys(const std::vector<std::string>& known) const;

  // Values, or what stands in for them where the key is absent. Errors: kCorrupt for
  // another kind of value or one out of bounds.
  [[nodiscard]] Result<std::optional<std::string>> text(std::string_view key) const;
  [[nodiscard]] Result<std::string> needed_text(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view key, std::int64_t low,
                                                            std::int64_t high) const;
  [[nodiscard]] Result<double> number(std::string_view key, double otherwise, double low,
                                      double high) const;
  [[nodiscard]] Result<bool> flag(std::string_view key) const;
  // Empty where the key is absent.
  [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view key) const;
  [[nodiscard]] Result<std::optional<TomlSection>> section(std::string_view key) const;
  // The tables of a list of tables, each with its own path.
  [[nodiscard]] Result<std::vector<TomlSection>> sections(std::string_view key) const;

  // "family.toml:12: run.command " and then `parts`, of this table's key, or of the table itself
  // for an empty key.
  template <class... Parts>
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view key, const Parts&... parts) const {
    return fail(ErrorCode::kCorrupt, place(key), " ", parts...);
  }
  // "family.toml:12: run.command".
  [[nodiscard]] std::string place(std::string_view key) const;
  [[nodiscard]] std::string path_of(std::string_view key) const;

 private:
  const TomlValue* table_;
  std::string file_;
  std::string path_;
};

}  // namespace foretune::command_internal
