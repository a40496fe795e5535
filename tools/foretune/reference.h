// The reference of the command line as pages: Markdown for the documentation, troff for man.
// Thread safety: used by one thread at start.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::cli {

struct ReferencePage {
  std::string name;  // of the file
  std::string text;
};

// Returns the index and a page for each command, from the lists that also make the help.
std::vector<ReferencePage> markdown_reference();
// Returns foretune(1) and a page for each command.
std::vector<ReferencePage> manual_pages();
// Creates the folder where it is missing, and replaces the pages in it.
Status write_pages(const std::vector<ReferencePage>& pages, const std::filesystem::path& folder);

}  // namespace foretune::cli
