#include "common/data/name_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "common/data/byte_source.hpp"
#include "common/data/packed_format.hpp"
#include "common/limits.hpp"

namespace gleaner {
namespace {

constexpr const char* kFiles[] = {kFeatureNamesFile, kLabelNamesFile, kWordModelFile};

std::string key_of(const std::string& file) {
  return "names." + file;
}

// Nullopt if the file does not exist.
std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string digest_of(const std::string& content) {
  return fmt::format("{:016x}", checksum(content.data(), content.size()));
}

}  // namespace

Result<NameTable> NameTable::load(const std::string& path) {
  Result<std::unique_ptr<ByteSource>> source = open_file_source(path);
  if (!source) return source.error();
  LineReader lines(std::move(*source));
  NameTable table;
  std::string_view line;
  for (;;) {
    Result<bool> has_line = lines.next(line);
    if (!has_line) return has_line.error();
    if (!*has_line) return table;
    if (table.size() == kFeaturesMax) {
      return Error{ErrorCode::kInvalidData, fmt::format("{}:{}:1: expected at most {} names", path,
                                                        lines.line_number(), kFeaturesMax)};
    }
    table.add(line);
  }
}

NameTable NameTable::of_lines(std::string_view text) {
  NameTable table;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    table.add(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return table;
}

std::string NameTable::lines() const {
  std::string text;
  for (std::uint32_t id = 0; id < size(); ++id) text.append(name(id)).append("\n");
  return text;
}

void NameTable::add(std::string_view name) {
  text_ += name;
  ends_.push_back(text_.size());
}

std::string_view NameTable::name(std::uint64_t id) const {
  if (id >= ends_.size()) return {};
  const std::size_t begin = id == 0 ? 0 : ends_[id - 1];
  return std::string_view(text_).substr(begin, ends_[id] - begin);
}

std::string NameTable::name_or(std::string_view kind, std::uint64_t id) const {
  const std::string_view found = name(id);
  return found.empty() ? fmt::format("{} {}", kind, id) : std::string(found);
}

std::string companion_path(const std::string& dataset_path, std::string_view file_name) {
  const auto path = std::filesystem::path(dataset_path).parent_path() / file_name;
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? path.string() : std::string();
}

std::map<std::string, std::string> name_file_settings(const std::string& data,
                                                      const Dimensions& dimensions) {
  std::map<std::string, std::string> settings;
  const auto folder = std::filesystem::path(data).parent_path();
  for (const std::string file : kFiles) {
    const std::string path = (folder / file).string();
    const std::optional<std::string> content = content_of(path);
    if (!content) continue;
    if (file != kWordModelFile) {
      const auto names = NameTable::load(path);
      const bool is_of_features = file == kFeatureNamesFile;
      const std::uint32_t ids = is_of_features ? dimensions.features : dimensions.labels;
      if (!names || names->size() != ids) continue;
    }
    settings[key_of(file)] = digest_of(*content);
  }
  return settings;
}

Result<void> check_name_file(const std::map<std::string, std::string>& settings,
                             const std::string& path, const std::string& file) {
  const auto known = settings.find(key_of(file));
  const std::optional<std::string> content =
      known == settings.end() ? std::nullopt : content_of(path);
  if (!content || digest_of(*content) == known->second) return {};
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} is not the {} with which the model was trained (its digest is {} "
                           "instead of {}): give the folder of the model's own data set",
                           path, file, digest_of(*content), known->second)};
}

Result<void> check_name_files(const std::map<std::string, std::string>& settings,
                              const std::string& folder) {
  for (const char* const file : kFiles) {
    auto same = check_name_file(settings, (std::filesystem::path(folder) / file).string(), file);
    if (!same) return same;
  }
  return {};
}

}  // namespace gleaner
