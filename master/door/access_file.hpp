// The master's key and its access book, as two files in the store's folder that only their owner
// may read. They are not in the database: tools can change them while a run uses the store, and no
// backup carries the master's key.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "master/door/access_book.hpp"

namespace gleaner {

// STORE/master.key and STORE/access.
std::string master_key_path(const std::string& store);
std::string access_path(const std::string& store);

// The right to change the book: one process at a time; a master has it while it listens.
class AccessLock {
 public:
  enum class Wait { kNo, kYes };

  // kBusy while another process has it, unless `wait` is kYes: a master waits for the moment that a
  // tool takes. Requires the master's key.
  static Result<std::unique_ptr<AccessLock>> take(const std::string& store, Wait wait);
  ~AccessLock();
  AccessLock(const AccessLock&) = delete;
  AccessLock& operator=(const AccessLock&) = delete;

 private:
  explicit AccessLock(int fd) : fd_(fd) {}

  int fd_;
};

// Returns an empty book if the store has none. Errors name the file.
Result<AccessBook> read_access_book(const std::string& store);
Result<void> write_access_book(const std::string& store, const AccessBook& book);

}  // namespace gleaner
