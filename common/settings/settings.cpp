#include "common/settings/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
  // The most likely slip is the right name in the wrong section, or in none.
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
  // Somebody wrote a key as a flag: --model.hidden.
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

}  // namespace gleaner
