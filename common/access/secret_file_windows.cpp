#include <windows.h>
//
#include <aclapi.h>
#include <fmt/format.h>
#include <io.h>
#include <sddl.h>

#include <array>
#include <cerrno>
#include <memory>

#include "common/access/secret_file.hpp"
#include "common/os/files.hpp"
#include "common/os/windows_text.hpp"

namespace gleaner {
namespace {

using os::wide;

struct Freed {
  void operator()(void* memory) const { LocalFree(memory); }
};

struct Closed {
  using pointer = HANDLE;

  void operator()(HANDLE handle) const { CloseHandle(handle); }
};

using Handle = std::unique_ptr<void, Closed>;

Error failed(const std::string& path, const char* what) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, os::error_words(GetLastError()))};
}

// The user of this process in the form S-1-5-...; empty when unknown.
std::wstring user_sid() {
  HANDLE opened = nullptr;
  if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &opened) == 0) return L"";
  const Handle token(opened);
  std::array<std::byte, 512> user{};
  DWORD bytes = 0;
  wchar_t* text = nullptr;
  if (GetTokenInformation(token.get(), TokenUser, user.data(), user.size(), &bytes) == 0 ||
      ConvertSidToStringSidW(reinterpret_cast<TOKEN_USER*>(user.data())->User.Sid, &text) == 0) {
    return L"";
  }
  const std::unique_ptr<void, Freed> freed(text);
  return text;
}

// Everybody, all logged-in users, all users of this machine, and guests.
bool is_of_many(PSID who) {
  for (const WELL_KNOWN_SID_TYPE many : {WinWorldSid, WinAuthenticatedUserSid, WinBuiltinUsersSid,
                                         WinBuiltinGuestsSid, WinAnonymousSid}) {
    if (IsWellKnownSid(who, many) != 0) return true;
  }
  return false;
}

// Whether groups of users may read the file.
bool is_open_to_many(HANDLE file) {
  constexpr DWORD kReading = FILE_READ_DATA | FILE_WRITE_DATA | GENERIC_READ | GENERIC_WRITE;
  ACL* rules = nullptr;
  PSECURITY_DESCRIPTOR facts = nullptr;
  if (GetSecurityInfo(file, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, nullptr, nullptr, &rules,
                      nullptr, &facts) != ERROR_SUCCESS) {
    return true;
  }
  const std::unique_ptr<void, Freed> freed(facts);
  if (rules == nullptr) return true;  // no list: everybody is allowed
  for (DWORD index = 0; index < rules->AceCount; ++index) {
    void* entry = nullptr;
    if (GetAce(rules, index, &entry) == 0) return true;
    auto* const allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    if (allowed->Header.AceType == ACCESS_ALLOWED_ACE_TYPE && (allowed->Mask & kReading) != 0 &&
        is_of_many(&allowed->SidStart)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<std::optional<std::string>> read_secret_file(const std::string& path, std::size_t bytes_max,
                                                    SecretFrom from) {
  const DWORD follow = from == SecretFrom::kMount ? 0 : FILE_FLAG_OPEN_REPARSE_POINT;
  const HANDLE opened = CreateFileW(wide(path).c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr,
                                    OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL | follow, nullptr);
  if (opened == INVALID_HANDLE_VALUE) {
    if (os::errno_of(GetLastError()) == ENOENT) return std::optional<std::string>();
    return failed(path, "cannot be read");
  }
  const Handle file(opened);
  BY_HANDLE_FILE_INFORMATION facts{};
  if (GetFileInformationByHandle(file.get(), &facts) == 0) return failed(path, "cannot be read");
  if ((facts.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) != 0) {
    return Error{ErrorCode::kIo, path + " is no ordinary file"};
  }
  if (is_open_to_many(file.get())) {
    return Error{ErrorCode::kIo,
                 fmt::format("{0} may be read or written by others, and who has it can act in your "
                             "name: if nobody has, `icacls \"{0}\" /inheritance:r /grant:r "
                             "%USERNAME%:F`; else delete it",
                             path)};
  }
  std::string text(bytes_max + 1, '\0');
  DWORD size = 0;
  if (ReadFile(file.get(), text.data(), static_cast<DWORD>(text.size()), &size, nullptr) == 0) {
    return failed(path, "cannot be read");
  }
  if (size > bytes_max) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is longer than {} bytes", path, bytes_max)};
  }
  text.resize(size);
  return std::optional(std::move(text));
}

Result<void> write_secret_file(const std::string& path, std::string_view text, SecretFile mode) {
  // Only this user and the system, without inherited entries.
  const std::wstring user = user_sid();
  if (user.empty()) return failed(path, "cannot be written");
  const std::wstring rules = L"D:P(A;;FA;;;" + user + L")(A;;FA;;;SY)";
  PSECURITY_DESCRIPTOR made = nullptr;
  if (ConvertStringSecurityDescriptorToSecurityDescriptorW(rules.c_str(), SDDL_REVISION_1, &made,
                                                           nullptr) == 0) {
    return failed(path, "cannot be written");
  }
  const std::unique_ptr<void, Freed> freed(made);
  SECURITY_ATTRIBUTES owner_only{sizeof(SECURITY_ATTRIBUTES), made, FALSE};
  const std::string beside = path + ".new";  // may be left by a killed process
  (void)os::delete_file(beside);
  {
    const HANDLE opened = CreateFileW(wide(beside).c_str(), GENERIC_WRITE, 0, &owner_only,
                                      CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
    if (opened == INVALID_HANDLE_VALUE) return failed(path, "cannot be written");
    const Handle file(opened);
    DWORD written = 0;
    if (WriteFile(file.get(), text.data(), static_cast<DWORD>(text.size()), &written, nullptr) ==
            0 ||
        written != text.size() || FlushFileBuffers(file.get()) == 0) {
      return failed(path, "cannot be written");
    }
  }
  if (mode == SecretFile::kReplaced) {
    if (!os::replace_file(beside, path)) return failed(path, "cannot be written");
    return {};
  }
  if (!os::move_to_free_name(beside, path)) {
    const bool is_there = errno == EEXIST;
    const Error failure = failed(path, "cannot be written");
    (void)os::delete_file(beside);
    if (!is_there) return failure;
  }
  return {};
}

}  // namespace gleaner
