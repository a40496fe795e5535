// The row of the table of families, which reads zipped matrices.
#include <string>

#include "foretune/families/sparse_cpu/sparse_cpu.h"
#include "foretune/family/family.h"
#include "foretune/formats/gzip.h"

namespace foretune {

const FamilyEntry& sparse_cpu_family();

const FamilyEntry& sparse_cpu_family() {
  static const FamilyEntry entry{.name = std::string(kSparseCpuName),
                                 .description = std::string(kSparseCpuDescription),
                                 .available = [](const FamilyOptions&) { return Support::yes(); },
                                 .create =
                                     [](const FamilyOptions& options) {
                                       return create_sparse_cpu(options, &formats::inflate_gzip);
                                     }};
  return entry;
}

}  // namespace foretune
