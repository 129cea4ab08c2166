#include "tools/predict/run_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "common/data/open_or_pack.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/open_to_read.hpp"

namespace gleaner {

std::string examples_at(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  return (std::filesystem::path(path) / "test.txt").string();
}

Result<PredictData> known_data(const RunIdentity& run, const std::string& store,
                               const std::string& given) {
  if (!given.empty()) return PredictData::open_names(given, run);
  if (is_model_file(store)) return PredictData::open_names(store, run);
  auto beside = PredictData::open_names(data_folder(run), run);
  return beside ? std::move(*beside) : PredictData();
}

Error no_words(const std::string& path) {
  return {ErrorCode::kInvalidData,
          fmt::format("{}: words.json is missing: texts can be read for data sets that 'gleaner "
                      "dataset convert --text' made, and for models that carry the words of one "
                      "(gleaner export --data)",
                      path)};
}

Result<std::unique_ptr<PredictExamples>> open_examples(const std::string& path,
                                                       const TextOptions& options,
                                                       const PredictData& data,
                                                       std::function<Result<void>()> before_wait,
                                                       const std::string& id) {
  if (!named_form(path)) return PredictExamples::open(path, options, std::move(before_wait));
  if (data.words() == nullptr) return no_words(path);
  return PredictExamples::open_texts(path, with_id(*data.words(), id), data.names().labels,
                                     std::move(before_wait));
}

WordModel with_id(WordModel words, const std::string& id) {
  if (!id.empty()) words.fields.name = id;
  return words;
}

Result<std::string> recorded_test_file(const RunIdentity& run) {
  const auto refuse = [](const std::string& why) {
    return Error{ErrorCode::kInvalidData,
                 why + ": give a file of examples with labels as --data FILE"};
  };
  const std::string path = test_file(run);
  if (path.empty()) return refuse("the run was trained without a test file");
  const Result<bool> is_normalised = trained_on_normalised_points(run);
  if (!is_normalised) return is_normalised.error();
  PackOptions options;
  options.normalize = *is_normalised;
  options.text.limits = Dimensions{run.model.features, run.model.labels};
  const auto packed = open_or_pack(path, options);
  if (!packed) return refuse("the run's test file: " + packed.error().message);
  if ((*packed)->fingerprint() == test_fingerprint(run)) return (*packed)->path();
  return refuse(path + " is not the test file with which the run was measured: it has changed");
}

}  // namespace gleaner
