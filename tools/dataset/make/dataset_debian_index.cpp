#include "tools/dataset/make/dataset_debian_index.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>

#include "common/data/byte_source.hpp"
#include "common/data/point_parser.hpp"

namespace gleaner {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Calls `use` with every trimmed, non-empty piece between commas.
template <typename Use>
void for_each_item(std::string_view list, Use use) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view item = trim(list.substr(0, comma));
    if (!item.empty()) use(item);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

// "libc6:amd64 (>= 2.34) | libc6.1" -> "libc6".
std::string_view first_alternative(std::string_view relation) {
  return trim(relation).substr(0, trim(relation).find_first_of(" \t:(|[<"));
}

void set_field(DebianPackage& package, std::string_view field, std::string_view value) {
  if (field == "Package") {
    package.name = value;
  } else if (field == "Section") {
    package.section = value;
  } else if (field == "Maintainer") {
    package.maintainer = trim(value.substr(0, value.find('<')));
  } else if (field == "Tag") {
    for_each_item(value, [&](std::string_view tag) { package.tags.emplace_back(tag); });
  } else if (field == "Depends" || field == "Pre-Depends") {
    for_each_item(value, [&](std::string_view relation) {
      package.depends.emplace_back(first_alternative(relation));
    });
  } else if (field == "Provides") {
    for_each_item(value, [&](std::string_view relation) {
      package.provides.emplace_back(first_alternative(relation));
    });
  } else if (field == "Description" ||
             (field.starts_with("Description-") && field != "Description-md5")) {
    if (package.description.empty()) package.description = value;
  }
}

void sort_and_unique(std::vector<std::string>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

// Gathers lines into fields and fields into packages.
class StanzaReader {
 public:
  Result<void> add_line(std::string_view line, std::string_view file, std::uint64_t number) {
    if (line.empty()) {
      end_stanza();
      return {};
    }
    if (line[0] == ' ' || line[0] == '\t') {
      if (field_.empty()) {
        return Error{ErrorCode::kInvalidData,
                     fmt::format("{}:{}:1: expected a field as in 'Package: hello', found a "
                                 "continuation of none",
                                 file, number)};
      }
      value_ += ' ';
      value_ += trim(line);
      return {};
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) {
      return Error{ErrorCode::kInvalidData,
                   fmt::format("{}:{}:1: expected a field as in 'Package: hello', found {}; is "
                               "this the output of 'apt-cache dumpavail'?",
                               file, number, quote_found(line, 0))};
    }
    end_field();
    field_ = line.substr(0, colon);
    value_ = trim(line.substr(colon + 1));
    return {};
  }

  std::vector<DebianPackage> finish() {
    end_stanza();
    std::stable_sort(packages_.begin(), packages_.end(),
                     [](const auto& a, const auto& b) { return a.name < b.name; });
    const auto end = std::unique(packages_.begin(), packages_.end(),
                                 [](const auto& a, const auto& b) { return a.name == b.name; });
    packages_.erase(end, packages_.end());
    return std::move(packages_);
  }

 private:
  void end_field() {
    if (!field_.empty()) set_field(package_, field_, value_);
    field_.clear();
  }

  void end_stanza() {
    end_field();
    if (!package_.name.empty()) {
      sort_and_unique(package_.depends);
      sort_and_unique(package_.provides);
      packages_.push_back(std::move(package_));
    }
    package_ = {};
  }

  std::vector<DebianPackage> packages_;
  DebianPackage package_;
  std::string field_;
  std::string value_;
};

}  // namespace

Result<std::vector<DebianPackage>> read_debian_index(std::unique_ptr<ByteSource> source) {
  LineReader lines(std::move(source));
  StanzaReader stanzas;
  std::string_view line;
  for (;;) {
    Result<bool> has_line = lines.next(line);
    if (!has_line) return has_line.error();
    if (!*has_line) break;
    Result<void> added = stanzas.add_line(line, lines.source().name(), lines.line_number());
    if (!added) return added.error();
  }
  return stanzas.finish();
}

Result<std::string> dump_debian_index() {
  const std::string remedy =
      "; on Debian, run 'apt-get update' first; elsewhere, name a saved dump with --dump";
  // A fixed command: nothing of it comes from a user.
  std::FILE* pipe = ::popen("LC_ALL=C exec apt-cache dumpavail", "re");  // NOLINT
  if (pipe == nullptr) return Error{ErrorCode::kIo, "apt-cache cannot be started" + remedy};
  std::string text;
  std::vector<char> piece(std::size_t{1} << 20);
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), count);
  }
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{ErrorCode::kIo, "'apt-cache dumpavail' failed" + remedy};
  }
  return text;
}

}  // namespace gleaner
