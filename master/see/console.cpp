#include "master/see/console.hpp"

#include <fmt/format.h>

#include "master/see/event_text.hpp"
#include "master/see/status_words.hpp"

namespace gleaner {
namespace {

constexpr Millis kTerminalPace{100};
constexpr Millis kJsonPace{1000};
// A log line every ten seconds at first, and every minute once the run is long.
constexpr Millis kPlainPace{10'000};
constexpr Millis kPlainPaceLong{60'000};
constexpr Millis kPlainStart{120'000};
// The journal has the page's style of text.
constexpr TextStyle kJournalStyle{false, true};

// Results are important but no cause for worry.
Priority priority_of_event(const RunEvent& event) {
  return is_one_of<Evaluated, Resumed, RunStopped, RunFinished>(event)
             ? Priority::kNotice
             : priority_of(importance(event));
}

}  // namespace

Console::Console(std::FILE* out, std::FILE* error, OutputOptions options,
                 std::function<unsigned()> width, std::function<Instant()> clock)
    : out_(out),
      error_(error),
      options_(options),
      width_(std::move(width)),
      clock_(std::move(clock)),
      start_(clock_()),
      line_(out) {}

void Console::update(const RunProgress& run) {
  const Instant now = clock_();
  if (is_over_ || options_.quiet || !is_due(run, now)) return;
  shown_at_ = now;
  shown_ = run;
  switch (options_.mode) {
    case OutputMode::kTerminal: {
      // One column is left free: some terminals wrap after a write to the last column.
      const unsigned width = width_();
      line_.update(progress_line(run, width > 1 ? width - 1 : width, options_.style));
      return;
    }
    case OutputMode::kPlain:
      if (options_.journal) {
        options_.journal->write(Priority::kInfo, progress_log_line(run), progress_json(run));
      } else {
        print(progress_log_line(run));
      }
      return;
    case OutputMode::kJson:
      print(progress_json(run));
      return;
  }
}

bool Console::is_due(const RunProgress& run, Instant now) const {
  if (!shown_at_) return true;
  const Micros since = now - *shown_at_;
  const bool is_new_wait = run.waiting_for != shown_.waiting_for;
  switch (options_.mode) {
    case OutputMode::kTerminal:
      return since >= kTerminalPace || is_new_wait || run.stage != shown_.stage;
    case OutputMode::kPlain:
      // Stages alternate with every round; only a wait is worth a line of its own.
      if (is_new_wait && !run.waiting_for.empty()) return true;
      return since >= (now - start_ < kPlainStart ? kPlainPace : kPlainPaceLong);
    case OutputMode::kJson:
      return since >= kJsonPace || is_new_wait;
  }
  return false;
}

void Console::event(const RunEvent& event) {
  if (listener_) listener_(event);
  const LogLevel level = importance(event);
  const bool is_failure = is_one_of<RunFailed>(event);
  const bool is_log = is_one_of<LogLine>(event);
  const bool was_over = is_over_;
  if (is_one_of<RunFailed, RunFinished, RunStopped>(event)) {
    is_over_ = true;
    line_.clear();
  }
  if (options_.mode == OutputMode::kJson) {
    // Programs filter for themselves, except for events that only a person asks for.
    if (!was_over && (!is_log || options_.shows(level))) print(event_json(event));
    if (is_failure) print_error(event_line(event, {}));
    return;
  }
  if (!options_.shows(level)) return;
  if (options_.journal) {
    options_.journal->write(priority_of_event(event), event_line(event, kJournalStyle),
                            event_json(event));
    return;
  }
  const std::string text = event_line(event, options_.style);
  if (is_failure || (is_log && level >= LogLevel::kWarning)) {
    print_error(text);
  } else {
    print(text);
  }
}

void Console::log(LogLevel level, std::string_view message) {
  event(LogLine{level, std::string(message)});
}

std::string Console::stamped(const std::string& text) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock_() - start_).count();
  return fmt::format("[{}] {}",
                     duration_shown(static_cast<std::uint64_t>(seconds < 0 ? 0 : seconds)), text);
}

void Console::print(const std::string& text) {
  if (options_.mode == OutputMode::kTerminal) {
    line_.print(text);
    return;
  }
  const std::string shown = options_.mode == OutputMode::kPlain ? stamped(text) : text;
  std::fprintf(out_, "%s\n", shown.c_str());
  std::fflush(out_);
}

void Console::print_error(const std::string& text) {
  // The two streams may lead to one terminal. The next update shows the progress line again.
  line_.clear();
  std::fprintf(error_, "%s\n", text.c_str());
  std::fflush(error_);
}

}  // namespace gleaner
