#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <set>
#include <system_error>

#include "common/data/atomic_file.hpp"
#include "common/data/name_table.hpp"
#include "common/data/point_writer.hpp"
#include "common/data/word_model.hpp"
#include "common/limits.hpp"
#include "common/result.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/dataset/dataset_stream.hpp"
#include "tools/dataset/label_texts.hpp"
#include "tools/dataset/text_source.hpp"

namespace gleaner {
namespace {

// The files of a data set made of texts: `gleaner predict --data` and `--text` read such a folder.
struct FolderPaths {
  std::string train, test, features, labels, train_points, test_points, words, texts, titles;
};

// A part of a data set of texts while it is written: examples, and their names beside them.
class TextPart {
 public:
  static Result<std::unique_ptr<TextPart>> create(const std::string& path, std::uint64_t points,
                                                  Dimensions dimensions);

  Result<void> add(const TextRecord& record, const WordModel& model, const Vocabulary& labels);

  // The points last: whoever finds them finds the rest.
  Result<void> commit(AtomicFile::Existing existing);

  [[nodiscard]] std::uint64_t points() const { return points_; }

  [[nodiscard]] Json json() const;

  // A line of output.
  [[nodiscard]] std::string summary() const;

  // The most frequent labels and a few examples with their tags, so that a person sees whether the
  // source was read as it was meant: in JSON, and as lines.
  [[nodiscard]] Json reading_json(const Vocabulary& labels) const;
  [[nodiscard]] std::string reading(const Vocabulary& labels) const;

 private:
  TextPart(std::string path, std::unique_ptr<SetOutput> set, std::unique_ptr<TextOutput> names,
           Dimensions dimensions)
      : path_(std::move(path)),
        set_(std::move(set)),
        names_(std::move(names)),
        points_by_label_(dimensions.labels) {}

  [[nodiscard]] std::vector<std::uint32_t> frequent_labels() const;

  struct AsRead {
    std::string name;
    std::vector<std::string> tags;
  };

  std::string path_;
  std::unique_ptr<SetOutput> set_;
  std::unique_ptr<TextOutput> names_;
  std::uint64_t points_ = 0;
  std::uint64_t without_labels_ = 0;
  std::uint64_t without_features_ = 0;
  std::uint64_t unknown_tags_ = 0;
  std::vector<std::uint32_t> points_by_label_;
  std::vector<AsRead> as_read_;
};

std::string lines(const std::vector<std::string>& names) {
  return names.empty() ? "" : fmt::format("{}\n", fmt::join(names, "\n"));
}

FolderPaths paths_in(const std::string& folder) {
  const auto in = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  return {in("train.txt"),    in("test.txt"),         in("features.txt"),
          in("labels.txt"),   in("train.points.txt"), in("test.points.txt"),
          in(kWordModelFile), in(kLabelTextsFile),    in(kLabelTitlesFile)};
}

// "test.points.txt" beside "test.txt", "test.txt.zst" or "test.svm": names of its points.
std::string points_path_of(const std::string& set_path) {
  std::filesystem::path path(set_path);
  if (path.extension() == ".gz" || path.extension() == ".zst") path.replace_extension();
  return path.replace_extension(".points.txt").string();
}

Result<void> write_text(const std::string& path, const std::string& text,
                        AtomicFile::Existing existing) {
  Result<std::unique_ptr<TextOutput>> output = TextOutput::create(path);
  if (!output) return output.error();
  Result<void> written = (*output)->write(text);
  return written ? (*output)->commit(existing) : written;
}

Result<void> write_names(const FolderPaths& paths, const std::vector<std::string>& labels,
                         const WordModel& model, AtomicFile::Existing existing) {
  Result<void> written = write_text(paths.labels, lines(labels), existing);
  if (written) written = write_text(paths.features, lines(model.words.numbered()), existing);
  if (written) written = write_text(paths.words, word_model_json(model), existing);
  return written;
}

constexpr std::size_t kLabelsAsRead = 5;
constexpr std::size_t kExamplesAsRead = 3;

Result<std::unique_ptr<TextPart>> TextPart::create(const std::string& path, std::uint64_t points,
                                                   Dimensions dimensions) {
  auto set = SetOutput::create(path, {}, points, dimensions);
  if (!set) return set.error();
  Result<std::unique_ptr<TextOutput>> names = TextOutput::create(points_path_of(path));
  if (!names) return names.error();
  return std::unique_ptr<TextPart>(
      new TextPart(path, std::move(*set), std::move(*names), dimensions));
}

Result<void> TextPart::add(const TextRecord& record, const WordModel& model,
                           const Vocabulary& labels) {
  Point point = model.point_of(record.text);
  for (const std::string& tag : record.tags) {
    const auto* label = labels.find(tag);
    unknown_tags_ += label == nullptr;
    if (label != nullptr) point.labels.push_back(label->id);
  }
  std::sort(point.labels.begin(), point.labels.end());
  point.labels.erase(std::unique(point.labels.begin(), point.labels.end()), point.labels.end());
  for (const std::uint32_t label : point.labels) ++points_by_label_[label];
  if (as_read_.size() < kExamplesAsRead && !record.tags.empty()) {
    as_read_.push_back({record.name, record.tags});
  }
  without_labels_ += point.labels.empty();
  without_features_ += point.features.empty();
  ++points_;
  Result<void> written = set_->add(point);
  return written ? names_->write(record.name + "\n") : written;
}

Result<void> TextPart::commit(AtomicFile::Existing existing) {
  Result<void> committed = names_->commit(existing);
  return committed ? set_->commit({}, existing) : committed;
}

Json TextPart::json() const {
  Json json = written_json(path_, points_);
  json["without_labels"] = without_labels_;
  json["without_features"] = without_features_;
  json["unknown_tags"] = unknown_tags_;
  return json;
}

std::string TextPart::summary() const {
  return fmt::format(
      "{}: {} examples, {} without a known tag, {} without a known word; {} tags "
      "are not labels\n",
      path_, grouped(points_), grouped(without_labels_), grouped(without_features_),
      grouped(unknown_tags_));
}

std::vector<std::uint32_t> TextPart::frequent_labels() const {
  std::vector<std::uint32_t> labels(points_by_label_.size());
  std::iota(labels.begin(), labels.end(), 0U);
  const std::size_t count = std::min(labels.size(), kLabelsAsRead);
  std::ranges::partial_sort(
      labels, labels.begin() + static_cast<std::ptrdiff_t>(count), std::ranges::greater(),
      [&](std::uint32_t label) { return std::pair(points_by_label_[label], ~label); });
  labels.resize(count);
  return labels;
}

Json TextPart::reading_json(const Vocabulary& labels) const {
  Json json = {{"frequent_labels", Json::array()}, {"as_read", Json::array()}};
  for (const std::uint32_t label : frequent_labels()) {
    json["frequent_labels"].push_back({{"label", label},
                                       {"points", points_by_label_[label]},
                                       {"name", labels.numbered()[label]}});
  }
  for (const AsRead& example : as_read_) {
    json["as_read"].push_back({{"name", example.name}, {"tags", example.tags}});
  }
  return json;
}

std::string TextPart::reading(const Vocabulary& labels) const {
  std::vector<std::string> frequent;
  for (const std::uint32_t label : frequent_labels()) {
    frequent.push_back(
        fmt::format("'{}' ({})", labels.numbered()[label], grouped(points_by_label_[label])));
  }
  std::string text = fmt::format("most frequent labels: {}\n", fmt::join(frequent, ", "));
  for (const AsRead& example : as_read_) {
    text += fmt::format("as read: {} | '{}'\n", example.name, fmt::join(example.tags, "', '"));
  }
  return text;
}

// Prints what became of the source; the first part shows how it was read.
Result<void> print_text_done(const ConvertFlags& flags, const TextSource& source,
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
  text += fmt::format("{} features, {} labels\n", grouped(dimensions.features),
                      grouped(dimensions.labels));
  text += parts.front()->reading(labels);
  for (const std::string& note : source.notes()) text += "note: " + note + "\n";
  return print_done(flags.json, "dataset convert", flags.source, body, text);
}

// The vocabulary and the tags of the training part.
struct Learned {
  WordModel model;
  Vocabulary labels;
  std::vector<LabelText> label_texts;
  std::uint64_t test_points = 0;

  [[nodiscard]] Dimensions dimensions() const {
    return {static_cast<std::uint32_t>(model.words.numbered().size()),
            static_cast<std::uint32_t>(labels.numbered().size())};
  }
};

bool is_for_test(const ConvertFlags& flags, std::uint64_t index) {
  return flags.text.test_share > 0 && is_test_point(flags.text.seed, index, flags.text.test_share);
}

Result<Learned> learn(const ConvertFlags& flags, const WordRule& rule, TextSource& source) {
  Learned learned;
  if (!flags.text.label_texts.empty()) {
    auto texts = read_label_texts(flags.text.label_texts, flags.text.language);
    if (!texts) return texts.error();
    learned.label_texts = std::move(*texts);
  }
  learned.model.fields = source.fields();
  learned.model.rule = rule;
  const auto count = [&](const TextRecord& record, std::uint64_t index) -> Result<void> {
    if (is_for_test(flags, index)) {
      ++learned.test_points;
      return {};
    }
    ++learned.model.points;
    for (const auto& [word, times] : counted_words(rule, record.text)) {
      learned.model.words.count(word);
    }
    const std::set<std::string> tags(record.tags.begin(), record.tags.end());
    for (const std::string& tag : tags) learned.labels.count(tag);
    return {};
  };
  Result<std::uint64_t> records = source.for_each("Counting words in", count);
  if (!records) return records.error();
  for (const LabelText& label : learned.label_texts) {
    label.is_retired ? learned.labels.forget(label.id) : learned.labels.keep(label.id);
    for (const std::string& text : label.texts) {
      for (const auto& [word, times] : counted_words(rule, text)) learned.model.words.keep(word);
    }
  }
  learned.model.words.number(flags.text.count_min);
  learned.labels.number(flags.text.tag_count_min);
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

// Writes the texts of labels, and what people call them.
Result<void> write_label_texts(const FolderPaths& paths, const Learned& learned,
                               AtomicFile::Existing existing) {
  std::uint64_t texts = 0;
  for (const LabelText& label : learned.label_texts) {
    texts += label.is_retired ? 0 : label.texts.size();
  }
  auto set = SetOutput::create(paths.texts, {}, texts, learned.dimensions());
  if (!set) return set.error();
  std::vector<std::string> titles(learned.labels.numbered().size(), "\t");
  for (const LabelText& label : learned.label_texts) {
    if (label.is_retired) continue;
    const std::uint32_t id = learned.labels.find(label.id)->id;
    titles[id] = label.name + "\t" + label.notation;
    for (const std::string& text : label.texts) {
      Point point = learned.model.point_of(text);
      point.labels = {id};
      if (auto added = (*set)->add(point); !added) return added;
    }
  }
  const Result<void> written = write_text(paths.titles, lines(titles), existing);
  return written ? (*set)->commit({}, existing) : written;
}

Error changed(const ConvertFlags& flags) {
  return {ErrorCode::kInvalidData,
          flags.source + ": changed while it was read; start again when it is complete"};
}

Result<void> write_folder(const ConvertFlags& flags, TextSource& source, const FolderPaths& paths,
                          const Learned& learned) {
  Result<std::unique_ptr<TextPart>> train =
      TextPart::create(paths.train, learned.model.points, learned.dimensions());
  if (!train) return train.error();
  std::unique_ptr<TextPart> test;
  if (flags.text.test_share > 0) {
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
  // Texts of an earlier set would begin the rows of this one.
  for (const std::string& path : {paths.texts, paths.titles}) std::remove(path.c_str());
  if (written && !learned.label_texts.empty()) written = write_label_texts(paths, learned, how);
  if (written && test) written = test->commit(how);
  if (written) written = (*train)->commit(how);
  if (!written) return written;
  std::vector<const TextPart*> parts = {train->get()};
  if (test) parts.push_back(test.get());
  return print_text_done(flags, source, learned.labels, learned.dimensions(), parts);
}

Result<void> make_folder(const ConvertFlags& flags) {
  if (flags.text.test_share != 0) {
    if (auto fits = check_test_share(flags.text.test_share); !fits) return fits;
  }
  const Result<WordRule> rule = parse_word_rule(flags.text.words);
  if (!rule) return rule.error();
  const FolderPaths paths = paths_in(flags.output);
  Result<void> guarded =
      guard_outputs({paths.train, paths.test, paths.features, paths.labels, paths.train_points,
                     paths.test_points, paths.words, paths.texts, paths.titles},
                    flags.force);
  if (!guarded) return guarded;
  Result<TextSource> source = TextSource::open(flags, flags.text.fields);
  if (!source) return source.error();
  Result<Learned> learned = learn(flags, *rule, *source);
  if (!learned) return learned.error();
  if (auto whole = source->check_labels(learned->labels.numbered()); !whole) return whole;
  if (learned->test_points == 0 && flags.text.test_share > 0) {
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
TextFields fields_for(const ConvertFlags& flags, const WordModel& model) {
  TextFields fields = flags.text.fields;
  if (fields.text.empty()) fields.text = model.fields.text;
  if (fields.tags.empty()) fields.tags = model.fields.tags;
  if (fields.name.empty()) fields.name = model.fields.name;
  if (fields.tag_separator.empty()) fields.tag_separator = model.fields.tag_separator;
  return fields;
}

Result<void> make_file(const ConvertFlags& flags) {
  Result<void> guarded = guard_outputs({flags.output, points_path_of(flags.output)}, flags.force);
  if (!guarded) return guarded;
  Result<WordModel> model = load_word_model(flags.text.vocabulary);
  if (!model) return model.error();
  if (const auto note = model->dictionary_note(flags.text.vocabulary); !note.empty()) {
    print_error("gleaner: " + note);
  }
  Result<Vocabulary> labels = load_numbered_names(paths_in(flags.text.vocabulary).labels);
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

Result<void> run_dataset_text(const ConvertFlags& flags) {
  return flags.text.vocabulary.empty() ? make_folder(flags) : make_file(flags);
}

}  // namespace gleaner
