// The files that a run names in its own record, and the file that a word of the command line means.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/run_identity.hpp"
#include "tools/predict/predict_examples.hpp"

namespace gleaner {

// The file of test examples that a person means by `path`: a file, or a folder's test.txt.
std::string examples_at(const std::string& path);

// Names and words of the run: of `given`, a folder or a model file, or where it is empty of the
// model file `store`, or of the folder of the training file; none where that folder has gone or
// changed.
Result<PredictData> known_data(const RunIdentity& run, const std::string& store,
                               const std::string& given = {});

// Texts cannot be read by what is at `path`.
Error no_words(const std::string& path);

// Opens examples of any form that the name tells: texts by the words of `data`, else examples by
// numbers. As PredictExamples.
Result<std::unique_ptr<PredictExamples>> open_examples(const std::string& path,
                                                       const TextOptions& options,
                                                       const PredictData& data,
                                                       std::function<Result<void>()> before_wait,
                                                       const std::string& id = {});

// The words, for records whose field `id` names them; empty: as in the data set.
WordModel with_id(WordModel words, const std::string& id);

// The run's test file, packed as the run read it. kInvalidData when the run has none, when it is
// gone, or when its content has changed.
Result<std::string> recorded_test_file(const RunIdentity& run);

}  // namespace gleaner
