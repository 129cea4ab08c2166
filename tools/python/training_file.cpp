#include "tools/python/training_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/data/packed_dataset.hpp"

namespace gleaner {

Result<TextWords> TextWords::of_rule(const std::string& rule) {
  const Result<WordRule> parsed = parse_word_rule(rule);
  if (!parsed) return parsed.error();
  WordModel model;
  model.rule = *parsed;
  model.fields = {{"text"}, "tags", "", "list"};
  return TextWords(std::move(model));
}

void TextWords::count(const std::string& text) {
  ++model_.points;
  for (const auto& [word, times] : counted_words(model_.rule, text)) model_.words.count(word);
}

Result<std::unique_ptr<TrainingFile>> TrainingFile::create(const std::string& path,
                                                           Dimensions dimensions, bool normalise) {
  auto writer = PackedWriter::create(path, normalise);
  if (!writer) return writer.error();
  return std::unique_ptr<TrainingFile>(new TrainingFile(std::move(*writer), dimensions));
}

Result<void> TrainingFile::check_labels(const CsrRows& labels, std::size_t rows) const {
  if (auto sound = labels.check(dimensions_.labels, writer_->points(), "Y"); !sound) return sound;
  if (labels.rows() == rows) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("X has {} rows and Y {}", rows, labels.rows())};
}

Result<void> TrainingFile::add_rows(const CsrRows& rows, const CsrRows& labels) {
  if (auto sound = rows.check(dimensions_.features, writer_->points(), "X"); !sound) return sound;
  if (auto sound = check_labels(labels, rows.rows()); !sound) return sound;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    Point point = rows.point(row);
    const auto own = labels.columns_of(row);
    point.labels.assign(own.begin(), own.end());
    if (auto added = writer_->add(point); !added) return added;
  }
  return {};
}

Result<void> TrainingFile::add_texts(const std::vector<std::string>& texts, const TextWords& words,
                                     const CsrRows& labels) {
  if (auto sound = check_labels(labels, texts.size()); !sound) return sound;
  for (std::size_t row = 0; row < texts.size(); ++row) {
    Point point = words.model().point_of(texts[row]);
    const auto own = labels.columns_of(row);
    point.labels.assign(own.begin(), own.end());
    if (auto added = writer_->add(point); !added) return added;
  }
  return {};
}

Result<void> TrainingFile::finish() {
  return writer_->finish(dimensions_, {}, "", AtomicFile::Existing::kReplace);
}

}  // namespace gleaner
