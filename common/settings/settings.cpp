#include "common/settings/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/check.hpp"

namespace gleaner {
namespace {

// A word further away than a third of its length is another word.
bool is_close(std::size_t distance, std::string_view word) {
  return distance <= std::max<std::size_t>(1, word.size() / 3);
}

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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: rows of the table for a[0, i - 2), a[0, i - 1) and a[0, i).
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substituted, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace gleaner
