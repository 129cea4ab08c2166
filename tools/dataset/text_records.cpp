#include "tools/dataset/text_records.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/data/text_encoding.hpp"
#include "common/os/files.hpp"
#include "tools/cli/console.hpp"

namespace gleaner {

namespace {

constexpr std::size_t kBeginningBytesMax = 100;

// Text that fits a line of a file.
std::string one_line(std::string_view text) {
  std::string line(trimmed(text));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return line;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

std::vector<std::string> cut_at(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return parts;
}

void TextRecord::add_text(std::string_view more) {
  if (!text.empty()) text += ' ';
  text += more;
}

void TextRecord::add_tag(std::string_view tag) {
  std::string line = one_line(tag);
  if (!line.empty()) tags.push_back(std::move(line));
}

void TextRecord::set_name(std::string_view given) {
  name = one_line(given);
}

// Cuts between whole characters.
void TextRecord::end() {
  if (!name.empty()) return;
  name = one_line(std::string_view(text).substr(0, kBeginningBytesMax));
  if (text.size() <= kBeginningBytesMax) return;
  const auto is_inner = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t size = kBeginningBytesMax;
  while (size > 0 && is_inner(text[size])) --size;
  name = one_line(std::string_view(text).substr(0, size)) + " ...";
}

RecordForm record_form(std::string path, std::string_view begin) {
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (path.ends_with(ending)) path.resize(path.size() - ending.size());
  }
  const auto is_one_of = [&](std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings, [&](auto ending) { return path.ends_with(ending); });
  };
  if (is_one_of({".csv"})) return RecordForm::kCsv;
  if (is_one_of({".tsv", ".tab"})) return RecordForm::kTsv;
  if (is_one_of({".json", ".jsonl", ".ndjson"})) return RecordForm::kJson;
  const std::string_view first = trimmed(begin);
  return first.starts_with('{') || first.starts_with('[') ? RecordForm::kJson : RecordForm::kCsv;
}

Result<std::unique_ptr<TextRecords>> TextRecords::open(std::unique_ptr<ByteSource> source,
                                                       const RecordOptions& options,
                                                       const TextFields& fields) {
  Result<std::unique_ptr<ByteSource>> utf8 = as_utf8(std::move(source), options.encoding);
  if (!utf8) return utf8.error();
  if (options.form == RecordForm::kJson) return open_json_records(std::move(*utf8), fields);
  return open_csv_records(std::move(*utf8), options, fields);
}

namespace {

constexpr std::array<const char*, 3> kSeparators = {kTagComma, ";", "|"};

bool is_within(std::string_view text, char first, char last) {
  return text.size() >= 2 && text.front() == first && text.back() == last;
}

// Items in quotes of either kind, in which a backslash keeps what follows; other items end at a
// comma.
std::vector<std::string> items_of_python(std::string_view inside) {
  std::vector<std::string> tags(1);
  char quote = 0;
  for (std::size_t at = 0; at < inside.size(); ++at) {
    const char c = inside[at];
    if (quote != 0 && c == '\\' && at + 1 < inside.size()) {
      tags.back() += inside[++at];
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"') && trimmed(tags.back()).empty()) {
      tags.back().clear();
      quote = c;
    } else if (quote == 0 && c == ',') {
      tags.emplace_back();
    } else {
      tags.back() += c;
    }
  }
  return tags;
}

std::vector<std::string> items_of_list(std::string_view list) {
  const auto json = nlohmann::json::parse(list, nullptr, false);
  const auto is_nested = [](const auto& item) { return item.is_structured(); };
  if (!json.is_array() || std::ranges::any_of(json, is_nested)) {
    return items_of_python(list.substr(1, list.size() - 2));
  }
  std::vector<std::string> tags;
  for (const auto& item : json) {
    tags.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return tags;
}

}  // namespace

std::vector<std::string> cut_tags(std::string_view text, const std::string& separator) {
  text = trimmed(text);
  if (separator == kTagList) {
    return is_within(text, '[', ']') ? items_of_list(text) : cut_at(text, kTagComma);
  }
  if (separator == kTagBrackets) {
    return is_within(text, '<', '>') ? cut_at(text.substr(1, text.size() - 2), "><")
                                     : cut_at(text, kTagComma);
  }
  return cut_at(text, separator);
}

void TagFormGuess::add(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return;
  ++texts_;
  lists_ += is_within(text, '[', ']');
  brackets_ += is_within(text, '<', '>');
  for (std::size_t i = 0; i < kSeparators.size(); ++i) {
    has_separator_[i] = has_separator_[i] || text.find(kSeparators[i]) != std::string_view::npos;
  }
}

std::string TagFormGuess::form() const {
  if (texts_ > 0 && lists_ == texts_) return kTagList;
  if (texts_ > 0 && brackets_ == texts_) return kTagBrackets;
  const auto first = std::ranges::find(has_separator_, true);
  return first == has_separator_.end()
             ? kTagComma
             : kSeparators[static_cast<std::size_t>(first - has_separator_.begin())];
}

std::string form_inside(std::string_view label) {
  if (label.starts_with("['") || label.starts_with("[\"")) return kTagList;
  if (is_within(label, '<', '>')) return kTagBrackets;
  for (const char* separator : {";", "|"}) {
    if (label.find(separator) != std::string_view::npos) return separator;
  }
  return {};
}

namespace {

// The path of an open descriptor on Linux, whether or not its file has a name.
std::string path_of(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

Error failure(const std::string& name, const char* what) {
  return {ErrorCode::kIo,
          fmt::format("{}: {}: {}", name, what, std::generic_category().message(errno))};
}

// A file that no folder names; -1 with errno.
int open_nameless() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  std::string path = (folder / "gleaner-XXXXXX").string();
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(path.c_str());
  return fd;
}

Result<void> copy(ByteSource& from, int to) {
  std::array<char, std::size_t{1} << 16> bytes;
  for (std::uint64_t done = 0;; done = from.position()) {
    const Result<std::size_t> count = from.read(bytes);
    if (!count) return count.error();
    if (*count == 0) return {};
    if (!os::write_at(to, done, bytes.data(), *count)) {
      return failure(from.name(), "cannot be copied to a temporary file (TMPDIR says where)");
    }
  }
}

}  // namespace

Result<SpooledFile> SpooledFile::of(const std::string& path) {
  const bool is_standard_input = path == "-";
  SpooledFile file(is_standard_input ? "standard input" : path,
                   is_standard_input ? path_of(STDIN_FILENO) : path);

  struct stat status {};

  const bool is_stream = ::stat(file.path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
                         !S_ISDIR(status.st_mode);
  if (!is_stream) return file;
  const int from =
      is_standard_input ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return failure(file.name_, "cannot be opened");
  const std::unique_ptr<ByteSource> stream = open_stream_source(from, file.name_);
  file.copy_ = open_nameless();
  if (file.copy_ < 0) return failure(file.name_, "cannot be copied to a temporary file");
  if (auto copied = copy(*stream, file.copy_); !copied) return copied.error();
  file.path_ = path_of(file.copy_);
  return file;
}

SpooledFile::SpooledFile(SpooledFile&& other) noexcept
    : name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      copy_(std::exchange(other.copy_, -1)) {}

SpooledFile::~SpooledFile() {
  if (copy_ >= 0) ::close(copy_);
}

Result<std::unique_ptr<ByteSource>> SpooledFile::open() const {
  return open_file_source(path_, name_);
}

namespace {

// Texts with tags that the form of tags is recognised by.
constexpr std::uint64_t kTagTextsMax = 1000;

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

void TextSource::note_labels(const std::vector<std::string>& labels) {
  if (!cuts_as_recognised_) return;
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
  if (count == 0) return;
  notes_.push_back(
      fmt::format("{} of {} labels look like several tags, such as '{}'; if they are, "
                  "--tag-separator '{}' cuts them",
                  grouped(count), grouped(labels.size()), example, form));
}

}  // namespace gleaner
