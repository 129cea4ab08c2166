#include "common/settings/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/result.hpp"
#include "common/settings/settings_value.hpp"

namespace gleaner {
namespace {

std::string hint(std::string_view word) {
  return fmt::format(" Did you mean {}?", word);
}

}  // namespace

std::string Setting::expects() const {
  return unit.empty() ? value.expects() : fmt::format("{} ({})", value.expects(), unit);
}

void Settings::begin_section(std::string name, std::string doc) {
  sections_.push_back({std::move(name), std::move(doc)});
}

void Settings::add(std::string name, SettingScope scope, std::string unit, std::string doc,
                   SettingValue value, std::string flag) {
  GLEANER_CHECK(!sections_.empty());
  Setting setting;
  setting.section = sections_.back().name;
  setting.key = setting.section + "." + name;
  if (flag.empty()) {
    flag = name;
    std::replace(flag.begin(), flag.end(), '_', '-');
  }
  setting.flag = "--" + flag;
  GLEANER_CHECK(find_key(setting.key) == nullptr && find_flag(setting.flag) == nullptr);
  setting.name = std::move(name);
  setting.scope = scope;
  setting.unit = std::move(unit);
  setting.doc = std::move(doc);
  setting.value = std::move(value);
  setting.default_text = setting.value.get();
  settings_.push_back(std::move(setting));
}

void Settings::show(const std::vector<std::string_view>& keys) {
  for (const std::string_view key : keys) GLEANER_CHECK(find_key(key) != nullptr);
  for (Setting& setting : settings_) {
    setting.is_for_experts = std::ranges::find(keys, setting.key) == keys.end();
  }
}

const Setting* Settings::find_key(std::string_view key) const {
  for (const Setting& setting : settings_) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

const Setting* Settings::find_flag(std::string_view flag) const {
  for (const Setting& setting : settings_) {
    if (setting.flag == flag) return &setting;
  }
  return nullptr;
}

std::string Settings::key_hint(std::string_view key) const {
  // The right name in the wrong section, or in none, is the likeliest slip.
  const std::string_view name = key.substr(key.rfind('.') + 1);
  for (const Setting& setting : settings_) {
    if (setting.name == name) return hint("`" + setting.key + "`");
  }
  const Setting* closest = nullptr;
  std::size_t best = 0;
  for (const Setting& setting : settings_) {
    const std::size_t distance =
        std::min(edit_distance(setting.key, key), edit_distance(setting.name, name));
    if (closest == nullptr || distance < best) {
      closest = &setting;
      best = distance;
    }
  }
  if (closest == nullptr || !is_close(best, closest->name)) return {};
  return hint("`" + closest->key + "`");
}

std::string Settings::flag_hint(std::string_view flag) const {
  // A key in place of its flag: --model.hidden.
  for (const Setting& setting : settings_) {
    if (flag.size() > 2 && (flag.substr(2) == setting.key || flag.substr(2) == setting.name)) {
      return hint(setting.flag);
    }
  }
  const Setting* closest = nullptr;
  std::size_t best = 0;
  for (const Setting& setting : settings_) {
    const std::size_t distance = edit_distance(setting.flag, flag);
    if (closest == nullptr || distance < best) {
      closest = &setting;
      best = distance;
    }
  }
  if (closest == nullptr || !is_close(best, std::string_view(closest->flag).substr(2))) return {};
  return hint(closest->flag);
}

std::map<std::string, std::string> Settings::run_values() const {
  std::map<std::string, std::string> values;
  for (const Setting& setting : settings_) {
    if (setting.scope != SettingScope::kMachine) values[setting.key] = setting.value.get();
  }
  return values;
}

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kMarkdownColumns = 120;

// Greedy wrapping; a word that is wider than a line stands alone.
std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    if (word.empty()) continue;
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string toml_value(const Setting& setting) {
  std::string text = setting.value.get();
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

// " (seconds, default 20)" for --help, where the rest of what is known would be too much.
std::string default_note(const Setting& setting) {
  const bool has_default =
      setting.value.kind != SettingKind::kBoolean && !setting.default_text.empty();
  std::string note = setting.unit;
  if (has_default) note += (note.empty() ? "default " : ", default ") + setting.default_text;
  return note.empty() ? note : " (" + note + ")";
}

// The flag of a key that has no flag of another name.
std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

// "16 to 4096 units, all": what expects() says, where the default stands beside it.
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

std::string wrap_text(std::string_view text, std::size_t indent) {
  std::string result;
  for (const std::string& line : wrap(text, kColumns - indent)) {
    result += std::string(indent, ' ') + line + "\n";
  }
  return result;
}

std::string print_toml(const Settings& settings, std::string_view title) {
  std::string text = fmt::format("# {}\n", title);
  for (const SettingSection& section : settings.sections()) {
    text += fmt::format("\n[{}]\n", section.name);
    for (const std::string& line : wrap(section.doc, kColumns - 2)) text += "# " + line + "\n";
    for (const Setting& setting : settings.all()) {
      if (setting.section != section.name) continue;
      text += "\n";
      for (const std::string& line : wrap(setting.doc, kColumns - 2)) text += "# " + line + "\n";
      const std::string facts = fmt::format("Flag {}; {}; default {}.", setting.flag,
                                            setting.expects(), default_shown(setting));
      for (const std::string& line : wrap(facts, kColumns - 2)) text += "# " + line + "\n";
      text += fmt::format("{} = {}\n", setting.name, toml_value(setting));
    }
  }
  return text;
}

std::string print_reference(const Settings& settings) {
  std::string text;
  for (const SettingSection& section : settings.sections()) {
    if (!text.empty()) text += "\n";
    text += fmt::format("## [{}]\n\n{}\n\n", section.name, section.doc);
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
