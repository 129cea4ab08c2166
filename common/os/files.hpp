// Files as the system has them, by descriptor. Failures set errno, on every system. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gleaner::os {

// A file to be written whole and then named: for reading and writing, readable by everybody. -1 on
// failure.

// One without a name; -1 as well where the system or the folder's file system knows none, and then
// `is_impossible`.
int make_unnamed_file(const std::string& folder, bool& is_impossible);
// One that must not be there yet.
int make_file(const std::string& path);
// Gives a file without a name this one, which must be free.
bool name_file(int file, const std::string& path);
// One that takes memory and no disk.
int make_memory_file();

void close_file(int file);

// All `count` bytes, or false; read_at() sets errno to EIO where the file ends before.
bool read_at(int file, std::uint64_t offset, void* bytes, std::size_t count);
bool write_at(int file, std::uint64_t offset, const void* bytes, std::size_t count);
bool cut_off(int file, std::uint64_t bytes);
// Waits until the content is on the disk.
bool sync_file(int file);
// Waits for the names in a folder. Where it fails nothing is lost but the certainty.
void sync_folder(const std::string& folder);
// Nullopt for what is no ordinary file.
std::optional<std::uint64_t> file_bytes(int file);
// It was of use now.
void touch(int file);

// `target` need not exist.
bool replace_file(const std::string& source, const std::string& target);
// Fails with EEXIST where `target` exists. `source` may be there afterwards.
bool link_file(const std::string& source, const std::string& target);
bool delete_file(const std::string& path);

// The ordinary file under this name, for reading and writing and for this process alone until it
// is closed; made where it is missing and `makes`. -1 when another process has it or it cannot be
// opened.
int open_locked(const std::string& path, bool makes);

// The most that a file of this process may grow to.
std::uint64_t file_bytes_max();
// Growing a file beyond that is an error of the write rather than the end of the process.
void survive_large_files();

// A whole file in memory, read only.
struct FileView {
  const void* begin = nullptr;  // null where it could not be mapped, or is empty
  std::size_t bytes = 0;
};

// Nullopt where it cannot be opened. What is no ordinary file is empty.
std::optional<FileView> map_file(const std::string& path);
void unmap_file(FileView view);
// It will be visited all over: nothing is to be read ahead.
void expect_random_visits(FileView view);

bool is_disk_full(int error);

}  // namespace gleaner::os
