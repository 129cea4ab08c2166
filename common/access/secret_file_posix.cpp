#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "common/access/secret_file.hpp"
#include "common/os/files.hpp"

namespace gleaner {
namespace {

constexpr ::mode_t kOwnerOnly = 0600;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}

  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Error failed(const std::string& path, const char* what) {
  return {ErrorCode::kIo,
          fmt::format("{}: {}: {}", path, what, std::generic_category().message(errno))};
}

// False for an owner's file on a file system that shows one mode for all files, as FAT and SMB do:
// the mode then tells nothing of who may read it.
bool keeps_modes(int file, const struct stat& facts) {
  if (facts.st_uid != ::geteuid() && ::geteuid() != 0) return true;
  const ::mode_t mode = facts.st_mode & 07777u;
  if (::fchmod(file, mode ^ 0100u) != 0) return errno != EPERM && errno != EOPNOTSUPP;

  struct stat changed {};

  const bool is_kept = ::fstat(file, &changed) != 0 || changed.st_mode != facts.st_mode;
  (void)::fchmod(file, mode);
  return is_kept;
}

}  // namespace

Result<std::optional<std::string>> read_secret_file(const std::string& path, std::size_t bytes_max,
                                                    SecretFrom from) {
  const bool is_mount = from == SecretFrom::kMount;
  const int follow = is_mount ? 0 : O_NOFOLLOW;
  const Descriptor file(::open(path.c_str(), O_RDONLY | follow | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::optional<std::string>();
    return failed(path, errno == ELOOP ? "it is a link, which is not followed" : "cannot be read");
  }

  struct stat facts {};

  if (::fstat(file.get(), &facts) != 0) return failed(path, "cannot be read");
  if (!S_ISREG(facts.st_mode)) return Error{ErrorCode::kIo, path + " is no ordinary file"};
  if ((facts.st_mode & (is_mount ? 037u : 077u)) != 0 && keeps_modes(file.get(), facts)) {
    return Error{ErrorCode::kIo,
                 fmt::format("{0} may be read or written by others (mode {1:04o}), and who has it "
                             "can act in your name: if nobody has, `chmod 600 {0}`; else delete it",
                             path, facts.st_mode & 07777u)};
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size > bytes_max) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is longer than {} bytes", path, bytes_max)};
  }
  std::string text(size, '\0');
  if (!os::read_at(file.get(), 0, text.data(), size)) return failed(path, "cannot be read");
  return std::optional(std::move(text));
}

Result<void> write_secret_file(const std::string& path, std::string_view text, SecretFile mode) {
  const std::string beside = path + ".new";  // may be left by a killed process
  if (::unlink(beside.c_str()) != 0 && errno != ENOENT) return failed(path, "cannot be written");
  {
    const Descriptor file(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
    if (file.get() < 0) return failed(path, "cannot be written");
    // A umask can only have removed bits. A file system that invents modes may refuse to set any.
    const bool has_mode = ::fchmod(file.get(), kOwnerOnly) == 0 || errno == EPERM;
    if (!has_mode || !os::write_at(file.get(), 0, text.data(), text.size()) ||
        !os::sync_file(file.get())) {
      return failed(path, "cannot be written");
    }
  }
  const auto move = mode == SecretFile::kNew ? os::move_to_free_name : os::replace_file;
  if (!move(beside, path)) {
    const int why = errno;
    ::unlink(beside.c_str());
    errno = why;
    if (mode != SecretFile::kNew || why != EEXIST) return failed(path, "cannot be written");
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  os::sync_folder(folder.empty() ? "." : folder);
  return {};
}

}  // namespace gleaner
