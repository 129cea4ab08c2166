// A store's folder in the file system.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/engine/held_folder.hpp"

namespace gleaner {

// Suffixes of the folder that a restore writes beside its target, and of the folder it replaces.
inline constexpr const char* kRestoringSuffix = ".restoring";
inline constexpr const char* kReplacedSuffix = ".replaced";

// Whether a call failed because the disk, or the user's quota, is full.
bool is_out_of_room(int error_number);
// Whether `bytes` can be allocated now. Allocates them for a moment, since the file system's free
// bytes show neither a quota nor a lack of inodes.
bool can_take_room(const std::string& path, std::uint64_t bytes);

// Whether the folder holds a database.
bool holds_database(const std::string& path);

// Makes the folder if it is missing. Refuses a path that is no folder, holds other files than a
// database's, or is not writable. The error says which and what to do.
Result<void> prepare_store_folder(const std::string& path);

// Prepares the folder and holds it open, for a writer.
Result<std::shared_ptr<HeldFolder>> hold_store_folder(const std::string& path);

// kNotFound unless the folder holds a database; kIo when it is not readable.
Result<void> find_store_folder(const std::string& path);

// Free bytes of the folder's file system for this user; nullopt when unknown.
std::optional<std::uint64_t> free_bytes(const std::string& path);

// Describes the files in the folder (or the file) with sizes and times: changes when a file
// changes.
std::string files_state(const std::string& path);

// The total bytes of all files in the folder.
std::uint64_t folder_bytes(const std::string& path);

// Names of the folder's write-ahead logs.
std::set<std::string> log_files(const std::string& path);
// Names of the folder's table files.
std::vector<std::string> table_files(const std::string& path);

// The normal form of a path without a slash at its end, to which suffixes can be added.
std::string without_slash(const std::string& path);

// The address of the master that writes a store: a small file in the store's folder, present while
// that master runs. A killed master leaves the file behind, and a copy of the folder has it too. So
// a reader compares `life` with the answer of the master at the address.
struct RunningMaster {
  std::string address;     // HOST:PORT
  std::uint64_t life = 0;  // identifies this start of the run's master
  bool is_plain = false;   // the master does not encrypt
  friend bool operator==(const RunningMaster&, const RunningMaster&) = default;
};

// The file, which exists as long as this object. A failure to write it is ignored.
class MasterNote {
 public:
  MasterNote(const std::string& store, const RunningMaster& master);
  ~MasterNote();
  MasterNote(const MasterNote&) = delete;
  MasterNote& operator=(const MasterNote&) = delete;

 private:
  std::string path_;
};

// Notes in the folder `store` that its path is `place`. If it has the note of another folder, which
// exists and has that note too, it is a copy of that folder: its note stays, and that path returns.
std::string note_place(const std::string& store, const std::string& place);

// Nullopt when the file is missing or malformed.
std::optional<RunningMaster> read_master_note(const std::string& store);

// The id of the process that has the store open for writing, if any and if the system tells. Takes
// no lock.
std::optional<int> writer_of(const std::string& store);

}  // namespace gleaner
