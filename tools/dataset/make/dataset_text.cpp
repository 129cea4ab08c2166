#include "tools/dataset/make/dataset_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "common/dataset/point_writer.hpp"
#include "common/limits.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/files/dataset_output.hpp"
#include "tools/dataset/files/dataset_split.hpp"
#include "tools/dataset/make/dataset_folder.hpp"
#include "tools/dataset/make/text_records.hpp"

namespace gleaner {
namespace {

Result<std::unique_ptr<TextRecords>> open_records(const TextFlags& flags,
                                                  const TextFields& fields) {
  Result<std::unique_ptr<ByteSource>> source = open_file_source(flags.source);
  if (!source) return source.error();
  RecordForm form = record_form_of_name(flags.source);
  if (flags.form == "csv") form = RecordForm::kCsv;
  if (flags.form == "tsv") form = RecordForm::kTsv;
  if (flags.form == "jsonl") form = RecordForm::kJsonLines;
  return TextRecords::open(std::move(*source), form, fields);
}

// Calls `use(record, index)` for all of them.
template <typename Use>
Result<std::uint64_t> for_each_record(const TextFlags& flags, const TextFields& fields,
                                      const char* doing, Use use) {
  Result<std::unique_ptr<TextRecords>> records = open_records(flags, fields);
  if (!records) return records.error();
  ProgressLine progress(doing);
  TextRecord record;
  for (std::uint64_t index = 0;; ++index) {
    Result<bool> has_record = (*records)->next(record);
    if (!has_record) return has_record.error();
    if (!*has_record) return index;
    if (Result<void> used = use(record, index); !used) return used.error();
    const ByteSource& source = (*records)->source();
    if (index % 1024 == 0) progress.show(source.position(), source.total(), "bytes");
  }
}

constexpr const char* kVerb = "dataset convert";

Json text_json(Json files, Dimensions dimensions) {
  return {{"written", std::move(files)},
          {"form", form_name(SetForm::kXc)},
          {"features", dimensions.features},
          {"labels", dimensions.labels}};
}

// A part being written: points, and their names beside them.
class Part {
 public:
  static Result<std::unique_ptr<Part>> create(const std::string& path, std::uint64_t points,
                                              Dimensions dimensions) {
    Result<std::unique_ptr<TextOutput>> set = TextOutput::create(path);
    if (!set) return set.error();
    Result<std::unique_ptr<TextOutput>> names = TextOutput::create(points_path_of(path));
    if (!names) return names.error();
    Result<void> headed = (*set)->write(xc_header(points, dimensions));
    if (!headed) return headed.error();
    return std::unique_ptr<Part>(new Part(std::move(*set), std::move(*names)));
  }

  Result<void> add(const TextRecord& record, const WordModel& model, const Vocabulary& labels) {
    Point point = model.point_of(record.text);
    for (const std::string& tag : record.tags) {
      const auto* label = labels.find(tag);
      unknown_tags_ += label == nullptr;
      if (label != nullptr) point.labels.push_back(label->id);
    }
    std::sort(point.labels.begin(), point.labels.end());
    point.labels.erase(std::unique(point.labels.begin(), point.labels.end()), point.labels.end());
    without_labels_ += point.labels.empty();
    without_features_ += point.features.empty();
    ++points_;
    line_.clear();
    append_xc(line_, point);
    Result<void> written = set_->write(line_);
    return written ? names_->write(record.name + "\n") : written;
  }

  // The points last: whoever finds them finds the rest.
  Result<void> commit(AtomicFile::Existing existing) {
    Result<void> committed = names_->commit(existing);
    return committed ? set_->commit(existing) : committed;
  }

  [[nodiscard]] std::uint64_t points() const { return points_; }

  [[nodiscard]] Json json(const std::string& path) const {
    Json json = written_json(path, points_);
    json["without_labels"] = without_labels_;
    json["without_features"] = without_features_;
    json["unknown_tags"] = unknown_tags_;
    return json;
  }

  // A line of output.
  [[nodiscard]] std::string summary(const std::string& path) const {
    return fmt::format(
        "{}: {} examples, {} without a known tag, {} without a known word; {} tags "
        "are not labels\n",
        path, with_commas(points_), with_commas(without_labels_), with_commas(without_features_),
        with_commas(unknown_tags_));
  }

 private:
  Part(std::unique_ptr<TextOutput> set, std::unique_ptr<TextOutput> names)
      : set_(std::move(set)), names_(std::move(names)) {}

  std::unique_ptr<TextOutput> set_;
  std::unique_ptr<TextOutput> names_;
  std::string line_;
  std::uint64_t points_ = 0;
  std::uint64_t without_labels_ = 0;
  std::uint64_t without_features_ = 0;
  std::uint64_t unknown_tags_ = 0;
};

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

Result<Learned> learn(const TextFlags& flags) {
  Learned learned;
  learned.model.fields = flags.fields;
  const auto count = [&](const TextRecord& record, std::uint64_t index) -> Result<void> {
    if (is_for_test(flags, index)) {
      ++learned.test_points;
      return {};
    }
    ++learned.model.points;
    for (const auto& [word, times] : counted_words(record.text)) learned.model.words.count(word);
    const std::set<std::string> tags(record.tags.begin(), record.tags.end());
    for (const std::string& tag : tags) learned.labels.count(tag);
    return {};
  };
  Result<std::uint64_t> records = for_each_record(flags, flags.fields, "Counting words in", count);
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

Result<void> write_folder(const TextFlags& flags, const FolderPaths& paths,
                          const Learned& learned) {
  Result<std::unique_ptr<Part>> train =
      Part::create(paths.train, learned.model.points, learned.dimensions());
  if (!train) return train.error();
  std::unique_ptr<Part> test;
  if (flags.test_share > 0) {
    auto created = Part::create(paths.test, learned.test_points, learned.dimensions());
    if (!created) return created.error();
    test = std::move(*created);
  }
  const auto write = [&](const TextRecord& record, std::uint64_t index) {
    return (is_for_test(flags, index) ? *test : **train).add(record, learned.model, learned.labels);
  };
  Result<std::uint64_t> records =
      for_each_record(flags, flags.fields, "Writing examples of", write);
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
  const Dimensions found = learned.dimensions();
  Json files = Json::array({(*train)->json(paths.train)});
  if (test) files.push_back(test->json(paths.test));
  return print_done(flags.json, kVerb, flags.source, text_json(std::move(files), found),
                    (*train)->summary(paths.train) + (test ? test->summary(paths.test) : "") +
                        fmt::format("{} features, {} labels\n", with_commas(found.features),
                                    with_commas(found.labels)));
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
  Result<Learned> learned = learn(flags);
  if (!learned) return learned.error();
  if (learned->test_points == 0 && flags.test_share > 0) {
    return Error{
        ErrorCode::kInvalidData,
        fmt::format("{}: none of its {} examples is for testing; choose another --share or "
                    "--seed",
                    flags.source, learned->model.points)};
  }
  std::error_code error;
  std::filesystem::create_directories(flags.output, error);
  return write_folder(flags, paths, *learned);
}

// A field that no flag names is as it was for the training part.
TextFields fields_for(const TextFlags& flags, const WordModel& model) {
  TextFields fields = flags.fields;
  if (fields.text.empty()) fields.text = model.fields.text;
  if (fields.tags.empty()) fields.tags = model.fields.tags;
  if (fields.name.empty()) fields.name = model.fields.name;
  if (!flags.has_separator) fields.tag_separator = model.fields.tag_separator;
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
  const auto ignore = [](const TextRecord&, std::uint64_t) { return Result<void>(); };
  Result<std::uint64_t> points = for_each_record(flags, fields, "Counting", ignore);
  if (!points) return points.error();
  if (*points == 0) {
    return Error{ErrorCode::kInvalidData, flags.source + ": expected texts, found none"};
  }
  const Dimensions dimensions{static_cast<std::uint32_t>(model->words.numbered().size()),
                              static_cast<std::uint32_t>(labels->numbered().size())};
  Result<std::unique_ptr<Part>> part = Part::create(flags.output, *points, dimensions);
  if (!part) return part.error();
  const auto write = [&](const TextRecord& record, std::uint64_t) {
    return (*part)->add(record, *model, *labels);
  };
  Result<std::uint64_t> written = for_each_record(flags, fields, "Writing examples of", write);
  if (!written) return written.error();
  if (*written != *points) return changed(flags);
  Result<void> committed = (*part)->commit(existing(flags.force));
  if (!committed) return committed;
  return print_done(flags.json, kVerb, flags.source,
                    text_json(Json::array({(*part)->json(flags.output)}), dimensions),
                    (*part)->summary(flags.output));
}

}  // namespace

Result<void> run_dataset_text(const TextFlags& flags) {
  return flags.vocabulary.empty() ? make_folder(flags) : make_file(flags);
}

}  // namespace gleaner
