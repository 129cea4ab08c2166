// The folder of a store as the file system shows it, before RocksDB sees it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

// A folder that stays the same one, whatever becomes of its name: it is held open, and its files
// are reached through what is held. So a writer never writes to another folder that was put at the
// name meanwhile, and never makes the folder again. It takes a mounted /proc.
class HeldFolder {
 public:
  // Requires that the folder exists; kIo otherwise. `what` names it in sentences ("the store"), and
  // `remedy` says what to do when it is not in its place.
  static Result<std::shared_ptr<HeldFolder>> open(const std::string& path, const char* what,
                                                  const char* remedy);
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

  // The name under which people know it.
  [[nodiscard]] const std::string& path() const { return path_; }

  // A path that leads to the held folder, for as long as this object lives.
  [[nodiscard]] const std::string& reach() const { return reach_; }

  // kIdentity when the folder is no longer at its name, or the noted file no longer in it: moved,
  // removed or replaced. The sentence says which. Any thread.
  [[nodiscard]] Result<void> check() const;

  // Remembers the inode of this file as a mark of the folder's content, for check() to compare.
  // Somebody must hold the file open, so that no other file gets its inode.
  void note(const std::string& file);

  [[nodiscard]] bool has_note() const { return !noted_.empty(); }

  // Keeps others out for as long as this object lives; false when another holds the folder so.
  [[nodiscard]] bool lock() const;

  // Gives the error the folder's name instead of the path that leads to it.
  [[nodiscard]] Error named(Error error) const;

 private:
  HeldFolder(std::string path, const char* what, const char* remedy, int descriptor);

  const std::string path_;
  const char* const what_;
  const char* const remedy_;
  const int descriptor_;
  const std::string reach_;
  std::string noted_;  // the file's name
  dev_t device_ = 0;   // of the noted file
  ino_t number_ = 0;
};

// Suffixes of the folder that a restore writes beside its place, and of the one that it replaces.
inline constexpr const char* kRestoringSuffix = ".restoring";
inline constexpr const char* kReplacedSuffix = ".replaced";

// Whether a call failed for want of room: the disk's, or the user's quota of it.
bool is_out_of_room(int error_number);
// Whether `bytes` can be had now. Takes them for a moment, since neither a quota nor a lack of
// names shows in the file system's free bytes.
bool can_take_room(const std::string& path, std::uint64_t bytes);

// True when the folder holds a database of some kind.
bool holds_database(const std::string& path);

// Makes the folder if it is missing. Refuses a path that is no folder, that holds other files than
// a database's, or that may not be written; the sentence says which and what to do.
Result<void> prepare_store_folder(const std::string& path);

// Prepares the folder and holds it, for a writer.
Result<std::shared_ptr<HeldFolder>> hold_store_folder(const std::string& path);

// kNotFound unless the folder holds a database; kIo when it may not be read.
Result<void> find_store_folder(const std::string& path);

// Bytes that may still be written to the file system of the folder; nullopt when it cannot be told.
std::optional<std::uint64_t> free_bytes(const std::string& path);

// Which files are in the folder, or which file it is, with sizes and times: differs when one has
// changed.
std::string files_state(const std::string& path);

// The bytes of all files in the folder.
std::uint64_t folder_bytes(const std::string& path);

// Names of the write-ahead logs in it, those of numbers only that are not tables.
std::set<std::string> log_files(const std::string& path);
// Names of the table files in it.
std::vector<std::string> table_files(const std::string& path);

// The normal form of a path, without a slash at its end: what stands beside it begins so.
std::string without_slash(const std::string& path);

// Where the master that writes a store can be asked: a small file in the store's folder, there
// while that master runs. One that was killed leaves it behind, and a copy of the folder has it
// too, so that a reader compares `life` with what the master itself says.

struct RunningMaster {
  std::string address;     // HOST:PORT
  std::uint64_t life = 0;  // which start of the run's master it is
  bool is_plain = false;   // it encrypts nothing
  friend bool operator==(const RunningMaster&, const RunningMaster&) = default;
};

// The file, as long as the object lives. A note that cannot be written is none.
class MasterNote {
 public:
  MasterNote(const std::string& store, const RunningMaster& master);
  ~MasterNote();
  MasterNote(const MasterNote&) = delete;
  MasterNote& operator=(const MasterNote&) = delete;

 private:
  std::string path_;
};

// Nullopt when there is none, or none that makes sense.
std::optional<RunningMaster> read_master_note(const std::string& store);

// Whether a process has the store open for writing; its id, where the system tells. Takes no lock.
std::optional<int> writer_of(const std::string& store);

}  // namespace gleaner
