#include "tools/dataset/make/dataset_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "common/data/point_writer.hpp"
#include "common/limits.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/files/dataset_output.hpp"
#include "tools/dataset/files/dataset_split.hpp"
#include "tools/dataset/make/dataset_folder.hpp"
#include "tools/dataset/make/text_part.hpp"
#include "tools/dataset/make/text_source.hpp"

namespace gleaner {
namespace {

// Prints what became of the source; the first part shows how it was read.
Result<void> print_text_done(const TextFlags& flags, const TextSource& source,
                             const Vocabulary& labels, Dimensions dimensions,
                             const std::vector<const TextPart*>& parts) {
  Json files = Json::array();
  std::string text;
  for (const TextPart* part : parts) {
    files.push_back(part->json());
    text += part->summary();
  }
  Json body = {{"written", std::move(files)},
               {"form", form_name(SetForm::kXc)},
               {"features", dimensions.features},
               {"labels", dimensions.labels}};
  body.update(parts.front()->reading_json(labels));
  body["notes"] = source.notes();
  text += fmt::format("{} features, {} labels\n", with_commas(dimensions.features),
                      with_commas(dimensions.labels));
  text += parts.front()->reading(labels);
  for (const std::string& note : source.notes()) text += "note: " + note + "\n";
  return print_done(flags.json, "dataset convert", flags.source, body, text);
}

// The vocabulary and the tags of the training part.
struct Learned {
  WordModel model;
  Vocabulary labels;
  std::uint64_t test_points = 0;

  [[nodiscard]] Dimensions dimensions() const {
    return {static_cast<std::uint32_t>(model.words.numbered().size()),
            static_cast<std::uint32_t>(labels.numbered().size())};
  }
};

bool is_for_test(const TextFlags& flags, std::uint64_t index) {
  return flags.test_share > 0 && is_test_point(flags.seed, index, flags.test_share);
}

Result<Learned> learn(const TextFlags& flags, TextSource& source) {
  Learned learned;
  learned.model.fields = source.fields();
  learned.model.rule = flags.rule;
  const auto count = [&](const TextRecord& record, std::uint64_t index) -> Result<void> {
    if (is_for_test(flags, index)) {
      ++learned.test_points;
      return {};
    }
    ++learned.model.points;
    for (const auto& [word, times] : counted_words(flags.rule, record.text)) {
      learned.model.words.count(word);
    }
    const std::set<std::string> tags(record.tags.begin(), record.tags.end());
    for (const std::string& tag : tags) learned.labels.count(tag);
    return {};
  };
  Result<std::uint64_t> records = source.for_each("Counting words in", count);
  if (!records) return records.error();
  learned.model.words.number(flags.count_min);
  learned.labels.number(flags.tag_count_min);
  const Dimensions found = learned.dimensions();
  if (found.features == 0 || found.labels == 0) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: {} training examples give {} features and {} labels, too few for "
                             "a data set; see --text, --tags, --min-count and --min-tag-count",
                             flags.source, learned.model.points, found.features, found.labels)};
  }
  if (found.features > kFeaturesMax || found.labels > kLabelsMax) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: {} features and {} labels, of at most {} and {}; raise "
                             "--min-count or --min-tag-count",
                             flags.source, found.features, found.labels, kFeaturesMax, kLabelsMax)};
  }
  return learned;
}

Error changed(const TextFlags& flags) {
  return {ErrorCode::kInvalidData,
          flags.source + ": changed while it was read; start again when it is complete"};
}

Result<void> write_folder(const TextFlags& flags, TextSource& source, const FolderPaths& paths,
                          const Learned& learned) {
  Result<std::unique_ptr<TextPart>> train =
      TextPart::create(paths.train, learned.model.points, learned.dimensions());
  if (!train) return train.error();
  std::unique_ptr<TextPart> test;
  if (flags.test_share > 0) {
    auto created = TextPart::create(paths.test, learned.test_points, learned.dimensions());
    if (!created) return created.error();
    test = std::move(*created);
  }
  const auto write = [&](const TextRecord& record, std::uint64_t index) {
    return (is_for_test(flags, index) ? *test : **train).add(record, learned.model, learned.labels);
  };
  Result<std::uint64_t> records = source.for_each("Writing examples of", write);
  if (!records) return records.error();
  if ((*train)->points() != learned.model.points ||
      (test && test->points() != learned.test_points)) {
    return changed(flags);
  }
  const AtomicFile::Existing how = existing(flags.force);
  Result<void> written = write_names(paths, learned.labels.numbered(), learned.model, how);
  if (written && test) written = test->commit(how);
  if (written) written = (*train)->commit(how);
  if (!written) return written;
  std::vector<const TextPart*> parts = {train->get()};
  if (test) parts.push_back(test.get());
  return print_text_done(flags, source, learned.labels, learned.dimensions(), parts);
}

Result<void> make_folder(const TextFlags& flags) {
  if (flags.test_share != 0 && !(flags.test_share > 0 && flags.test_share < 1)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--share {} is not between 0 and 1; 0.2 puts a fifth of the points "
                             "into the test part",
                             flags.test_share)};
  }
  const FolderPaths paths = paths_in(flags.output);
  Result<void> guarded = guard_outputs({paths.train, paths.test, paths.features, paths.labels,
                                        paths.train_points, paths.test_points, paths.words},
                                       flags.force);
  if (!guarded) return guarded;
  Result<TextSource> source = TextSource::open(flags, flags.fields);
  if (!source) return source.error();
  Result<Learned> learned = learn(flags, *source);
  if (!learned) return learned.error();
  source->note_labels(learned->labels.numbered());
  if (learned->test_points == 0 && flags.test_share > 0) {
    return Error{
        ErrorCode::kInvalidData,
        fmt::format("{}: none of its {} examples is for testing; choose another --share or "
                    "--seed",
                    flags.source, learned->model.points)};
  }
  std::error_code error;
  std::filesystem::create_directories(flags.output, error);
  return write_folder(flags, *source, paths, *learned);
}

// A field that no flag names is as it was for the training part.
TextFields fields_for(const TextFlags& flags, const WordModel& model) {
  TextFields fields = flags.fields;
  if (fields.text.empty()) fields.text = model.fields.text;
  if (fields.tags.empty()) fields.tags = model.fields.tags;
  if (fields.name.empty()) fields.name = model.fields.name;
  if (fields.tag_separator.empty()) fields.tag_separator = model.fields.tag_separator;
  return fields;
}

Result<void> make_file(const TextFlags& flags) {
  Result<void> guarded = guard_outputs({flags.output, points_path_of(flags.output)}, flags.force);
  if (!guarded) return guarded;
  Result<WordModel> model = load_word_model(flags.vocabulary);
  if (!model) return model.error();
  Result<Vocabulary> labels = load_numbered_names(paths_in(flags.vocabulary).labels);
  if (!labels) return labels.error();
  const TextFields fields = fields_for(flags, *model);
  if (fields.text.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "--text is missing: name the columns or keys whose words are the features"};
  }
  Result<TextSource> source = TextSource::open(flags, fields);
  if (!source) return source.error();
  const auto ignore = [](const TextRecord&, std::uint64_t) { return Result<void>(); };
  Result<std::uint64_t> points = source->for_each("Counting", ignore);
  if (!points) return points.error();
  if (*points == 0) {
    return Error{ErrorCode::kInvalidData, flags.source + ": expected texts, found none"};
  }
  const Dimensions dimensions{static_cast<std::uint32_t>(model->words.numbered().size()),
                              static_cast<std::uint32_t>(labels->numbered().size())};
  Result<std::unique_ptr<TextPart>> part = TextPart::create(flags.output, *points, dimensions);
  if (!part) return part.error();
  const auto write = [&](const TextRecord& record, std::uint64_t) {
    return (*part)->add(record, *model, *labels);
  };
  Result<std::uint64_t> written = source->for_each("Writing examples of", write);
  if (!written) return written.error();
  if (*written != *points) return changed(flags);
  Result<void> committed = (*part)->commit(existing(flags.force));
  if (!committed) return committed;
  return print_text_done(flags, *source, *labels, dimensions, {part->get()});
}

}  // namespace

Result<void> run_dataset_text(const TextFlags& flags) {
  return flags.vocabulary.empty() ? make_folder(flags) : make_file(flags);
}

}  // namespace gleaner
