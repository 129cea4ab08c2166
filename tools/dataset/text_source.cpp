#include "tools/dataset/text_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/data/text_encoding.hpp"
#include "tools/cli/console.hpp"
#include "tools/dataset/tag_forms.hpp"

namespace gleaner {
namespace {

// Texts with tags that the form of tags is recognised by.
constexpr std::uint64_t kTagTextsMax = 1000;
constexpr std::size_t kLabelShownBytes = 100;

Result<RecordOptions> options_of(const TextFlags& flags) {
  RecordOptions options;
  options.encoding = flags.encoding;
  if (!flags.quote.empty()) options.has_quotes = flags.quote == "double";
  if (flags.separator.empty()) return options;
  if (flags.separator == "tab" || flags.separator == "\\t") {
    options.separator = '\t';
  } else if (flags.separator.size() == 1 && flags.separator != "\"") {
    options.separator = flags.separator.front();
  } else {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--separator '{}' is not one character; as in --separator ';', or tab",
                             flags.separator)};
  }
  return options;
}

}  // namespace

Result<TextSource> TextSource::open(const ConvertFlags& flags, TextFields fields) {
  Result<RecordOptions> options = options_of(flags.text);
  if (!options) return options.error();
  Result<SpooledFile> file = SpooledFile::of(flags.source);
  if (!file) return file.error();
  TextSource source(std::move(*file), std::move(*options), std::move(fields));
  if (flags.text.form.empty()) {
    if (auto known = source.recognise_form(flags.source); !known) return known.error();
  } else {
    source.options_.form = flags.text.form == "csv"   ? RecordForm::kCsv
                           : flags.text.form == "tsv" ? RecordForm::kTsv
                                                      : RecordForm::kJson;
  }
  if (source.fields_.tag_separator.empty()) {
    if (auto known = source.recognise_tags(); !known) return known.error();
  }
  return source;
}

Result<std::unique_ptr<TextRecords>> TextSource::records() const {
  Result<std::unique_ptr<ByteSource>> bytes = file_.open();
  if (!bytes) return bytes.error();
  return TextRecords::open(std::move(*bytes), options_, fields_);
}

Result<void> TextSource::recognise_form(const std::string& path) {
  Result<std::unique_ptr<ByteSource>> bytes = file_.open();
  if (!bytes) return bytes.error();
  bytes = as_utf8(std::move(*bytes), options_.encoding);
  if (!bytes) return bytes.error();
  std::array<char, 256> begin;
  Result<std::size_t> count = (*bytes)->read(begin);
  if (!count) return count.error();
  options_.form = record_form(path, {begin.data(), *count});
  return {};
}

Result<void> TextSource::recognise_tags() {
  fields_.tag_separator = std::string(kTagComma);  // GCC 12 warns of a plain assignment
  Result<std::unique_ptr<TextRecords>> all = records();
  if (!all) return all.error();
  TagFormGuess guess;
  TextRecord record;
  while (guess.texts() < kTagTextsMax) {
    Result<bool> has_record = (*all)->next(record);
    if (!has_record) return has_record.error();
    if (!*has_record) break;
    guess.add(record.uncut_tags);
  }
  cuts_as_recognised_ = guess.texts() > 0;
  fields_.tag_separator = guess.form();
  if (fields_.tag_separator != kTagComma) {
    notes_.push_back(
        fmt::format("tags are read as --tag-separator '{}' reads them; give another if "
                    "that is wrong",
                    fields_.tag_separator));
  }
  return {};
}

Result<std::uint64_t> TextSource::for_each(
    const char* doing, const std::function<Result<void>(const TextRecord&, std::uint64_t)>& use) {
  Result<std::unique_ptr<TextRecords>> all = records();
  if (!all) return all.error();
  ProgressLine progress(doing);
  TextRecord record;
  for (std::uint64_t index = 0;; ++index) {
    Result<bool> has_record = (*all)->next(record);
    if (!has_record) return has_record.error();
    if (!*has_record) {
      const std::string warning = (*all)->warning();
      const bool is_new = std::ranges::find(notes_, warning) == notes_.end();
      if (!warning.empty() && is_new) notes_.push_back(warning);
      return index;
    }
    for (const std::string& tag : cut_tags(record.uncut_tags, fields_.tag_separator)) {
      record.add_tag(tag);
    }
    if (Result<void> used = use(record, index); !used) return used.error();
    const ByteSource& source = (*all)->source();
    if (index % 1024 == 0) progress.show(source.position(), source.total(), "bytes");
  }
}

Result<void> TextSource::check_labels(const std::vector<std::string>& labels) {
  if (!cuts_as_recognised_) return {};
  std::string form;
  std::string example;
  std::size_t count = 0;
  for (const std::string& label : labels) {
    const std::string inside = form_inside(label);
    if (inside.empty() || (!form.empty() && inside != form)) continue;
    if (count++ == 0) {
      form = inside;
      example = label;
    }
  }
  if (count == 0) return {};
  if (2 * count > labels.size()) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: {} of {} labels look like several tags, such as '{}', but tags "
                             "seemed to be cut by '{}': --tag-separator '{}' cuts these, "
                             "--tag-separator '{}' keeps them",
                             file_.name(), grouped(count), grouped(labels.size()),
                             example.substr(0, kLabelShownBytes), fields_.tag_separator, form,
                             fields_.tag_separator)};
  }
  notes_.push_back(
      fmt::format("{} of {} labels look like several tags, such as '{}'; if they are, "
                  "--tag-separator '{}' cuts them",
                  grouped(count), grouped(labels.size()), example, form));
  return {};
}

}  // namespace gleaner
