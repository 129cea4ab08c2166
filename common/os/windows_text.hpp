// Converts texts and errors of Windows, which uses UTF-16 and its own error numbers. Only for
// sources of Windows.
#pragma once

#include <string>
#include <vector>

namespace gleaner::os {

std::wstring wide(const std::string& utf8);
std::string narrow(const std::wstring& utf16);

// The errno that corresponds to a result of GetLastError().
int errno_of(unsigned long error);
// The system's sentence for the error, without an end of line.
std::string error_words(unsigned long error);

// Joins a command into one text that programs split again: quotes words, and escapes quotes and
// backslashes before them.
std::wstring command_line(const std::vector<std::string>& command);

}  // namespace gleaner::os
