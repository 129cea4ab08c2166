#include "storage/engine/master_note.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace gleaner {
namespace {

constexpr const char* kNoteFile = "/MASTER";
constexpr const char* kPlaceFile = "/PLACE";
constexpr const char* kPlain = "plain";
constexpr const char* kLockFile = "/LOCK";  // RocksDB's

std::string place_in(const std::string& store) {
  std::ifstream file(store + kPlaceFile);
  std::string place;
  std::getline(file, place);
  return place;
}

}  // namespace

std::string note_place(const std::string& store, const std::string& place) {
  const std::string noted = place_in(store);
  if (noted == place) return {};
  if (!noted.empty() && place_in(noted) == noted) return noted;
  std::ofstream(store + kPlaceFile) << place << '\n';
  return {};
}

MasterNote::MasterNote(const std::string& store, const RunningMaster& master)
    : path_(store + kNoteFile) {
  // Written beside and renamed, so that a reader never sees a part of it.
  const std::string beside = path_ + ".dbtmp";
  {
    std::ofstream file(beside);
    file << master.address << ' ' << master.life << ' ' << (master.is_plain ? kPlain : "tls")
         << '\n';
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
  master.is_plain = port == kPlain;
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
