#include "master/see/progress_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/text.hpp"
#include "common/time.hpp"
#include "master/see/status_words.hpp"

namespace gleaner {

std::string command_for_others(const Listening& listening) {
  const bool has_invite = listening.join.find("://") != std::string::npos;
  if (!listening.is_trusted || !has_invite) return {};
  return "gleaner invite create " + listening.store + " --reusable";
}

std::string join_text(const Listening& listening) {
  if (listening.join.empty()) {
    return fmt::format(
        "Listening on {}. No invite is open: `gleaner invite create STORE` makes one",
        listening.address);
  }
  const std::string others = command_for_others(listening);
  std::string text =
      fmt::format("Listening on {}. {} with:\n  gleaner-volunteer {}", listening.address,
                  others.empty() ? "Volunteers join" : "Your own machines join", listening.join);
  if (!others.empty()) {
    text += fmt::format(
        "\nKeep this line to yourself: nobody checks the work of machines that join by it. For "
        "other people:\n  {}",
        others);
  }
  if (!listening.other_hosts.empty()) {
    text += fmt::format("\nWhere that host is not reached, --advertise names another: {}",
                        fmt::join(listening.other_hosts, ", "));
  }
  return text;
}

namespace {

constexpr std::size_t kBarColumnsMin = 8;
constexpr std::size_t kBarColumnsMax = 30;

// One fact of the progress line. The one with the lowest rank gives way first.
struct Part {
  std::string full;
  std::string brief;
  int rank = 0;
  Colour colour = Colour::kNone;
  bool is_brief = false;

  [[nodiscard]] const std::string& text() const { return is_brief ? brief : full; }
};

std::string rate(double value) {
  return grouped(static_cast<std::uint64_t>(std::llround(std::clamp(value, 0.0, 1e15))));
}

double share_done(const RunProgress& s) {
  if (s.batches == 0) return 0;
  return std::min(1.0, static_cast<double>(s.batch) / static_cast<double>(s.batches));
}

// The one at work: the first that is not done.
template <typename Count>
Count current(Count done, Count all) {
  return std::min<Count>(static_cast<Count>(done + 1), all);
}

std::string seconds_shown(double seconds) {
  return duration_words(static_cast<std::uint64_t>(std::llround(std::clamp(seconds, 0.0, 1e12))));
}

void add_position(std::vector<Part>& parts, const RunProgress& s) {
  if (s.stage != RunStage::kTraining) {
    parts.push_back({stage_name(s.stage), stage_name(s.stage), 90, Colour::kYellow});
  }
  if (s.batches == 0) return;
  // Rounded down: 100 % appears when the last batch is done.
  const std::string percent = fmt::format("{}%", static_cast<int>(share_done(s) * 100));
  parts.push_back({percent, percent, 100, Colour::kBold});
  const std::uint32_t epoch = current(s.epoch, s.epochs);
  parts.push_back(
      {fmt::format("epoch {}/{}", epoch, s.epochs), fmt::format("e{}/{}", epoch, s.epochs), 50});
  const RoundIndex round = current(s.round, s.rounds);
  parts.push_back(
      {fmt::format("round {}/{}", round, s.rounds), fmt::format("r{}/{}", round, s.rounds), 45});
  parts.push_back({fmt::format("batch {}/{}", s.batch, s.batches),
                   fmt::format("b{}/{}", s.batch, s.batches), 10});
}

std::vector<Part> parts_of(const RunProgress& s) {
  std::vector<Part> parts;
  add_position(parts, s);
  if (s.examples_per_second >= 0) {
    const std::string speed = rate(s.examples_per_second);
    parts.push_back({speed + " examples/s", speed + " ex/s", 70});
  }
  if (s.loss >= 0) {
    parts.push_back({fmt::format("loss {:.3f}", s.loss), fmt::format("loss {:.2f}", s.loss), 60});
  }
  if (s.precision.is_measured()) {
    const std::string precision = fmt::format("P@1 {:.3f}", s.precision.at_1());
    parts.push_back({precision, precision, 80, Colour::kGreen});
  }
  parts.push_back({counted(s.volunteers, "volunteer"), fmt::format("{} vol", s.volunteers), 55});
  parts.push_back({fmt::format("lag {}", s.staleness), fmt::format("s{}", s.staleness), 20});
  if (s.bytes_down >= 0 && s.bytes_up >= 0) {
    parts.push_back({fmt::format("{:.0f} B down {:.0f} B up an example", s.bytes_down, s.bytes_up),
                     fmt::format("{:.0f}/{:.0f} B", s.bytes_down, s.bytes_up), 30});
  }
  if (s.eta_seconds >= 0 && s.stage != RunStage::kDone) {
    const std::string eta = "ETA " + seconds_shown(s.eta_seconds);
    parts.push_back({eta, eta, 65});
  }
  return parts;
}

constexpr std::size_t kGap = 2;        // columns between parts
constexpr std::size_t kGapNarrow = 1;  // where room is short

std::size_t columns(const std::vector<Part>& parts, std::size_t gap) {
  std::size_t total = 0;
  for (const Part& part : parts) total += display_width(part.text()) + gap;
  return total == 0 ? 0 : total - gap;
}

// Shortens parts in the order of their rank, then moves them together, then drops them in that
// order, until they take at most `width` columns. Returns the gap between them.
std::size_t make_fit(std::vector<Part>& parts, std::size_t width) {
  std::vector<Part*> by_rank;
  by_rank.reserve(parts.size());
  for (Part& part : parts) by_rank.push_back(&part);
  const auto ranks_below = [](const Part& a, const Part& b) { return a.rank < b.rank; };
  std::sort(by_rank.begin(), by_rank.end(),
            [&](const Part* a, const Part* b) { return ranks_below(*a, *b); });
  for (Part* part : by_rank) {
    if (columns(parts, kGap) <= width) return kGap;
    part->is_brief = true;
  }
  if (columns(parts, kGap) <= width) return kGap;
  while (!parts.empty() && columns(parts, kGapNarrow) > width) {
    parts.erase(std::min_element(parts.begin(), parts.end(), ranks_below));
  }
  return kGapNarrow;
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

std::string precision_text(const Precision& precision, TextStyle style) {
  return to_text(precision, style.utf8 ? "±" : "+/-");
}

// ---- Events ------------------------------------------------------------------------------------

struct EventText {
  TextStyle style;

  std::string operator()(const RecipeChosen& e) const {
    std::string text =
        coloured(fmt::format("Recipe {} for these data:", e.recipe), Colour::kBold, style);
    std::size_t width = 0;
    for (const RecipeChosen::Value& value : e.values) {
      width = std::max(width, value.key.size() + value.value.size());
    }
    for (const RecipeChosen::Value& value : e.values) {
      text += fmt::format("\n  {} = {}{:{}}  {}", value.key, value.value, "",
                          width - value.key.size() - value.value.size(), value.why);
    }
    return text;
  }

  std::string operator()(const RunStarted& e) const {
    const RunFacts& run = e.facts;
    const std::string begin =
        e.resumed ? fmt::format("Resuming the run in {} at checkpoint {} of {}.", run.store,
                                e.checkpoint, run.rounds)
                  : fmt::format("New run in {}: {} checkpoints to make.", run.store, run.rounds);
    return fmt::format(
        "{}\n{} training examples, {} test examples, {} features, {} labels; {}, {} output shards, "
        "{} epochs, batches of {}, {}seed {}",
        coloured(begin, Colour::kBold, style), grouped(run.points), grouped(run.test_points),
        grouped(run.features), grouped(run.labels),
        run.hidden == 0 ? "no hidden layer" : fmt::format("{} hidden units", run.hidden),
        run.output_shards, run.epochs, run.batch_examples,
        run.hidden == 0 ? "" : fmt::format("lag {}, ", run.staleness), run.seed);
  }

  std::string operator()(const Listening& e) const { return join_text(e); }

  std::string operator()(const PageServed& e) const {
    std::string page = "See the run at " + e.url + (e.key.empty() ? "" : "/#" + e.key);
    if (e.has_other_port) page += " (the port that was asked for is taken)";
    if (!e.others.empty()) page += "\nOther machines see it at " + address_for_others(e);
    if (!e.others.empty() && e.takes_invite) {
      page += ", with an invite from:\n  gleaner invite create STORE --role observer --reusable";
    }
    if (!e.program) return page;
    return fmt::format(
        "{}\nA machine ({} Linux) without Gleaner gets the program from HOST, which is this one:\n"
        "  ssh HOST curl -sS {} > gleaner-volunteer &&\n"
        "  echo '{}  gleaner-volunteer' | sha256sum -c && chmod +x gleaner-volunteer",
        page, e.program->machine, e.program->url, e.program->sha256);
  }

  std::string operator()(const VolunteerJoined& e) const {
    return fmt::format("{} {}{} joined: {}, {}, {} ({} now)", coloured("+", Colour::kGreen, style),
                       printable(e.name), e.address.empty() ? "" : fmt::format(" ({})", e.address),
                       counted(e.threads, "thread"), printable(e.simd), bytes_shown(e.memory_bytes),
                       counted(e.volunteers, "volunteer"));
  }

  std::string operator()(const VolunteerLeft& e) const {
    return fmt::format("{} {} left: {}; {} {} to others ({} now)",
                       coloured("-", Colour::kYellow, style), printable(e.name),
                       printable(e.reason), counted(e.shards, "shard"),
                       e.polite ? "handed over" : "lent again", counted(e.volunteers, "volunteer"));
  }

  std::string operator()(const CheckpointSaved& e) const {
    const RoundRecord& record = e.record;
    std::string text = fmt::format("checkpoint {} of {} saved", record.checkpoint, e.rounds);
    if (e.ends_epoch) text += fmt::format(", epoch {} of {} done", record.epoch, e.epochs);
    if (record.loss >= 0) text += fmt::format(": loss {:.4f}", record.loss);
    if (record.active >= 0) {
      text += fmt::format(", {} active neurons an example", rate(record.active));
    }
    if (record.examples_per_second >= 0) {
      text += fmt::format(", {} examples/s", rate(record.examples_per_second));
    }
    return text;
  }

  std::string operator()(const Evaluated& e) const {
    const Evaluation& evaluation = e.evaluation;
    const std::string which = evaluation.all_points
                                  ? fmt::format("all {}", grouped(evaluation.points))
                                  : fmt::format("a sample of {} of {}", grouped(evaluation.points),
                                                grouped(evaluation.test_points));
    return fmt::format("epoch {} of {}: {}  ({} test examples{})", e.epoch, e.epochs,
                       coloured(precision_text(evaluation.precision, style), Colour::kGreen, style),
                       which, e.seconds < 0 ? "" : fmt::format(" in {:.1f} s", e.seconds));
  }

  std::string operator()(const Paused& e) const {
    return coloured("paused: ", Colour::kYellow, style) + printable(e.reason) +
           "; free some: training then goes on by itself";
  }

  std::string operator()(const Resumed& e) const {
    return fmt::format("There is room on the disk again: training goes on after {}.",
                       seconds_shown(e.seconds));
  }

  std::string operator()(const RatesCut& e) const {
    return fmt::format(
        "{}{}. The round is trained again from checkpoint {}, at half the rates from batch {} on "
        "({} in the run).",
        coloured("diverged: ", Colour::kYellow, style), e.what, e.checkpoint, e.batch,
        counted(e.cuts, "such cut"));
  }

  std::string operator()(const BackedUp& e) const {
    return fmt::format("checkpoint {} backed up to {} as backup {}: {} in {:.1f} s; {} kept",
                       e.checkpoint, e.folder, e.backup, bytes_shown(e.bytes), e.seconds, e.kept);
  }

  std::string operator()(const RunStopped& e) const {
    return fmt::format(
        "Stopped at checkpoint {} of {}: the open round {}. The same command on {} "
        "resumes.",
        e.checkpoint, e.rounds, e.round_finished ? "was finished and saved" : "was given up",
        e.store);
  }

  std::string operator()(const RunFinished& e) const {
    std::string head = e.already ? fmt::format("The run in {} is finished already.", e.store)
                                 : fmt::format("Finished {}.", counted(e.epochs, "epoch"));
    if (e.evaluations_since_best > 0) {
      head += fmt::format(
          "\nEnded early: P@1 has not risen in {} (--patience 0 trains to the end). The best, "
          "{:.4f}, "
          "is checkpoint {}{}.",
          counted(e.evaluations_since_best, "evaluation"), e.best_p_at_1, e.best_checkpoint,
          e.best_store.empty() ? "" : ", kept as " + e.best_store);
    } else if (e.best_checkpoint > 0 && e.best_checkpoint < e.checkpoint) {
      head +=
          fmt::format("\nThe best P@1, {:.4f}, is that of checkpoint {}{}.", e.best_p_at_1,
                      e.best_checkpoint, e.best_store.empty() ? "" : ", kept as " + e.best_store);
    }
    std::string facts = precision_text(e.precision, style);
    if (e.examples_per_second >= 0)
      facts += fmt::format("; {} examples/s", rate(e.examples_per_second));
    if (e.seconds >= 0) facts += fmt::format("; {}", seconds_shown(e.seconds));
    std::string text =
        fmt::format("{}\n{}\nmodel digest {}  (checkpoint {} in {})",
                    coloured(head, Colour::kBold, style), facts, e.digest, e.checkpoint, e.store);
    if (e.centroids && e.centroids->network_is_below()) text += below_centroids(e);
    if (e.precision.is_measured() && !e.evaluated_all && !e.test.empty()) {
      text += fmt::format(
          "\nThe precisions above are of a sample of {} test examples. To score all {}, run: "
          "gleaner evaluate {} --data {}",
          grouped(e.evaluated), grouped(e.test_points), e.store, e.test);
    }
    return text;
  }

  [[nodiscard]] std::string below_centroids(const RunFinished& e) const {
    const char* const flag = e.evaluations_since_best > 0 ? "--patience" : "--epochs";
    const bool is_best = e.recipe == "best";
    return fmt::format(
        "\n{}the network is worse than the nearest label centroid, which needs no training: P@1 "
        "{:.4f} against {:.4f} on the same {} test examples. Train it for more epochs (the same "
        "command with a higher {}){}.",
        coloured("warning: ", Colour::kYellow, style), e.centroids->network_p_at_1,
        e.centroids->centroid_p_at_1, grouped(e.centroids->examples), flag,
        is_best ? "" : ", or begin a new run with --recipe best");
  }

  std::string operator()(const RunFailed& e) const {
    return coloured("error: ", Colour::kRed, style) + printable(e.error.message);
  }

  std::string operator()(const LogLine& e) const {
    if (e.level == LogLevel::kWarning) {
      return coloured("warning: ", Colour::kYellow, style) + printable(e.message);
    }
    if (e.level == LogLevel::kError) {
      return coloured("error: ", Colour::kRed, style) + printable(e.message);
    }
    return printable(e.message);
  }
};

}  // namespace

std::string progress_line(const RunProgress& run, unsigned width, TextStyle style) {
  if (!run.waiting_for.empty()) {
    std::string text = "waiting for " + printable(run.waiting_for);
    if (run.rounds > 0) {
      text += fmt::format("  (round {} of {}, {})", current(run.round, run.rounds), run.rounds,
                          counted(run.volunteers, "volunteer"));
    }
    return coloured(fit(text, width, style), Colour::kYellow, style);
  }
  std::vector<Part> parts = parts_of(run);
  const std::size_t gap = make_fit(parts, width);
  std::string line;
  const std::size_t used = columns(parts, gap);
  if (run.batches > 0 && used + gap + kBarColumnsMin <= width) {
    line = bar(share_done(run), std::min(kBarColumnsMax, width - used - gap), style);
  }
  for (const Part& part : parts) {
    if (!line.empty()) line += std::string(gap, ' ');
    line += coloured(part.text(), part.colour, style);
  }
  return line;
}

std::string progress_log_line(const RunProgress& run) {
  std::string line;
  if (!run.waiting_for.empty()) line = "waiting for " + printable(run.waiting_for);
  for (const Part& part : parts_of(run)) line += (line.empty() ? "" : ", ") + part.full;
  return line;
}

std::string event_line(const RunEvent& event, TextStyle style) {
  return std::visit(EventText{style}, event);
}

LogLevel importance(const RunEvent& event) {
  if (const auto* line = std::get_if<LogLine>(&event)) return line->level;
  if (const auto* saved = std::get_if<CheckpointSaved>(&event)) {
    // A round may last a second: only the ends of epochs are news to everybody.
    return saved->ends_epoch ? LogLevel::kInfo : LogLevel::kDebug;
  }
  if (is_one_of<RunFailed>(event)) return LogLevel::kError;
  return is_one_of<Evaluated, Paused, Resumed, RatesCut, RunStopped, RunFinished>(event)
             ? LogLevel::kWarning
             : LogLevel::kInfo;
}

}  // namespace gleaner
