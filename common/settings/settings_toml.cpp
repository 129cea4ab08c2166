#include <fmt/format.h>
#include <toml++/toml.h>

#include <filesystem>
#include <fstream>

#include "common/settings/settings.hpp"

namespace gleaner {
namespace {

// A configuration is a page or two; a longer file was probably given by mistake.
constexpr std::uintmax_t kTomlBytesMax = 1 << 20;

// A TOML value as the text that a setting reads, and its kind for errors.
struct TomlText {
  std::string described;
  std::string text;
  bool has_kind = false;  // the setting accepts its TOML type
};

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return fmt::format("\"{}{}\"", text.substr(0, kShown), text.size() > kShown ? "..." : "");
}

TomlText describe(const toml::node& node, const SettingValue& value) {
  const SettingKind kind = value.kind;
  TomlText result;
  if (const auto* text = node.as_string()) {
    result.text = text->get();
    result.described = in_quotes(result.text);
    result.has_kind = kind == SettingKind::kText || kind == SettingKind::kChoice ||
                      kind == SettingKind::kBytes || value.allows_word(result.text);
  } else if (const auto* integer = node.as_integer()) {
    result.text = result.described = std::to_string(integer->get());
    result.has_kind = kind == SettingKind::kInteger || kind == SettingKind::kNumber ||
                      kind == SettingKind::kBytes;
  } else if (const auto* number = node.as_floating_point()) {
    result.text = result.described = fmt::format("{}", number->get());
    result.has_kind = kind == SettingKind::kNumber;
  } else if (const auto* boolean = node.as_boolean()) {
    result.text = result.described = boolean->get() ? "true" : "false";
    result.has_kind = kind == SettingKind::kBoolean;
  } else {
    result.described = node.is_array()   ? "an array"
                       : node.is_table() ? "a table"
                                         : "a date or time";
  }
  return result;
}

class TomlReader {
 public:
  TomlReader(const Settings& settings, const std::string& file)
      : settings_(settings), file_(file) {}

  // Applies `table`, whose keys begin with `prefix`. Keeps the problem that is first in the file.
  void read(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string path =
          prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
      const toml::source_position where = key.source().begin;
      if (const Setting* setting = settings_.find_key(path)) {
        apply(*setting, node, where);
      } else if (is_section(path)) {
        if (const toml::table* inner = node.as_table()) {
          read(*inner, path);
        } else {
          complain(where,
                   fmt::format("`{}` is a section: write [{}] and its keys below", path, path));
        }
      } else {
        complain(where,
                 fmt::format("unknown {} `{}`.{}", node.is_table() ? "section" : "key", path,
                             node.is_table() ? section_hint(path) : settings_.key_hint(path)));
      }
    }
  }

  [[nodiscard]] Result<void> result() const {
    if (problem_.empty()) return {};
    return Error{ErrorCode::kInvalidArgument, problem_};
  }

 private:
  void apply(const Setting& setting, const toml::node& node, toml::source_position where) {
    TomlText value = describe(node, setting.value);
    if (setting.value.is_path() && !value.text.empty() && !setting.value.allows_word(value.text)) {
      value.text = (std::filesystem::path(file_).parent_path() / value.text).lexically_normal();
    }
    if (value.has_kind && setting.value.set(value.text)) return;
    complain(where, fmt::format("{} is {}: it must be {}", setting.key, value.described,
                                setting.expects()));
  }

  void complain(toml::source_position where, const std::string& sentence) {
    if (!problem_.empty() && !(where < first_)) return;
    first_ = where;
    problem_ = fmt::format("{}:{}: {}", file_, where.line, sentence);
  }

  [[nodiscard]] bool is_section(std::string_view path) const {
    for (const SettingSection& section : settings_.sections()) {
      if (section.name == path) return true;
    }
    return false;
  }

  [[nodiscard]] std::string section_hint(std::string_view path) const {
    std::string names;
    for (const SettingSection& section : settings_.sections()) {
      if (edit_distance(section.name, path) <= 2) {
        return fmt::format(" Did you mean [{}]?", section.name);
      }
      names += (names.empty() ? "" : ", ") + section.name;
    }
    return fmt::format(" The sections are {}.", names);
  }

  const Settings& settings_;
  const std::string& file_;
  std::string problem_;
  toml::source_position first_{};
};

}  // namespace

Result<void> read_toml(const Settings& settings, std::string_view text, const std::string& name) {
  toml::table table;
  // The library reports malformed text by an exception, which ends here.
  try {
    table = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}:{}: not valid TOML: {}", name, error.source().begin.line,
                             error.description())};
  }
  TomlReader reader(settings, name);
  reader.read(table, "");
  return reader.result();
}

Result<void> read_toml_file(const Settings& settings, const std::string& path) {
  const auto refuse = [&path](const std::string& why) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("cannot read the configuration {}: {}", path, why)};
  };
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  if (status.type() == std::filesystem::file_type::not_found)
    return refuse("there is no such file");
  if (status.type() == std::filesystem::file_type::directory) return refuse("it is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse("it cannot be opened (check its permissions)");
  std::string text;
  text.resize(kTomlBytesMax + 1);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return refuse("reading it failed");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kTomlBytesMax) return refuse("it is longer than 1 MiB");
  return read_toml(settings, text, path);
}

}  // namespace gleaner
