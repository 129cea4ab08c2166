#include "volunteer/about.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/console/terminal.hpp"
#include "common/settings/wrapped_text.hpp"
#include "common/text.hpp"
#include "common/time.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kIndent = 14;
constexpr double kDayUs = 24 * 3600e6;

std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<{}}", name, kIndent - 2) + wrap_text(value, kIndent).substr(kIndent);
}

std::string progress_words(const RunStatus& s) {
  const RunProgress& p = s.progress;
  std::string text = fmt::format("epoch {} of {}", std::min(p.epoch + 1, p.epochs), p.epochs);
  if (p.precision.is_measured()) text += fmt::format(", P@1 {:.4f}", p.precision.at_1());
  text += ", " + counted(p.volunteers, "volunteer");
  if (p.eta_seconds >= 0) {
    text += fmt::format(", {} left", duration_words(static_cast<std::uint64_t>(p.eta_seconds)));
  }
  return p.stage == RunStage::kDone ? "finished: it needs no help" : text;
}

std::string memory_words(const RunStatus& s, const VolunteerOffer& offer) {
  const std::uint64_t outputs = s.shards.size() - s.input_shards;
  return fmt::format("{} for one of its {}, {} for all; here at most {} (--memory)",
                     bytes_shown(s.holder_bytes + s.shard_bytes), counted(outputs, "shard"),
                     bytes_shown(s.holder_bytes + outputs * s.shard_bytes),
                     bytes_shown(offer.memory_bytes));
}

std::string traffic_words(const RunStatus& s) {
  constexpr const char* kLimits =
      "; --down-per-day and --up-per-day set the most of a day, --limit-down and --limit-up of a "
      "second";
  if (s.served_us < 60'000'000) {
    return std::string("nobody has helped for a minute yet, so none is measured") + kLimits;
  }
  const auto a_day = [&](std::uint64_t bytes) {
    return bytes_shown(static_cast<std::uint64_t>(double(bytes) * kDayUs / double(s.served_us)));
  };
  return fmt::format("{} received and {} sent in a day, as its volunteers did on average{}",
                     a_day(s.served_bytes_down), a_day(s.served_bytes_up), kLimits);
}

}  // namespace

std::string about_text(const RunStatus& s, const std::string& where, const VolunteerOffer& offer) {
  const bool is_known = s.labels > 0;
  std::string text = fmt::format("The run {} of the master at {}",
                                 printable(s.name.empty() ? s.run : s.name), where);
  text += s.purpose.empty() ? ". Its owner has not said what it is for (--purpose)."
                            : ": " + printable(s.purpose);
  text = wrap_text(text, 0) + "\n";
  if (is_known) {
    text += row(
        "model",
        fmt::format("{} labels from {} features, {}", grouped(s.labels), grouped(s.features),
                    s.hidden == 0 ? "without a hidden layer" : counted(s.hidden, "hidden unit")));
  }
  text += row("progress", progress_words(s));
  text += "\nWhat it takes from this machine\n";
  if (is_known) {
    text += row("memory", memory_words(s, offer)) + row("traffic", traffic_words(s));
  } else {
    text += row("memory", fmt::format("the master, version {}, does not say", printable(s.build)));
  }
  text += row("processor",
              fmt::format("{} (--threads), when no other program wants the processor; --when idle: "
                          "while nobody uses the machine",
                          counted(offer.threads, "thread")));
  text += row("disk", "nothing, unless --cache names a folder (at most --cache-size)");
  text += "\nWhat leaves it\n";
  text +=
      row("its master",
          fmt::format("its name {} (--name), address, threads, lent memory, instruction set and "
                      "speed; pauses with their reason; results of training",
                      offer.name));
  text += row("others", "nothing: no file of this machine is sent, and no code is received");
  return text +
         "\nThis was a question: the machine has not joined. The line without `about` lends "
         "it.\n";
}

}  // namespace gleaner::volunteer
