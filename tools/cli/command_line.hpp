// Help and completions, made of the command line's own definitions.
#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace gleaner {

// How --help of `gleaner` and of its verbs is laid out: text runs to 80 columns however the verb
// wrote it down; lines of examples and lists stay as they are. For an app before its verbs are
// added, which inherit it.
std::shared_ptr<CLI::FormatterBase> help_format();

// The script for "bash", "zsh" or "fish"; zsh reads bash's through bashcompinit.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace gleaner
