#include "master/door/access_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/access/secret_file.hpp"

namespace gleaner {
namespace {

// The size of kInvitesMax and kPeersMax lines with the longest texts.
constexpr std::size_t kBookBytesMax = std::size_t{4} << 20;

}  // namespace

std::string master_key_path(const std::string& store) {
  return store + "/master.key";
}

std::string access_path(const std::string& store) {
  return store + "/access";
}

Result<std::unique_ptr<AccessLock>> AccessLock::take(const std::string& store, Wait wait) {
  const std::string path = master_key_path(store);
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: {}", path, std::generic_category().message(errno))};
  }
  int taken = 0;
  do {
    taken = ::flock(fd, wait == Wait::kYes ? LOCK_EX : LOCK_EX | LOCK_NB);
  } while (taken != 0 && errno == EINTR);
  if (taken != 0) {
    ::close(fd);
    return Error{ErrorCode::kBusy, path + " is in use by a master"};
  }
  return std::unique_ptr<AccessLock>(new AccessLock(fd));
}

AccessLock::~AccessLock() {
  ::close(fd_);
}

Result<AccessBook> read_access_book(const std::string& store) {
  const std::string path = access_path(store);
  const auto text = read_secret_file(path, kBookBytesMax);
  if (!text) return text.error();
  if (!*text) return AccessBook();
  auto book = parse_access_book(**text);
  if (!book) {
    return Error{book.error().code, fmt::format("{}: {}; delete the file to begin with new invites",
                                                path, book.error().message)};
  }
  return book;
}

Result<void> write_access_book(const std::string& store, const AccessBook& book) {
  return write_secret_file(access_path(store), print(book), SecretFile::kReplaced);
}

}  // namespace gleaner
