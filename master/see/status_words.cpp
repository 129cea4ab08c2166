#include "master/see/status_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/text.hpp"
#include "common/time.hpp"

namespace gleaner {
namespace {

template <std::size_t N, typename Enum>
const char* name_in(const char* const (&names)[N], Enum value) {
  const auto place = static_cast<std::size_t>(value);
  return place < N ? names[place] : "unknown";
}

constexpr std::size_t kBarColumnsMin = 8;
constexpr std::size_t kBarColumnsMax = 30;

constexpr std::size_t kGap = 2;        // columns between parts
constexpr std::size_t kGapNarrow = 1;  // where room is short

// A part of the progress line. The part with the lowest rank gives way first.
struct Part {
  std::string full;
  std::string brief;
  int rank = 0;
  Colour colour = Colour::kNone;
  bool is_brief = false;

  [[nodiscard]] const std::string& text() const { return is_brief ? brief : full; }
};

class ProgressLine {
 public:
  explicit ProgressLine(const RunProgress& run);

  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

  [[nodiscard]] std::size_t columns(std::size_t gap) const;
  // Shortens parts by rank, then reduces the gaps, then drops parts by rank, until the line takes
  // at most `width` columns. Returns the gap between parts.
  std::size_t make_fit(std::size_t width);

 private:
  void add_position(const RunProgress& s);

  std::vector<Part> parts_;
};

double share_done(const RunProgress& s) {
  if (s.batches == 0) return 0;
  return std::min(1.0, static_cast<double>(s.batch) / static_cast<double>(s.batches));
}

// The round or epoch at work: the first that is not done.
template <typename Count>
Count current(Count done, Count all) {
  return std::min<Count>(static_cast<Count>(done + 1), all);
}

std::string bar(double share, std::size_t width, TextStyle style) {
  const std::size_t inner = style.utf8 ? width : width - 2;
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(inner));
  if (!style.utf8) {
    return "[" + std::string(filled, '#') + std::string(inner - filled, '.') + "]";
  }
  std::string done;
  std::string open;
  for (std::size_t i = 0; i < inner; ++i) (i < filled ? done : open) += i < filled ? "━" : "─";
  return coloured(done, Colour::kCyan, style) + coloured(open, Colour::kDim, style);
}

}  // namespace

const char* stage_name(RunStage stage) {
  return name_in({"waiting", "training", "evaluating", "stopping", "done"}, stage);
}

const char* owner_name(WaitOwner owner) {
  return name_in({"nobody", "operator", "volunteers", "master", "store"}, owner);
}

const char* state_name(LeaseState state) {
  return name_in({"free", "loading", "ready", "releasing"}, state);
}

std::vector<std::uint32_t> shards_of(const RunStatus& status, std::size_t volunteer,
                                     bool ready_only) {
  std::vector<std::uint32_t> shards;
  for (std::uint32_t s = 0; s < status.shards.size(); ++s) {
    const ShardEntry& shard = status.shards[s];
    if (shard.holder != volunteer) continue;
    if (!ready_only || shard.state == LeaseState::kReady) shards.push_back(s);
  }
  return shards;
}

std::string age(std::uint64_t us) {
  const double seconds = static_cast<double>(us) / 1e6;
  return seconds < 60 ? fmt::format("{:.1f} s", seconds)
                      : duration_words(static_cast<std::uint64_t>(seconds));
}

bool is_paused(const VolunteerEntry& volunteer) {
  // SessionState::pause_words() begins so, and no other reason does.
  return volunteer.no_shards.starts_with("paused");
}

std::string volunteer_state(const VolunteerEntry& volunteer, std::size_t held, std::size_t ready) {
  if (is_paused(volunteer)) return "paused";
  if (volunteer.is_leaving) return "leaving";
  if (held == 0) return volunteer.no_shards.empty() ? "idle" : "no shards";
  if (held > ready) return counted(held - ready, "shard") + " moving";
  return volunteer.owes ? "works" : "ready";
}

std::string volunteer_state(const RunStatus& status, std::size_t volunteer) {
  return volunteer_state(status.volunteers[volunteer], shards_of(status, volunteer, false).size(),
                         shards_of(status, volunteer, true).size());
}

std::string rate_shown(double value) {
  return grouped(static_cast<std::uint64_t>(std::llround(std::clamp(value, 0.0, 1e15))));
}

std::string seconds_shown(double seconds) {
  return duration_words(static_cast<std::uint64_t>(std::llround(std::clamp(seconds, 0.0, 1e12))));
}

void ProgressLine::add_position(const RunProgress& s) {
  if (s.stage != RunStage::kTraining) {
    parts_.push_back({stage_name(s.stage), stage_name(s.stage), 90, Colour::kYellow});
  }
  if (s.batches == 0) return;
  // Rounded down: 100 % appears when the last batch is done.
  const std::string percent = fmt::format("{}%", static_cast<int>(share_done(s) * 100));
  parts_.push_back({percent, percent, 100, Colour::kBold});
  const std::uint32_t epoch = current(s.epoch, s.epochs);
  parts_.push_back(
      {fmt::format("epoch {}/{}", epoch, s.epochs), fmt::format("e{}/{}", epoch, s.epochs), 50});
  const RoundIndex round = current(s.round, s.rounds);
  parts_.push_back(
      {fmt::format("round {}/{}", round, s.rounds), fmt::format("r{}/{}", round, s.rounds), 45});
  parts_.push_back({fmt::format("batch {}/{}", s.batch, s.batches),
                    fmt::format("b{}/{}", s.batch, s.batches), 10});
}

ProgressLine::ProgressLine(const RunProgress& s) {
  add_position(s);
  if (s.examples_per_second >= 0) {
    const std::string speed = rate_shown(s.examples_per_second);
    parts_.push_back({speed + " examples/s", speed + " ex/s", 70});
  }
  if (s.loss >= 0) {
    parts_.push_back({fmt::format("loss {:.3f}", s.loss), fmt::format("loss {:.2f}", s.loss), 60});
  }
  if (s.precision.is_measured()) {
    const std::string precision = fmt::format("P@1 {:.3f}", s.precision.at_1());
    parts_.push_back({precision, precision, 80, Colour::kGreen});
  }
  parts_.push_back({counted(s.volunteers, "volunteer"), fmt::format("{} vol", s.volunteers), 55});
  parts_.push_back({fmt::format("lag {}", s.staleness), fmt::format("s{}", s.staleness), 20});
  if (s.bytes_down >= 0 && s.bytes_up >= 0) {
    parts_.push_back({fmt::format("{:.0f} B down {:.0f} B up an example", s.bytes_down, s.bytes_up),
                      fmt::format("{:.0f}/{:.0f} B", s.bytes_down, s.bytes_up), 30});
  }
  if (s.eta_seconds >= 0 && s.stage != RunStage::kDone) {
    const std::string eta = "ETA " + seconds_shown(s.eta_seconds);
    parts_.push_back({eta, eta, 65});
  }
}

std::size_t ProgressLine::columns(std::size_t gap) const {
  std::size_t total = 0;
  for (const Part& part : parts_) total += display_width(part.text()) + gap;
  return total == 0 ? 0 : total - gap;
}

std::size_t ProgressLine::make_fit(std::size_t width) {
  std::vector<Part*> by_rank;
  by_rank.reserve(parts_.size());
  for (Part& part : parts_) by_rank.push_back(&part);
  const auto ranks_below = [](const Part& a, const Part& b) { return a.rank < b.rank; };
  std::sort(by_rank.begin(), by_rank.end(),
            [&](const Part* a, const Part* b) { return ranks_below(*a, *b); });
  for (Part* part : by_rank) {
    if (columns(kGap) <= width) return kGap;
    part->is_brief = true;
  }
  if (columns(kGap) <= width) return kGap;
  while (!parts_.empty() && columns(kGapNarrow) > width) {
    parts_.erase(std::min_element(parts_.begin(), parts_.end(), ranks_below));
  }
  return kGapNarrow;
}

std::string progress_line(const RunProgress& run, unsigned width, TextStyle style) {
  if (!run.waiting_for.empty()) {
    std::string text = "waiting for " + printable(run.waiting_for);
    if (run.rounds > 0) {
      text += fmt::format("  (round {} of {}, {})", current(run.round, run.rounds), run.rounds,
                          counted(run.volunteers, "volunteer"));
    }
    return coloured(fit(text, width, style), Colour::kYellow, style);
  }
  ProgressLine fitted(run);
  const std::size_t gap = fitted.make_fit(width);
  std::string line;
  const std::size_t used = fitted.columns(gap);
  if (run.batches > 0 && used + gap + kBarColumnsMin <= width) {
    line = bar(share_done(run), std::min(kBarColumnsMax, width - used - gap), style);
  }
  for (const Part& part : fitted.parts()) {
    if (!line.empty()) line += std::string(gap, ' ');
    line += coloured(part.text(), part.colour, style);
  }
  return line;
}

std::string progress_log_line(const RunProgress& run) {
  std::string line;
  if (!run.waiting_for.empty()) line = "waiting for " + printable(run.waiting_for);
  for (const ProgressLine all(run); const Part& part : all.parts())
    line += (line.empty() ? "" : ", ") + part.full;
  return line;
}

}  // namespace gleaner
