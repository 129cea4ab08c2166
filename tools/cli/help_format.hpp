// How --help of `gleaner` and of its verbs is laid out: text runs to 80 columns however the verb
// wrote it down; lines of examples and lists stay as they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace gleaner {

// Part of a verb's footer between empty lines.
struct FooterPart {
  std::string text;
  // Lines that stand for themselves: all of a part that has indented ones.
  bool has_lines = false;
};

std::vector<FooterPart> footer_parts(const CLI::App& app);

// For an app before its verbs are added, which inherit it.
std::shared_ptr<CLI::FormatterBase> help_format();

}  // namespace gleaner
