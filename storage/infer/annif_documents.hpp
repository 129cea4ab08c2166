// Several documents in JSON, as clients of Annif send them to its REST API: to suggest subjects
// for, and with subjects to learn from. kInvalidArgument names a wrong field.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "storage/infer/annif.hpp"

namespace gleaner {

// A batch: {"documents": [{"text", "document_id"}]}.
Result<Questions> read_annif_batch(std::string_view body, const AnnifLimits& limits,
                                   const PredictData& data, bool has_tables);

// [{"document_id", "results"}] in the order of the documents.
std::string annif_batch_json(const Questions& questions, const PredictNames& names);

// Documents to learn from, [{"text", "subjects": [{"uri"}]}], as JSON lines that `gleaner dataset
// convert --text text --tags tags` reads.
Result<std::string> annif_learned_lines(std::string_view body);

}  // namespace gleaner
