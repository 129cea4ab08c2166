// Prints a table of settings: as a configuration file, as the reference, as the flags of --help.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "common/settings/settings.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kMarkdownColumns = 120;

std::string toml_value(const Setting& setting) {
  std::string text = setting.value.get();
  if (setting.value.is_path() && !text.empty() && !setting.value.allows_word(text)) {
    std::error_code error;  // the text may become a file elsewhere
    text = std::filesystem::absolute(text, error).lexically_normal().string();
  }
  const bool is_bare = setting.value.kind == SettingKind::kInteger ||
                       setting.value.kind == SettingKind::kNumber ||
                       setting.value.kind == SettingKind::kBoolean;
  if (is_bare && !setting.value.allows_word(text)) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string default_shown(const Setting& setting) {
  return setting.default_text.empty() ? "empty" : setting.default_text;
}

// The flag's value as one word for --help.
std::string placeholder(const Setting& setting) {
  switch (setting.value.kind) {
    case SettingKind::kInteger:
      return " N";
    case SettingKind::kNumber:
      return " X";
    case SettingKind::kBoolean:
      return "";
    case SettingKind::kBytes:
      return " SIZE";
    case SettingKind::kChoice:
      return " WORD";
    case SettingKind::kText:
      break;
  }
  return setting.value.noun.find(' ') == std::string::npos ? " " + setting.value.noun : " TEXT";
}

std::string flag_shown(const Setting& setting) {
  const bool is_on = setting.value.kind == SettingKind::kBoolean && setting.default_text == "true";
  return is_on ? "--[no-]" + setting.flag.substr(2) : setting.flag + placeholder(setting);
}

// " (seconds, default 20)" for --help, which shows no more facts.
std::string default_note(const Setting& setting) {
  const bool has_default =
      setting.value.kind != SettingKind::kBoolean && !setting.default_text.empty();
  std::string note = setting.unit;
  if (has_default) note += (note.empty() ? "default " : ", default ") + setting.default_text;
  return note.empty() ? note : " (" + note + ")";
}

// The flag of a key without a flag of another name.
std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

// "16 to 4096 units, all": the text of expects() beside a default.
std::string values_shown(const Setting& setting) {
  const SettingValue& value = setting.value;
  if (value.kind == SettingKind::kBoolean) return {};
  const bool is_counted = value.kind != SettingKind::kText && !value.range.empty();
  std::string text = is_counted ? value.range : value.noun;
  if (text.starts_with("from ")) text.erase(0, 5);
  if (!is_counted && !value.range.empty()) text += " " + value.range;
  if (!setting.unit.empty()) text += " " + setting.unit;
  for (const std::string& word : value.words) {
    if (word != setting.default_text) text += ", " + word;
  }
  return text;
}

}  // namespace

std::string print_toml(const Settings& settings, std::string_view title) {
  std::string text = fmt::format("# {}\n", title);
  for (const SettingSection& section : settings.sections()) {
    text += fmt::format("\n[{}]\n", section.name);
    for (const std::string& line : wrap(section.doc, kTextColumns - 2)) text += "# " + line + "\n";
    for (const Setting& setting : settings.all()) {
      if (setting.section != section.name) continue;
      text += "\n";
      for (const std::string& line : wrap(setting.doc, kTextColumns - 2))
        text += "# " + line + "\n";
      const std::string facts = fmt::format("Flag {}; {}; default {}.", setting.flag,
                                            setting.expects(), default_shown(setting));
      for (const std::string& line : wrap(facts, kTextColumns - 2)) text += "# " + line + "\n";
      text += fmt::format("{} = {}\n", setting.name, toml_value(setting));
    }
  }
  return text;
}

std::string print_reference(const Settings& settings) {
  std::string text;
  for (const SettingSection& section : settings.sections()) {
    if (!text.empty()) text += "\n";
    text += fmt::format("## [{}]\n\n{}\n\n", section.name,
                        fmt::join(wrap(section.doc, kMarkdownColumns), "\n"));
    for (const Setting& setting : settings.all()) {
      if (setting.section != section.name) continue;
      std::string item = "`" + setting.key + "`";
      if (setting.flag != dashed(setting.name)) item += " `" + setting.flag + "`";
      std::string value = values_shown(setting);
      if (!setting.default_text.empty()) {
        value += (value.empty() ? "" : "; ") + setting.default_text;
      }
      item += fmt::format(" ({}): {}", value, setting.doc);
      std::string indent = "- ";
      for (const std::string& line : wrap(item, kMarkdownColumns - indent.size())) {
        text += std::exchange(indent, "  ") + line + "\n";
      }
    }
  }
  return text;
}

std::string print_flags(const Settings& settings, bool all) {
  constexpr std::size_t kIndent = 30;
  std::string text;
  for (const SettingSection& section : settings.sections()) {
    std::string heading = fmt::format("\n{}:\n", section.name);
    for (const Setting& setting : settings.all()) {
      if (setting.section != section.name || (setting.is_for_experts && !all)) continue;
      text += std::exchange(heading, {});
      std::string doc = setting.doc;
      if (setting.value.kind == SettingKind::kChoice) {
        doc += fmt::format(" One of {}.", setting.value.range);
      }
      doc += default_note(setting);
      std::string line = "  " + flag_shown(setting);
      const std::string wrapped = wrap_text(doc, kIndent);
      if (line.size() + 2 > kIndent) {
        text += line;
        text += "\n";
        text += wrapped;
      } else {
        line.resize(kIndent, ' ');
        text += line + wrapped.substr(kIndent);
      }
    }
  }
  return text;
}

}  // namespace gleaner
