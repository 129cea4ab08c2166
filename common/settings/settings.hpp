// One table of everything that can be configured in a program. From it come the reading of a TOML
// file, the flags, --help, --print-config, the reference documentation and what a store remembers:
// a key is described once. A table is bound to one configuration object, which outlives it and
// holds its defaults when the table is made. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/settings/settings_value.hpp"

namespace gleaner {

enum class SettingScope : std::uint8_t {
  kModel,    // the trained model depends on it
  kRun,      // belongs to the run, but no trained number depends on it
  kMachine,  // where and how this process works; may differ every time
};

struct Setting {
  std::string section;
  std::string name;  // within its section
  std::string key;   // "model.hidden", as in a TOML file
  std::string flag;  // "--hidden"
  SettingScope scope = SettingScope::kMachine;
  std::string unit;  // of the value; empty when it has none
  std::string doc;   // one sentence or a few
  SettingValue value;
  std::string default_text;
  bool is_for_experts = false;  // few people ever set it: --help leaves it out, --help-all does not

  // Says which values may stand in its place, with the unit: "an integer from 1 to 9 (neurons)".
  [[nodiscard]] std::string expects() const;
};

struct SettingSection {
  std::string name;
  std::string doc;
};

class Settings {
 public:
  // Sections appear in the order in which they are begun, settings in that in which they are added.
  void begin_section(std::string name, std::string doc);
  // Adds a setting to the last section begun. The flag is the name with dashes, or `flag` (without
  // leading dashes) where the name alone would not do. Keys and flags must be unique.
  void add(std::string name, SettingScope scope, std::string unit, std::string doc,
           SettingValue value, std::string flag = {});
  // To be called last: all settings but these keys are for experts.
  void show(const std::vector<std::string_view>& keys);

  [[nodiscard]] const std::vector<Setting>& all() const { return settings_; }

  [[nodiscard]] const std::vector<SettingSection>& sections() const { return sections_; }

  // nullptr when there is none.
  [[nodiscard]] const Setting* find_key(std::string_view key) const;
  [[nodiscard]] const Setting* find_flag(std::string_view flag) const;

  // " Did you mean `model.hidden`?", or empty when nothing is close.
  [[nodiscard]] std::string key_hint(std::string_view key) const;
  [[nodiscard]] std::string flag_hint(std::string_view flag) const;

  // Key -> canonical text of all settings of kModel and kRun: what a store remembers.
  [[nodiscard]] std::map<std::string, std::string> run_values() const;

 private:
  std::vector<SettingSection> sections_;
  std::vector<Setting> settings_;
};

// Sets every key that the TOML file gives. Errors name the file, the line and the key; after one,
// the bound configuration may be half changed.
Result<void> read_toml_file(const Settings& settings, const std::string& path);
// Reads text; `name` stands for the file in errors.
Result<void> read_toml(const Settings& settings, std::string_view text, const std::string& name);

// A commented TOML file with the present values; reading it gives the same configuration.
std::string print_toml(const Settings& settings, std::string_view title);
// The reference: one Markdown list a section, with values and defaults.
std::string print_reference(const Settings& settings);
// The flags, for --help, wrapped at 80 columns; without those for experts unless `all`.
std::string print_flags(const Settings& settings, bool all);

}  // namespace gleaner
