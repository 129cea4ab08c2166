// A folder of the file system that is held open, so that a writer notices when it is moved or
// replaced.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "common/result.hpp"

namespace gleaner {

// A folder that is addressed by an open descriptor, through /proc. A writer therefore never writes
// to another folder that was put at the same path meanwhile, and never creates the folder again.
class HeldFolder {
 public:
  // kIo unless the folder exists. Errors call it `what` ("the store"), and
  // `remedy` says what to do when it is not in its place.
  static Result<std::shared_ptr<HeldFolder>> open(const std::string& path, const char* what,
                                                  const char* remedy);
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

  // The path that users know.
  [[nodiscard]] const std::string& path() const { return path_; }

  // A path through the descriptor, valid as long as this object lives.
  [[nodiscard]] const std::string& reach() const { return reach_; }

  // kIdentity when the folder is no longer at its path, or the noted file no longer in the folder.
  // The error says whether it was moved, removed or replaced. Any thread.
  [[nodiscard]] Result<void> check() const;

  // Remembers the file's inode, which check() compares. The file must stay open elsewhere, so that
  // no other file gets its inode.
  void note(const std::string& file);

  [[nodiscard]] bool has_note() const { return !noted_.empty(); }

  // Locks the folder as long as this object lives; false when another process holds the lock.
  [[nodiscard]] bool lock() const;

  // The error with the folder's path in place of the path through the descriptor.
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

}  // namespace gleaner
