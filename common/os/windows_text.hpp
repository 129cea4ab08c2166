// Texts and errors of Windows, which has them in UTF-16 and in numbers of its own. For sources of
// Windows alone.
#pragma once

#include <string>
#include <vector>

namespace gleaner::os {

std::wstring wide(const std::string& utf8);
std::string narrow(const std::wstring& utf16);

// The value of errno that fits what GetLastError() returned.
int errno_of(unsigned long error);
// The system's sentence for it, without an end of line.
std::string error_words(unsigned long error);

// A command in one text, as programs take it apart again: words are quoted, and so are quotes and
// backslashes before them.
std::wstring command_line(const std::vector<std::string>& command);

}  // namespace gleaner::os
