#include "volunteer/control/day_ledger.hpp"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/dataset/atomic_file.hpp"

namespace gleaner::volunteer {

std::string day_name(std::int64_t wall_seconds) {
  const auto seconds = static_cast<std::time_t>(wall_seconds);
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:04}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday);
}

DayLedger::DayLedger(std::string folder, std::string day)
    : path_(folder.empty() ? "" : (std::filesystem::path(folder) / "today").string()),
      day_(std::move(day)) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  std::string kept_day;
  DayFigures kept;
  // Anything else in the file is what a power cut left.
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

}  // namespace gleaner::volunteer
