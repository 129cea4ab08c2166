#include "tools/predict/predict_examples.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/counter_random.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/machine_facts.hpp"
#include "common/order_statistics.hpp"
#include "tools/dataset/tag_forms.hpp"

namespace gleaner {
namespace {

std::unique_ptr<ByteSource> standard_input(std::function<Result<void>()> before_wait) {
  return open_stream_source(::dup(STDIN_FILENO), kStandardInputName, std::move(before_wait));
}

}  // namespace

Result<std::unique_ptr<PredictExamples>> PredictExamples::open(
    const std::string& path, const TextOptions& options,
    std::function<Result<void>()> before_wait) {
  GLEANER_CHECK(options.limits.has_value());
  std::unique_ptr<PredictExamples> points(new PredictExamples);
  points->is_stream_ = path == kStandardInput;
  auto opened = points->is_stream_
                    ? PointStream::open(standard_input(std::move(before_wait)), options)
                    : PointStream::open(path, options);
  if (!opened) return points->input_error(opened.error());
  points->examples_ = std::move(*opened);
  // Text is checked line by line as it is read; a packed file knows its largest ids.
  if (const PackedDataset* packed = points->examples_->packed()) {
    if (auto fits = check_limits(*packed, options); !fits) return fits.error();
  }
  return points;
}

Result<std::unique_ptr<PredictExamples>> PredictExamples::open_texts(
    const std::string& path, WordModel words, const NameTable& labels,
    std::function<Result<void>()> before_wait) {
  std::unique_ptr<PredictExamples> points(new PredictExamples);
  points->is_stream_ = path == kStandardInput;
  auto source =
      points->is_stream_ ? standard_input(std::move(before_wait)) : open_file_source(path);
  if (!source) return points->input_error(source.error());
  points->texts_ = std::make_unique<Texts>();
  Texts& texts = *points->texts_;
  texts.words = std::move(words);
  for (std::uint32_t label = 0; label < labels.size(); ++label) {
    texts.labels.emplace(labels.name(label), label);
  }
  if (const auto form = named_form(path)) {
    const TextFields& fields = texts.words.fields;
    RecordOptions options;
    options.form = *form;
    options.needs_all = false;
    auto records = TextRecords::open(std::move(*source), options,
                                     {fields.text, fields.tags, fields.name, fields.tag_separator});
    if (!records) return points->input_error(records.error());
    texts.records = std::move(*records);
  } else {
    texts.lines = std::make_unique<LineReader>(std::move(*source));
  }
  return points;
}

std::unique_ptr<PredictExamples> PredictExamples::of_texts(std::vector<std::string> texts,
                                                           WordModel words) {
  std::unique_ptr<PredictExamples> points(new PredictExamples);
  points->texts_ = std::make_unique<Texts>();
  points->texts_->words = std::move(words);
  points->texts_->given = std::move(texts);
  return points;
}

Error PredictExamples::input_error(Error error) const {
  if (!is_stream_ && error.code != ErrorCode::kInvalidArgument && error.code != ErrorCode::kIo) {
    error.code = ErrorCode::kInvalidData;
  }
  return error;
}

Result<bool> PredictExamples::next_text(IndexedExample& point) {
  TextRecord record;
  std::string_view line;
  const bool is_given = !texts_->records && !texts_->lines;
  if (is_given && next_ < texts_->given.size()) line = texts_->given[next_];
  Result<bool> has_more = is_given          ? next_ < texts_->given.size()
                          : texts_->records ? texts_->records->next(record)
                                            : texts_->lines->next(line);
  if (!has_more || !*has_more) return has_more;
  if (!texts_->records) record.name = record.text = line;
  point.name = std::move(record.name);
  point.point = texts_->words.point_of(record.text);
  for (const std::string& tag : cut_tags(record.uncut_tags, texts_->words.fields.tag_separator)) {
    record.add_tag(tag);
  }
  for (const std::string& tag : record.tags) {
    const auto known = texts_->labels.find(tag);
    if (known != texts_->labels.end()) point.point.labels.push_back(known->second);
  }
  std::ranges::sort(point.point.labels);
  const auto twice = std::ranges::unique(point.point.labels);
  point.point.labels.erase(twice.begin(), twice.end());
  return true;
}

Result<bool> PredictExamples::next(IndexedExample& point) {
  Result<bool> has_more = texts_ ? next_text(point) : examples_->next(point.point);
  if (!has_more) return input_error(has_more.error());
  if (*has_more) point.index = next_++;
  return has_more;
}

std::optional<std::uint64_t> PredictExamples::announced_points() const {
  return texts_ ? std::nullopt : examples_->announced_points();
}

std::optional<Dimensions> PredictExamples::announced() const {
  if (!announced_points()) return std::nullopt;  // texts, and libsvm text
  return examples_->dimensions();
}

bool PredictExamples::is_normalised() const {
  return examples_ && examples_->packed() != nullptr &&
         examples_->packed()->summary().is_normalized;
}

AnsweringOptions asking_options(unsigned threads, std::uint32_t candidates) {
  AnsweringOptions options;
  options.threads = threads > 0 ? threads : machine_facts().cores;
  options.candidates = candidates;
  options.reads_all_first = false;
  return options;
}

TextOptions limits_of(const ModelConfig& model, const ReadFlags& read, const std::string& store) {
  TextOptions options = read.text_options();
  options.limits = {model.features, model.labels};
  options.limits_name = "the model in " + store;
  return options;
}

Result<void> check_scaling(const PredictExamples& examples, const AnsweringModel& model,
                           const std::string& input) {
  if (!examples.is_normalised() || model.is_normalised()) return {};
  return Error{ErrorCode::kInvalidData,
               fmt::format("the rows of {} are normalised, but this run trained on rows as they "
                           "are; use the text file, or one packed with --no-normalize",
                           input)};
}

Result<std::vector<IndexedExample>> choose_examples(PredictExamples& points, std::uint64_t count,
                                                    std::uint64_t seed) {
  // The points of the smallest random keys.
  using Keyed = std::pair<std::uint64_t, IndexedExample>;
  std::vector<Keyed> chosen;
  const auto comes_before = [](const Keyed& a, const Keyed& b) {
    return std::pair(a.first, a.second.index) < std::pair(b.first, b.second.index);
  };
  IndexedExample point;
  for (;;) {
    Result<bool> has_point = points.next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) break;
    if (point.point.labels.empty()) continue;
    keep_best(chosen, count, {counter_random(seed, Purpose::kSplit, point.index), point},
              comes_before);
  }
  std::vector<IndexedExample> result;
  result.reserve(chosen.size());
  for (Keyed& keyed : chosen) result.push_back(std::move(keyed.second));
  std::sort(result.begin(), result.end(),
            [](const IndexedExample& a, const IndexedExample& b) { return a.index < b.index; });
  return result;
}

}  // namespace gleaner
