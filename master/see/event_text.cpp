#include "master/see/event_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/text.hpp"
#include "master/see/status_words.hpp"

namespace gleaner {
namespace {

std::string precision_text(const Precision& precision, TextStyle style) {
  return to_text(precision, style.utf8 ? "±" : "+/-");
}

struct EventText {
  TextStyle style;

  std::string operator()(const RecipeChosen& e) const;
  std::string operator()(const RunStarted& e) const;
  std::string operator()(const Listening& e) const;
  std::string operator()(const PageServed& e) const;
  std::string operator()(const VolunteerJoined& e) const;
  std::string operator()(const VolunteerLeft& e) const;
  std::string operator()(const CheckpointSaved& e) const;
  std::string operator()(const Evaluated& e) const;
  std::string operator()(const Paused& e) const;
  std::string operator()(const Resumed& e) const;
  std::string operator()(const RatesCut& e) const;
  std::string operator()(const BackedUp& e) const;
  std::string operator()(const RunStopped& e) const;
  std::string operator()(const RunFinished& e) const;
  std::string operator()(const RunFailed& e) const;
  std::string operator()(const LogLine& e) const;
  [[nodiscard]] std::string below_centroids(const RunFinished& e) const;
};

}  // namespace

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

std::string EventText::operator()(const RecipeChosen& e) const {
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

std::string EventText::operator()(const RunStarted& e) const {
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

std::string EventText::operator()(const Listening& e) const {
  return join_text(e);
}

std::string EventText::operator()(const PageServed& e) const {
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

std::string EventText::operator()(const VolunteerJoined& e) const {
  return fmt::format("{} {}{} joined: {}, {}, {} ({} now)", coloured("+", Colour::kGreen, style),
                     printable(e.name), e.address.empty() ? "" : fmt::format(" ({})", e.address),
                     counted(e.threads, "thread"), printable(e.simd), bytes_shown(e.memory_bytes),
                     counted(e.volunteers, "volunteer"));
}

std::string EventText::operator()(const VolunteerLeft& e) const {
  return fmt::format("{} {} left: {}; {} {} to others ({} now)",
                     coloured("-", Colour::kYellow, style), printable(e.name), printable(e.reason),
                     counted(e.shards, "shard"), e.polite ? "handed over" : "lent again",
                     counted(e.volunteers, "volunteer"));
}

std::string EventText::operator()(const CheckpointSaved& e) const {
  const RoundRecord& record = e.record;
  std::string text = fmt::format("checkpoint {} of {} saved", record.checkpoint, e.rounds);
  if (e.ends_epoch) text += fmt::format(", epoch {} of {} done", record.epoch, e.epochs);
  if (record.loss >= 0) text += fmt::format(": loss {:.4f}", record.loss);
  if (record.active >= 0) {
    text += fmt::format(", {} active neurons an example", rate_shown(record.active));
  }
  if (record.examples_per_second >= 0) {
    text += fmt::format(", {} examples/s", rate_shown(record.examples_per_second));
  }
  return text;
}

std::string EventText::operator()(const Evaluated& e) const {
  const Evaluation& evaluation = e.evaluation;
  const std::string which = evaluation.all_points
                                ? fmt::format("all {}", grouped(evaluation.points))
                                : fmt::format("a sample of {} of {}", grouped(evaluation.points),
                                              grouped(evaluation.test_points));
  return fmt::format("epoch {} of {}: {}  ({} test examples{})", e.epoch, e.epochs,
                     coloured(precision_text(evaluation.precision, style), Colour::kGreen, style),
                     which, e.seconds < 0 ? "" : fmt::format(" in {:.1f} s", e.seconds));
}

std::string EventText::operator()(const Paused& e) const {
  return coloured("paused: ", Colour::kYellow, style) + printable(e.reason) +
         "; training then goes on by itself";
}

std::string EventText::operator()(const Resumed& e) const {
  return fmt::format("There is room on the disk again: training goes on after {}.",
                     seconds_shown(e.seconds));
}

std::string EventText::operator()(const RatesCut& e) const {
  return fmt::format(
      "{}{}. The round is trained again from checkpoint {}, at half the rates from batch {} on "
      "({} in the run).",
      coloured("diverged: ", Colour::kYellow, style), e.what, e.checkpoint, e.batch,
      counted(e.cuts, "such cut"));
}

std::string EventText::operator()(const BackedUp& e) const {
  return fmt::format("checkpoint {} backed up to {} as backup {}: {} in {:.1f} s; {} kept",
                     e.checkpoint, e.folder, e.backup, bytes_shown(e.bytes), e.seconds, e.kept);
}

std::string EventText::operator()(const RunStopped& e) const {
  return fmt::format(
      "Stopped at checkpoint {} of {}: the open round {}. The same command on {} "
      "resumes.",
      e.checkpoint, e.rounds, e.round_finished ? "was finished and saved" : "was given up",
      e.store);
}

std::string EventText::operator()(const RunFinished& e) const {
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
    head += fmt::format("\nThe best P@1, {:.4f}, is that of checkpoint {}{}.", e.best_p_at_1,
                        e.best_checkpoint, e.best_store.empty() ? "" : ", kept as " + e.best_store);
  }
  std::string facts = precision_text(e.precision, style);
  if (e.examples_per_second >= 0)
    facts += fmt::format("; {} examples/s", rate_shown(e.examples_per_second));
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

std::string EventText::below_centroids(const RunFinished& e) const {
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

std::string EventText::operator()(const RunFailed& e) const {
  return coloured("error: ", Colour::kRed, style) + printable(e.error.message);
}

std::string EventText::operator()(const LogLine& e) const {
  if (e.level == LogLevel::kWarning) {
    return coloured("warning: ", Colour::kYellow, style) + printable(e.message);
  }
  if (e.level == LogLevel::kError) {
    return coloured("error: ", Colour::kRed, style) + printable(e.message);
  }
  return printable(e.message);
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
