// How --help of `gleaner` and of its verbs is laid out: text runs to 80 columns however the verb
// wrote it down; lines of examples and lists stay as they are.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}

namespace gleaner {

std::shared_ptr<CLI::FormatterBase> help_format();

}  // namespace gleaner
