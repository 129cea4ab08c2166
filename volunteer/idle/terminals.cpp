#include "volunteer/idle/terminals.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "volunteer/idle/text_file.hpp"

namespace gleaner::volunteer {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "pts/3" and "tty1", not "ptmx", "tty" and "ttyS0".
std::vector<std::string> terminal_names(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& path : entries_of(root + "/dev/pts")) {
    if (is_number(path.filename().string())) names.push_back("pts/" + path.filename().string());
  }
  for (int console = 1; console < 64; ++console) names.push_back("tty" + std::to_string(console));
  return names;
}

}  // namespace

std::optional<UseReading> Terminals::read(Instant now) {
  std::error_code error;
  if (!std::filesystem::exists(root_ + "/dev/pts", error)) return std::nullopt;
  UseReading reading{"terminals", Instant{}, "none"};
  std::map<std::string, Seen> present;
  for (const std::string& name : terminal_names(root_)) {
    struct stat facts {};

    if (stat((root_ + "/dev/" + name).c_str(), &facts) != 0) continue;
    Seen seen;
    seen.accessed_ns = std::int64_t{facts.st_atim.tv_sec} * 1'000'000'000 + facts.st_atim.tv_nsec;
    const auto known = seen_.find(name);
    if (known == seen_.end()) {
      // One that was there at the start may have been used long ago.
      const std::int64_t age_s = std::max<std::int64_t>(wall_seconds() - facts.st_atim.tv_sec, 0);
      seen.last_use = now - std::chrono::duration_cast<Micros>(std::chrono::seconds(age_s));
    } else {
      // A change tells, whatever has been done to the wall clock.
      const bool is_same = known->second.accessed_ns == seen.accessed_ns;
      seen.last_use = is_same ? known->second.last_use : now;
    }
    if (seen.last_use > *reading.last_use) {
      reading.last_use = seen.last_use;
      reading.detail = name;
    }
    present.emplace(name, seen);
  }
  seen_ = std::move(present);
  return reading;
}

}  // namespace gleaner::volunteer
