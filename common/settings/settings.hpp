// One table of everything that can be configured in a program. TOML files, flags, --help,
// --print-config, the reference documentation and the values in a store use this table, so each key
// is described once. A table is bound to one configuration object, which outlives it and whose
// initial values are the defaults. One thread at a time.
#pragma once

#include <cstddef>
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

// The start of a program: turns arguments, environment and file into a configuration, or into a
// text to print (--help, --version, --print-config and --print-reference).

// Texts about a program.
struct ProgramText {
  std::string name;            // "gleaner-master"
  std::string version;         // "0.1.0"
  std::string usage;           // the usage line after the name
  std::string summary;         // one or two sentences
  std::string examples;        // whole lines, indented by two
  std::string notes;           // whole lines after the exit codes; may be empty
  std::string positional_key;  // key set by the first free argument; may be empty
};

// If set, the program prints it and exits with success.
using TextToPrint = std::optional<std::string>;

// A value from the process's environment.
struct EnvironmentValue {
  std::string variable;  // "GLEANER_MASTER"
  std::string key;       // a key of the table
  std::string text;
};

// Applies the file named by --config, then `environment`, then the flags; later values win.
// `arguments` is argv without the program's name. Errors name the flag, or file and line, and the
// accepted values.
Result<TextToPrint> load_settings(const Settings& settings, const ProgramText& program,
                                  const std::vector<EnvironmentValue>& environment,
                                  const std::vector<std::string>& arguments);

// With `all`, includes flags for experts.
std::string print_help(const Settings& settings, const ProgramText& program, bool all);

// Text in lines of a width that a terminal or a file of Markdown shows whole. Pure functions.
inline constexpr std::size_t kTextColumns = 80;

// Greedy wrapping; a word wider than a line gets its own line.
inline std::vector<std::string> wrap(std::string_view text, std::size_t width) {
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

// `text` wrapped at 80 columns, every line indented by `indent`.
inline std::string wrap_text(std::string_view text, std::size_t indent) {
  std::string result;
  for (const std::string& line : wrap(text, kTextColumns - indent)) {
    result += std::string(indent, ' ') + line + "\n";
  }
  return result;
}

}  // namespace gleaner
