// A folder of the file system that is held open, so that a writer notices when it is moved or
// replaced.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

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

}  // namespace gleaner
