#include "volunteer/status_line.hpp"

#include <nlohmann/json.hpp>

namespace gleaner {
namespace {

constexpr Millis kTerminalPace{100};
constexpr Millis kShardsPace{60'000};

}  // namespace

StatusLine::StatusLine(std::FILE* out, std::FILE* error, OutputOptions options,
                       std::function<unsigned()> width, std::function<Instant()> clock)
    : out_(out),
      error_(error),
      options_(options),
      width_(std::move(width)),
      clock_(std::move(clock)),
      line_(out) {}

void StatusLine::update(const VolunteerStatus& status) {
  if (options_.quiet) return;
  const std::string news = status_news(status);
  const bool is_news = news != news_;
  if (options_.mode == OutputMode::kTerminal) {
    const Instant now = clock_();
    if (!is_news && shown_at_ && now - *shown_at_ < kTerminalPace) return;
    shown_at_ = now;
    news_ = news;
    const unsigned width = width_();
    line_.update(fit(status_text(status), width > 1 ? width - 1 : width, options_.style));
    return;
  }
  // A new attempt to connect is part of retrying: hours of it are one line.
  const bool is_attempt = status.activity == VolunteerActivity::kConnecting && is_retrying_;
  if (!is_news || is_attempt) return;
  const Instant now = clock_();
  const bool is_of_shards = status.activity == VolunteerActivity::kTraining && is_training_ &&
                            status.epoch == epoch_ && options_.mode == OutputMode::kPlain;
  if (is_of_shards && now - *shown_at_ < kShardsPace) return;
  is_training_ = status.activity == VolunteerActivity::kTraining;
  epoch_ = status.epoch;
  shown_at_ = now;
  is_retrying_ = status.activity == VolunteerActivity::kRetrying;
  news_ = news;
  if (options_.journal) {
    options_.journal->write(Priority::kInfo, news, status_json(status));
    return;
  }
  print(options_.mode == OutputMode::kJson ? status_json(status) : news);
}

void StatusLine::log(LogLevel level, std::string_view message) {
  if (!options_.shows(level)) return;
  const nlohmann::ordered_json json = {
      {"event", "log"}, {"level", log_level_name(level)}, {"message", message}};
  const std::string object = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (options_.mode == OutputMode::kJson) {
    print(object);
    return;
  }
  std::string text = printable(message);
  if (options_.journal) {
    options_.journal->write(priority_of(level), text, object);
    return;
  }
  if (level < LogLevel::kWarning) {
    print(text);
    return;
  }
  const Colour colour = level == LogLevel::kError ? Colour::kRed : Colour::kYellow;
  text = coloured(std::string(log_level_name(level)) + ": ", colour, options_.style) + text;
  line_.clear();
  std::fprintf(error_, "%s\n", text.c_str());
  std::fflush(error_);
}

void StatusLine::print(const std::string& text) {
  if (options_.mode == OutputMode::kTerminal) {
    line_.print(text);
    return;
  }
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

}  // namespace gleaner
