// Help, completions and the manual page, made of the command line's own definitions.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace gleaner {

// How --help of `gleaner` and of its verbs is laid out: text runs to 80 columns however the verb
// wrote it down; lines of examples and lists stay as they are.

// Part of a verb's footer between empty lines.
struct FooterPart {
  std::string text;
  // Lines that stand for themselves: all of a part that has indented ones.
  bool has_lines = false;
};

std::vector<FooterPart> footer_parts(const CLI::App& app);

// For an app before its verbs are added, which inherit it.
std::shared_ptr<CLI::FormatterBase> help_format();

// ---- `gleaner completion`

// The script for "bash", "zsh" or "fish"; zsh reads bash's through bashcompinit.
std::string completion_script(const CLI::App& app, const std::string& shell);

// Adds the sub-command `completion` to `app`; see add_history_command.
void add_completion_command(CLI::App& app, int& exit_status);

// ---- `gleaner man`

// Adds the sub-command `man` to `app`, whose verbs and flags it describes; see add_history_command.
void add_man_command(CLI::App& app, int& exit_status);

// The page for man(1): every verb with its description, examples and flags.
std::string manual_page(const CLI::App& app);

}  // namespace gleaner
