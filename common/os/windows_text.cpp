#include "common/os/windows_text.hpp"

#include <windows.h>

#include <array>
#include <cerrno>

namespace gleaner::os {

std::wstring wide(const std::string& utf8) {
  const int bytes = static_cast<int>(utf8.size());
  std::wstring text(
      static_cast<std::size_t>(MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, nullptr, 0)),
      L'\0');
  MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, text.data(), static_cast<int>(text.size()));
  return text;
}

std::string narrow(const std::wstring& utf16) {
  const int units = static_cast<int>(utf16.size());
  std::string text(static_cast<std::size_t>(WideCharToMultiByte(CP_UTF8, 0, utf16.data(), units,
                                                                nullptr, 0, nullptr, nullptr)),
                   '\0');
  WideCharToMultiByte(CP_UTF8, 0, utf16.data(), units, text.data(), static_cast<int>(text.size()),
                      nullptr, nullptr);
  return text;
}

int errno_of(unsigned long error) {
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_NETPATH:
      return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
    case ERROR_WRITE_PROTECT:
      return EACCES;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      return EEXIST;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
      return ENOMEM;
    default:
      return EIO;
  }
}

std::string error_words(unsigned long error) {
  std::array<wchar_t, 512> text{};
  const DWORD units =
      FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, error, 0,
                     text.data(), static_cast<DWORD>(text.size()), nullptr);
  std::string words = narrow(std::wstring(text.data(), units));
  while (!words.empty() && (words.back() == '\n' || words.back() == '\r' || words.back() == '.')) {
    words.pop_back();
  }
  return words.empty() ? "error " + std::to_string(error) : words;
}

std::wstring command_line(const std::vector<std::string>& command) {
  std::wstring line;
  for (const std::string& word : command) {
    line += line.empty() ? L"\"" : L" \"";
    std::size_t slashes = 0;
    for (const wchar_t unit : wide(word)) {
      if (unit == L'"') line.append(slashes + 1, L'\\');
      slashes = unit == L'\\' ? slashes + 1 : 0;
      line += unit;
    }
    line.append(slashes, L'\\');
    line += L'"';
  }
  return line;
}

}  // namespace gleaner::os
