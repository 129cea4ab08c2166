// The start of a program: from arguments, environment and file to a configuration, or to a text
// that was asked for instead (--help, --version, --print-config and --print-reference).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/settings/settings.hpp"

namespace gleaner {

// A program's account of itself.
struct ProgramText {
  std::string name;            // "gleaner-master"
  std::string version;         // "0.1.0"
  std::string usage;           // what follows the name in the usage line
  std::string summary;         // a sentence or two
  std::string examples;        // whole lines, indented by two
  std::string notes;           // whole lines after the exit codes; may be empty
  std::string positional_key;  // the key that the first free argument sets; may be empty
};

// Present when the program is to print it and exit with success.
using TextToPrint = std::optional<std::string>;

// A value from the process's environment.
struct EnvironmentValue {
  std::string variable;  // "GLEANER_MASTER"
  std::string key;       // must be one of the table's
  std::string text;
};

// Sets what the file named by --config, then `environment`, then the flags say; a later one wins.
// `arguments` is argv without the program's name. Errors name the flag, or the file
// and line, and what would do.
Result<TextToPrint> load_settings(const Settings& settings, const ProgramText& program,
                                  const std::vector<EnvironmentValue>& environment,
                                  const std::vector<std::string>& arguments);

// `all`: with the flags for experts.
std::string print_help(const Settings& settings, const ProgramText& program, bool all);

}  // namespace gleaner
