#include "storage/master_note.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace gleaner {
namespace {

constexpr const char* kNoteFile = "/MASTER";
constexpr std::array<const char*, 3> kPorts = {"tls", "plain", "page"};  // in MasterPort's order
constexpr const char* kLockFile = "/LOCK";                               // RocksDB's

}  // namespace

MasterNote::MasterNote(const std::string& store, const RunningMaster& master)
    : path_(store + kNoteFile) {
  // Renamed into place: whoever reads it has all of it.
  const std::string beside = path_ + ".dbtmp";
  {
    std::ofstream file(beside);
    file << master.address << ' ' << master.life << ' '
         << kPorts.at(static_cast<std::size_t>(master.port)) << '\n';
  }
  std::error_code error;
  std::filesystem::rename(beside, path_, error);
}

MasterNote::~MasterNote() {
  std::error_code error;
  std::filesystem::remove(path_, error);
}

std::optional<RunningMaster> read_master_note(const std::string& store) {
  std::ifstream file(store + kNoteFile);
  RunningMaster master;
  std::string port;
  if (!(file >> master.address >> master.life >> port)) return std::nullopt;
  const auto known = std::find(kPorts.begin(), kPorts.end(), port);
  if (known == kPorts.end()) return std::nullopt;
  master.port = static_cast<MasterPort>(known - kPorts.begin());
  return master;
}

std::optional<int> writer_of(const std::string& store) {
  const int file = ::open((store + kLockFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;

  struct flock lock {};

  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  const bool is_told = ::fcntl(file, F_GETLK, &lock) == 0;
  ::close(file);
  if (!is_told || lock.l_type == F_UNLCK) return std::nullopt;
  return static_cast<int>(lock.l_pid);
}

}  // namespace gleaner
