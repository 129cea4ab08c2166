// Where a master keeps who it is and whom it lets in: two files in the store's folder that only
// their owner may read. Beside the database and not in it, so that the tools can change them while
// nothing else of the store is open, and no backup of a run carries its master's key.
#pragma once

#include <memory>
#include <string>

#include "common/access/key_pair.hpp"
#include "common/result.hpp"
#include "master/door/access_book.hpp"

namespace gleaner {

// STORE/master.key and STORE/access.
std::string master_key_path(const std::string& store);
std::string access_path(const std::string& store);

// The right to change the book: one process at a time, a master for as long as it listens.
class AccessLock {
 public:
  enum class Wait { kNo, kYes };

  // kBusy while another process has it, unless one is to wait: a master does, for the moment that a
  // tool takes. The master's key must exist.
  static Result<std::unique_ptr<AccessLock>> take(const std::string& store, Wait wait);
  ~AccessLock();
  AccessLock(const AccessLock&) = delete;
  AccessLock& operator=(const AccessLock&) = delete;

 private:
  explicit AccessLock(int fd) : fd_(fd) {}

  int fd_;
};

// An empty book when there is none yet. Errors name the file.
Result<AccessBook> read_access_book(const std::string& store);
Result<void> write_access_book(const std::string& store, const AccessBook& book);

}  // namespace gleaner
