// Manual pages: text into the form that man(1) reads. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gleaner {

// `text` as it stands, whatever it is made of: nothing in it has a meaning to the formatter, and
// what a reader copies is what was written. Line ends stay.
std::string roff(std::string_view text);

// The page's beginning: nothing in it is hyphenated or justified, so that flags and examples stay
// whole. `program` is "gleaner 0.1.0".
std::string roff_title(std::string_view name, int section, std::string_view program);
// .SH and .SS.
std::string roff_section(std::string_view title);
std::string roff_subsection(std::string_view title);
// A paragraph that the reader's terminal fills.
std::string roff_paragraph(std::string_view text);
// Lines that stay as they are.
std::string roff_lines(std::string_view lines);
// A term in bold, and what it means, indented below it.
std::string roff_item(std::string_view term, std::string_view meaning);

}  // namespace gleaner
