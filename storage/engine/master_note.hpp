// Where the master that writes a store can be asked: a small file in the store's folder, there
// while that master runs. One that was killed leaves it behind, and a copy of the folder has it
// too, so that a reader compares `life` with what the master itself says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gleaner {

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
