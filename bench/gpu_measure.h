// Measures on a device what a judgement of a model's picks needs: for every product the whole space
// once, as far as the output does not hold it yet, and then in turns the library's choice (the
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

// The command line says --family, --rounds, --top, --seconds and the options of gpu_device.h.
Status measure_contenders(int argc, char** argv, const Selector& selector,
                          const std::vector<RegimeShape>& shapes, const std::string& output,
                          Figures& figures);

}  // namespace foretune::bench
