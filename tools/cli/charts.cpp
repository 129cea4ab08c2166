#include "tools/cli/charts.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace gleaner {
namespace {

struct Span {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }

  // Where `value` lies among `cells`.
  [[nodiscard]] std::size_t cell(double value, std::size_t cells) const {
    const double place = (value - low) / (high - low) * static_cast<double>(cells - 1);
    return static_cast<std::size_t>(std::lround(std::clamp(place, 0.0, double(cells - 1))));
  }
};

// The curve's height above x, between its points.
double height_at(const Curve& curve, double x) {
  const auto after = std::ranges::find_if(curve.points, [&](auto& p) { return p.first >= x; });
  if (after == curve.points.begin() || after == curve.points.end()) {
    return after == curve.points.end() ? curve.points.back().second : after->second;
  }
  const auto before = after - 1;
  const double share = (x - before->first) / (after->first - before->first);
  return before->second + share * (after->second - before->second);
}

void take_logarithms(std::vector<Curve>& curves) {
  for (Curve& curve : curves) {
    for (auto& [at, value] : curve.points) {
      at = std::log10(at);
      value = std::log10(value);
    }
  }
}

// Whole steps of five percent, or whole powers of ten, so that the axis has round numbers.
void round_ends(Span& y, const ChartLayout& layout) {
  const double steps = layout.is_logarithmic ? 1 : 20;
  y.low = std::floor(y.low * steps) / steps;
  y.high = std::max(std::ceil(y.high * steps) / steps, y.low + 1 / steps);
}

std::string count_text(double logarithm) {
  return grouped(static_cast<std::uint64_t>(std::llround(std::pow(10, logarithm))));
}

std::string y_text(double value, const ChartLayout& layout) {
  return layout.is_logarithmic ? count_text(value) : fmt::format("{:.1f} %", 100 * value);
}

std::string x_text(double value, const ChartLayout& layout) {
  return layout.is_logarithmic ? count_text(value) : fmt::format("{:g}", value);
}

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

std::string curve_chart(const std::vector<Curve>& given, const std::string& x_name,
                        const ChartLayout& layout) {
  std::vector<Curve> curves = given;
  if (layout.is_logarithmic) take_logarithms(curves);
  Span x;
  Span y;
  bool has_curve = false;
  for (const Curve& curve : curves) {
    has_curve |= curve.points.size() > 1;
    for (const auto& [at, value] : curve.points) {
      x.add(at);
      y.add(value);
    }
  }
  if (!has_curve || !(x.high > x.low)) return "";
  round_ends(y, layout);
  std::vector<std::vector<const Curve*>> grid(layout.height,
                                              std::vector<const Curve*>(layout.width));
  for (const Curve& curve : curves) {
    if (curve.points.size() < 2) continue;
    const std::size_t last = x.cell(curve.points.back().first, layout.width);
    for (std::size_t c = x.cell(curve.points.front().first, layout.width); c <= last; ++c) {
      const double at = x.low + (x.high - x.low) * double(c) / double(layout.width - 1);
      const std::size_t row = y.cell(height_at(curve, at), layout.height);
      grid[layout.height - 1 - row][c] = &curve;
    }
  }
  const char* const wall = layout.style.utf8 ? "\u2502" : "|";
  std::string text;
  for (std::size_t r = 0; r < layout.height; ++r) {
    const double value = y.high - (y.high - y.low) * double(r) / double(layout.height - 1);
    const bool has_number = r % 3 == 0 || r + 1 == layout.height;
    text += fmt::format("{:>10} {}", has_number ? y_text(value, layout) : "", wall);
    std::string line;
    for (const Curve* curve : grid[r]) {
      line += curve == nullptr ? " "
                               : coloured(std::string(1, curve->mark), curve->colour, layout.style);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += fmt::format("{:>11}{}", "", layout.style.utf8 ? "\u2514" : "+");
  for (std::size_t c = 0; c < layout.width; ++c) text += layout.style.utf8 ? "\u2500" : "-";
  const std::string right = fmt::format("{} {}", x_name, x_text(x.high, layout));
  text += fmt::format("\n{:>12}{:<{}}{}\n{:>12}", "", x_text(x.low, layout),
                      layout.width - right.size(), right, "");
  for (const Curve& curve : curves) {
    if (curve.points.empty()) continue;
    text += coloured(std::string(1, curve.mark), curve.colour, layout.style) +
            fmt::format(" {}   ", curve.name);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

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
