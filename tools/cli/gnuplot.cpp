#include "tools/cli/gnuplot.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace gleaner {
namespace {

constexpr int kCommandNotFound = 127;  // the shell's own status for it

// A file without a name that a child process inherits; gnuplot reads commands from no pipe that it
// could also be asked to answer through.
class Inherited {
 public:
  Inherited() : fd_(::memfd_create("gnuplot", 0)) {}

  ~Inherited() {
    if (fd_ >= 0) ::close(fd_);
  }

  Inherited(const Inherited&) = delete;
  Inherited& operator=(const Inherited&) = delete;

  bool fill(std::string_view text) {
    while (fd_ >= 0 && !text.empty()) {
      const ssize_t count = ::write(fd_, text.data(), text.size());
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return fd_ >= 0;
  }

  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

std::string terminal_of(std::string_view path, unsigned width, unsigned height) {
  const bool is_svg = path.ends_with(".svg");
  return fmt::format("set terminal {} size {},{} font 'DejaVu Sans,11' background '#ffffff'\n",
                     is_svg ? "svg enhanced dynamic" : "pngcairo enhanced", width, height);
}

// The output of gnuplot when it reads `script`.
Result<std::string> picture_of(const std::string& script) {
  Inherited file;
  if (!file.fill(script)) return Error{ErrorCode::kResources, "no memory for a picture"};
  // A fixed command but for a number: nothing of it comes from a user.
  const std::string command =
      fmt::format("command -v gnuplot >/dev/null || exit {}; exec gnuplot /dev/fd/{}",
                  kCommandNotFound, file.fd());
  std::FILE* const pipe = ::popen(command.c_str(), "re");  // NOLINT
  if (pipe == nullptr) return Error{ErrorCode::kIo, "gnuplot cannot be started"};
  std::string picture;
  std::array<char, 65536> piece{};
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    picture.append(piece.data(), count);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCommandNotFound) {
    return Error{ErrorCode::kResources,
                 "pictures are drawn by gnuplot, which is not installed; on Debian: apt-get "
                 "install gnuplot-nox"};
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || picture.empty()) {
    return Error{ErrorCode::kIo, "gnuplot failed; what it said stands above"};
  }
  return picture;
}

}  // namespace

std::string gnuplot_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20;
    if (c == '\'') quoted += '\'';
    quoted += is_control ? ' ' : c;
  }
  return quoted + "'";
}

Result<void> draw_with_gnuplot(const std::string& commands, const std::string& path, unsigned width,
                               unsigned height, AtomicFile::Existing existing) {
  // First, so that a folder that is not there is reported before anything is drawn.
  Result<std::unique_ptr<AtomicFile>> file = AtomicFile::create(path);
  if (!file) return file.error();
  Result<std::string> picture = picture_of(terminal_of(path, width, height) + commands);
  if (!picture) return Error{picture.error().code, path + ": " + picture.error().message};
  Result<void> written = (*file)->write(picture->data(), picture->size());
  return written ? (*file)->commit(existing) : written;
}

}  // namespace gleaner
