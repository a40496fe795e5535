// Models from before labels were added to the parameters of a config. A label's number never
// changes, so that such a model ranks the configs of the later schema that it knows.
//
//   if (adds_labels_only(info.config_schema, model.config_schema)) {
//     FORETUNE_TRY(model, with_later_schema(std::move(model), info.config_schema));
//   }
//
// Thread safety: free functions.
#pragma once

#include "foretune/base/result.h"
#include "foretune/model/model_file.h"
#include "foretune/space/config.h"

namespace foretune {

// Returns true when the later schema is the earlier one with further labels behind those it has, or
// with none.
bool adds_labels_only(const ConfigSchema& later, const ConfigSchema& earlier);

// Returns the model as one of the later schema: its candidates, its space and its feature table.
// adds_labels_only() must hold. Errors: kCorrupt for a model whose texts cannot be read.
Result<Model> with_later_schema(Model model, const ConfigSchema& later);

}  // namespace foretune
