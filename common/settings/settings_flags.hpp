// The start of a program: turns arguments, environment and file into a configuration, or into a
// text to print (--help, --version, --print-config and --print-reference).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/settings/settings.hpp"

namespace gleaner {

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

}  // namespace gleaner
