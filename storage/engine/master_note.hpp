// The address of the master that writes a store: a small file in the store's folder, present while
// that master runs. A killed master leaves the file behind, and a copy of the folder has it too. So
// a reader compares `life` with the answer of the master at the address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gleaner {

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
