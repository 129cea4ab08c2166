// The folder of a store as the file system shows it, before RocksDB sees it.
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

}  // namespace gleaner
