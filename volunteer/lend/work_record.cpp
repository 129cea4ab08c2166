#include "volunteer/lend/work_record.hpp"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/console/terminal.hpp"
#include "common/data/atomic_file.hpp"
#include "common/os/process.hpp"
#include "common/time.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kLinesMax = 100;
constexpr const char* kChanged = "; the signature does not fit: the line was changed since";

std::string path_in(const std::string& folder) {
  return (std::filesystem::path(folder) / "finished").string();
}

std::vector<std::string> lines_in(const std::string& folder) {
  std::vector<std::string> lines;
  if (folder.empty()) return lines;
  std::ifstream file(path_in(folder));
  for (std::string line; lines.size() < kLinesMax && std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

Result<void> write(const std::string& folder, std::vector<std::string> lines) {
  if (lines.size() > kLinesMax) lines.erase(lines.begin());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  auto file = AtomicFile::create(path_in(folder));
  if (!file) return file.error();
  if (auto written = (*file)->write(text.data(), text.size()); !written) return written.error();
  return (*file)->commit(AtomicFile::Existing::kReplace);
}

std::string in_words(const std::string& line) {
  if (!is_thanks_line(line)) return printable(line);
  const auto kept = parse_thanks(line);
  if (!kept) return printable(line) + kChanged;
  const Thanks& thanks = kept->thanks;
  std::string text = fmt::format("{} {}thank you, {}, for the run {}",
                                 local_time_words(static_cast<std::int64_t>(thanks.wall_seconds)),
                                 thanks.is_finished ? "finished: " : "",
                                 work_words(thanks.seconds, thanks.examples, thanks.checked),
                                 printable(thanks.run));
  if (!check(*kept)) return text + kChanged;
  return fmt::format("{}; signed by master {} for volunteer {}", text, to_text(id_of(kept->master)),
                     to_text(thanks.volunteer));
}

}  // namespace

std::string day_name(std::int64_t wall_seconds) {
  const auto seconds = static_cast<std::time_t>(wall_seconds);
  std::tm local{};
  (void)os::local_time(seconds, local);
  return fmt::format("{:04}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday);
}

DayLedger::DayLedger(std::string folder, std::string day)
    : path_(folder.empty() ? "" : (std::filesystem::path(folder) / "today").string()),
      day_(std::move(day)) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  std::string kept_day;
  DayFigures kept;
  // Ignores a file that a power cut left incomplete.
  if (file >> kept_day >> kept.examples >> kept.up_bytes >> kept.down_bytes && kept_day == day_) {
    today_ = kept;
  }
}

void DayLedger::note(const DayFigures& life, const std::string& day) {
  if (day != day_) {
    day_ = day;
    today_ = {};
  }
  today_.examples += life.examples - life_.examples;
  today_.up_bytes += life.up_bytes - life_.up_bytes;
  today_.down_bytes += life.down_bytes - life_.down_bytes;
  life_ = life;
}

Result<void> DayLedger::save() const {
  if (path_.empty()) return {};
  auto file = AtomicFile::create(path_);
  if (!file) return file.error();
  const std::string text =
      fmt::format("{} {} {} {}\n", day_, today_.examples, today_.up_bytes, today_.down_bytes);
  if (auto written = (*file)->write(text.data(), text.size()); !written) return written.error();
  return (*file)->commit(AtomicFile::Existing::kReplace);
}

std::string work_words(std::uint64_t seconds, std::uint64_t examples, Checked checked) {
  const char* const how = checked == Checked::kAll    ? " checked"
                          : checked == Checked::kSome ? ", some of them checked"
                                                      : "";
  return fmt::format("{}, {} examples{}", duration_words(seconds), grouped(examples), how);
}

Result<void> keep_thanks(const std::string& folder, const SignedThanks& thanks) {
  if (folder.empty()) return {};
  std::vector<std::string> lines = lines_in(folder);
  std::erase_if(lines, [&](const std::string& line) {
    const auto other = parse_thanks(line);
    return other && other->master == thanks.master && other->thanks.run == thanks.thanks.run &&
           other->thanks.volunteer == thanks.thanks.volunteer;
  });
  lines.push_back(to_line(thanks));
  return write(folder, std::move(lines));
}

Result<void> keep_thanks(const std::string& folder, const std::string& master,
                         const std::string& line) {
  if (folder.empty()) return {};
  std::vector<std::string> lines = lines_in(folder);
  lines.push_back(line + " (" + master + ")");
  return write(folder, std::move(lines));
}

std::vector<std::string> kept_thanks(const std::string& folder) {
  std::vector<std::string> lines = lines_in(folder);
  for (std::string& line : lines) line = in_words(line);
  return lines;
}

}  // namespace gleaner::volunteer
