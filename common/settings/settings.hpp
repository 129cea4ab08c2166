// One table of everything that can be configured in a program. TOML files, flags, --help,
// --print-config, the reference documentation and the values in a store use this table, so each key
// is described once. A table is bound to one configuration object, which outlives it and whose
// initial values are the defaults. One thread at a time.
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
  kMachine,  // place and manner of this process; may differ at every start
};

struct Setting {
  std::string section;
  std::string name;  // within its section
  std::string key;   // "model.hidden", as in a TOML file
  std::string flag;  // "--hidden"
  SettingScope scope = SettingScope::kMachine;
  std::string unit;  // of the value; may be empty
  std::string doc;   // one or several sentences
  SettingValue value;
  std::string default_text;
  bool is_for_experts = false;  // rarely set: only --help-all shows it

  // The accepted values with their unit: "an integer from 1 to 9 (neurons)".
  [[nodiscard]] std::string expects() const;
};

struct SettingSection {
  std::string name;
  std::string doc;
};

class Settings {
 public:
  // Sections and settings keep the order of these calls.
  void begin_section(std::string name, std::string doc);
  // Adds a setting to the section begun last. Its flag is `flag` (given without "--"), or else
  // `name` with dashes for underscores. Keys and flags must be unique.
  void add(std::string name, SettingScope scope, std::string unit, std::string doc,
           SettingValue value, std::string flag = {});
  // Call last: makes all settings except these keys settings for experts.
  void show(const std::vector<std::string_view>& keys);

  [[nodiscard]] const std::vector<Setting>& all() const { return settings_; }

  [[nodiscard]] const std::vector<SettingSection>& sections() const { return sections_; }

  // Nullptr when there is none.
  [[nodiscard]] const Setting* find_key(std::string_view key) const;
  [[nodiscard]] const Setting* find_flag(std::string_view flag) const;

  // " Did you mean `model.hidden`?", or empty when no key is close.
  [[nodiscard]] std::string key_hint(std::string_view key) const;
  [[nodiscard]] std::string flag_hint(std::string_view flag) const;

  // Key -> canonical text of all settings of kModel and kRun, for the store.
  [[nodiscard]] std::map<std::string, std::string> run_values() const;

 private:
  std::vector<SettingSection> sections_;
  std::vector<Setting> settings_;
};

// Sets every key of the TOML file. Errors name file, line and key; after an error the configuration
// may be partly changed.
Result<void> read_toml_file(const Settings& settings, const std::string& path);
// Reads text; errors call it `name`.
Result<void> read_toml(const Settings& settings, std::string_view text, const std::string& name);

// A commented TOML file with the present values, which reads back as the same configuration.
std::string print_toml(const Settings& settings, std::string_view title);
// The reference: one Markdown list per section, with values and defaults.
std::string print_reference(const Settings& settings);
// The flags for --help, wrapped at 80 columns; with flags for experts only if `all`.
std::string print_flags(const Settings& settings, bool all);

}  // namespace gleaner
