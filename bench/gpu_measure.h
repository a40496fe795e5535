// Measures on a device the times that judge a model's picks. For every product it times the whole
// space once, unless the output already holds it, and then, in turns, the library's choice (the
// family's default config), the model's best others and the best of the space.
//
// Thread safety: none. Cost: seconds of the device for each product.
#pragma once

#include <string>
#include <vector>

#include "bench/shape_classes.h"
#include "foretune/base/figures.h"
#include "foretune/base/result.h"
#include "foretune/select/select.h"

namespace foretune::bench {

// The command line has --family, --rounds, --top, --seconds and the options of gpu_device.h.
Status measure_contenders(int argc, char** argv, const Selector& selector,
                          const std::vector<RegimeShape>& shapes, const std::string& output,
                          Figures& figures);

}  // namespace foretune::bench
