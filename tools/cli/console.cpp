#include "tools/cli/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "common/console/terminal.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {
namespace {

constexpr Micros kQuiet{500'000};
constexpr Micros kInterval{200'000};

// Damage in a packed file counts as bad data here: there is no store that could be meant.
int exit_status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 2;
    case ErrorCode::kInvalidData:
    case ErrorCode::kNotFound:
    case ErrorCode::kCorrupt:
    case ErrorCode::kVersion:
      return 3;
    default:
      return 1;
  }
}

}  // namespace

TextOptions ReadFlags::text_options() const {
  TextOptions options;
  if (format == "xc") options.format = TextFormat::kXc;
  if (format == "libsvm") options.format = TextFormat::kLibsvm;
  options.libsvm_first_feature = first_feature;
  return options;
}

int report(const Result<void>& result) {
  if (result.ok() || is_reader_lost(result)) return 0;
  std::fprintf(stderr, "gleaner: %s\n", result.error().message.c_str());
  return exit_status_of(result.error().code);
}

Result<void> guard_outputs(std::initializer_list<std::string> paths, bool force) {
  if (force) return {};
  for (const std::string& path : paths) {
    std::error_code error;
    if (!path.empty() && std::filesystem::exists(path, error)) {
      return Error{ErrorCode::kInvalidArgument,
                   path + " exists already; name another file, or give --force to replace it"};
    }
  }
  return {};
}

AtomicFile::Existing existing(bool force) {
  return force ? AtomicFile::Existing::kReplace : AtomicFile::Existing::kRefuse;
}

ProgressLine::ProgressLine(std::string verb)
    : verb_(std::move(verb)),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      started_(monotonic_now()),
      shown_(started_) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(std::uint64_t done, std::uint64_t total, const char* unit) {
  if (!is_terminal_) return;
  const Instant now = monotonic_now();
  if (now - started_ < kQuiet || now - shown_ < kInterval) return;
  shown_ = now;
  is_shown_ = true;
  const double seconds = static_cast<double>((now - started_).count()) / 1e6;
  std::string line = fmt::format("\r\x1b[K{} {} {}", verb_, grouped(done), unit);
  if (total > 0 && done > 0) {
    const double share = static_cast<double>(done) / static_cast<double>(total);
    line += fmt::format(" of {} ({:.0f} %), {:.0f} s left", grouped(total), 100 * share,
                        seconds / share - seconds);
  }
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

Json written_json(const std::string& path, std::uint64_t points) {
  return {{"file", printable(path)}, {"points", points}};
}

}  // namespace gleaner
