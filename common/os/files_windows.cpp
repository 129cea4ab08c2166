#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>

#include "common/os/files.hpp"
#include "common/os/windows_text.hpp"

namespace gleaner::os {
namespace {

constexpr DWORD kShareAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

HANDLE handle_of(int file) {
  return reinterpret_cast<HANDLE>(_get_osfhandle(file));
}

// Sets errno from the system's last error. Always false.
bool fail() {
  errno = errno_of(GetLastError());
  return false;
}

int open_file(const std::string& path, DWORD share, DWORD disposition, DWORD flags) {
  const HANDLE handle = CreateFileW(wide(path).c_str(), GENERIC_READ | GENERIC_WRITE | DELETE,
                                    share, nullptr, disposition, flags, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    fail();
    return -1;
  }
  return _open_osfhandle(reinterpret_cast<std::intptr_t>(handle), _O_BINARY | _O_NOINHERIT);
}

// A piece of a transfer at a place in the file.
OVERLAPPED place(std::uint64_t offset) {
  OVERLAPPED at{};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return at;
}

DWORD piece(std::size_t count) {
  return static_cast<DWORD>(std::min(count, std::size_t{1} << 30));
}

}  // namespace

int make_unnamed_file(const std::string& /*folder*/, bool& is_impossible) {
  is_impossible = true;
  errno = ENOTSUP;
  return -1;
}

int make_file(const std::string& path) {
  return open_file(path, kShareAll, CREATE_NEW, FILE_ATTRIBUTE_NORMAL);
}

bool name_file(int /*file*/, const std::string& /*path*/) {
  errno = ENOTSUP;
  return false;
}

int make_memory_file() {
  // The system keeps the content in memory if possible, and deletes the file with its last handle.
  static std::atomic<unsigned> next{0};
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return -1;
  const std::string name =
      "gleaner-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(next++) + ".tmp";
  return open_file((folder / name).string(), FILE_SHARE_DELETE, CREATE_ALWAYS,
                   FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE);
}

void close_file(int file) {
  _close(file);
}

bool read_at(int file, std::uint64_t offset, void* bytes, std::size_t count) {
  char* target = static_cast<char*>(bytes);
  while (count > 0) {
    OVERLAPPED at = place(offset);
    DWORD got = 0;
    if (ReadFile(handle_of(file), target, piece(count), &got, &at) == 0) return fail();
    if (got == 0) {
      errno = EIO;
      return false;
    }
    target += got;
    count -= got;
    offset += got;
  }
  return true;
}

bool write_at(int file, std::uint64_t offset, const void* bytes, std::size_t count) {
  const char* source = static_cast<const char*>(bytes);
  while (count > 0) {
    OVERLAPPED at = place(offset);
    DWORD written = 0;
    if (WriteFile(handle_of(file), source, piece(count), &written, &at) == 0) return fail();
    source += written;
    count -= written;
    offset += written;
  }
  return true;
}

bool cut_off(int file, std::uint64_t bytes) {
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(bytes);
  return SetFileInformationByHandle(handle_of(file), FileEndOfFileInfo, &end, sizeof end) != 0 ||
         fail();
}

bool sync_file(int file) {
  return FlushFileBuffers(handle_of(file)) != 0 || fail();
}

// replace_file() and move_to_free_name() write names through.
void sync_folder(const std::string& /*folder*/) {}

std::optional<std::uint64_t> file_bytes(int file) {
  LARGE_INTEGER bytes{};
  if (GetFileType(handle_of(file)) != FILE_TYPE_DISK) return std::nullopt;
  if (GetFileSizeEx(handle_of(file), &bytes) == 0) return std::nullopt;
  return static_cast<std::uint64_t>(bytes.QuadPart);
}

void touch(int file) {
  FILETIME now{};
  GetSystemTimeAsFileTime(&now);
  (void)SetFileTime(handle_of(file), nullptr, &now, &now);
}

bool replace_file(const std::string& source, const std::string& target) {
  return MoveFileExW(wide(source).c_str(), wide(target).c_str(),
                     MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0 ||
         fail();
}

bool move_to_free_name(const std::string& source, const std::string& target) {
  return MoveFileExW(wide(source).c_str(), wide(target).c_str(), MOVEFILE_WRITE_THROUGH) != 0 ||
         fail();
}

bool delete_file(const std::string& path) {
  return DeleteFileW(wide(path).c_str()) != 0 || fail();
}

int open_locked(const std::string& path, bool makes) {
  // No other process may open the file except to delete it.
  const int file = open_file(path, FILE_SHARE_DELETE, makes ? OPEN_ALWAYS : OPEN_EXISTING,
                             FILE_ATTRIBUTE_NORMAL);
  if (file < 0 || file_bytes(file)) return file;
  _close(file);
  return -1;
}

std::uint64_t file_bytes_max() {
  return ~std::uint64_t{0};
}

void survive_large_files() {}

std::optional<FileView> map_file(const std::string& path) {
  const HANDLE file = CreateFileW(wide(path).c_str(), GENERIC_READ, kShareAll, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) {
    fail();
    return std::nullopt;
  }
  FileView view;
  LARGE_INTEGER bytes{};
  if (GetFileType(file) == FILE_TYPE_DISK && GetFileSizeEx(file, &bytes) != 0) {
    view.bytes = static_cast<std::size_t>(bytes.QuadPart);
  }
  if (view.bytes > 0) {
    const HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (mapping != nullptr) view.begin = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    if (view.begin == nullptr) fail();
    if (mapping != nullptr) CloseHandle(mapping);
  }
  CloseHandle(file);
  return view;
}

void unmap_file(FileView view) {
  if (view.begin != nullptr) UnmapViewOfFile(view.begin);
}

// The system does not let others cut a mapped file short.
std::uint64_t file_stamp(const FileView& /*view*/) {
  return 0;
}

void expect_random_visits(FileView /*view*/) {}

bool is_disk_full(int error) {
  return error == ENOSPC;
}

std::string room_remedy(int /*error*/, const std::string& /*path*/) {
  return "free some space or choose another folder";
}

}  // namespace gleaner::os
