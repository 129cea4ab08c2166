// Files of the system, by descriptor. Failures set errno, on every system. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gleaner::os {

// Makes a file without a name, for reading and writing, readable by everybody. -1 on failure;
// `is_impossible` if the system or the folder's file system has no such files.
int make_unnamed_file(const std::string& folder, bool& is_impossible);
// Makes a file that must not exist yet. -1 on failure.
int make_file(const std::string& path);
// Gives a file without a name the name `path`, which must be free.
bool name_file(int file, const std::string& path);
// Makes a file that takes memory and no disk.
int make_memory_file();

void close_file(int file);

// Transfers all `count` bytes, or returns false. read_at() sets errno to EIO at the end of the
// file.
bool read_at(int file, std::uint64_t offset, void* bytes, std::size_t count);
bool write_at(int file, std::uint64_t offset, const void* bytes, std::size_t count);
bool cut_off(int file, std::uint64_t bytes);
// Waits until the content is on the disk.
bool sync_file(int file);
// Waits until the names in the folder are on the disk, if possible.
void sync_folder(const std::string& folder);
// Nullopt unless it is an ordinary file.
std::optional<std::uint64_t> file_bytes(int file);
// Sets the time of its last use to now.
void touch(int file);

// `target` need not exist.
bool replace_file(const std::string& source, const std::string& target);
// Fails with EEXIST if `target` exists. Needs no hard links.
bool move_to_free_name(const std::string& source, const std::string& target);
bool delete_file(const std::string& path);

// Opens the ordinary file for reading and writing and locks it for this process until it is closed.
// Makes a missing file if `makes`. -1 when another process has it or it cannot be opened.
int open_locked(const std::string& path, bool makes);

// The largest size that this process may give a file.
std::uint64_t file_bytes_max();
// From now on, exceeding that size is a write error instead of the end of the process.
void survive_large_files();

// A whole file in memory, read-only.
struct FileView {
  const void* begin = nullptr;  // null if empty or not mapped
  std::size_t bytes = 0;
  int file = -1;
};

// Follows the path of such a file.
inline constexpr std::string_view kChangedWhileRead =
    ": another program cut it short or wrote into it while it was read; once it is whole again, "
    "the same command goes on";

// Nullopt if it cannot be opened. Empty unless it is an ordinary file. If another program cuts the
// mapped file short, reading it ends the process with a sentence that names `path`, and status 3.
std::optional<FileView> map_file(const std::string& path);
void unmap_file(FileView view);
// Differs once another program has written to the file or cut it short.
std::uint64_t file_stamp(const FileView& view);
// Announces random access, so that the system does not read ahead.
void expect_random_visits(FileView view);

bool is_disk_full(int error);
// The remedy for is_disk_full() of a file or folder: "free some space", or a less known one.
std::string room_remedy(int error, const std::string& path);

}  // namespace gleaner::os
