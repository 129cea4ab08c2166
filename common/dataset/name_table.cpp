#include "common/dataset/name_table.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "common/dataset/byte_source.hpp"
#include "common/dataset/line_reader.hpp"
#include "common/limits.hpp"

namespace gleaner {

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

}  // namespace gleaner
