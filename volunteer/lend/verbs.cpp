#include "volunteer/lend/verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/settings/settings_value.hpp"
#include "volunteer/lend/control_client.hpp"
#include "volunteer/lend/schedule.hpp"
#include "volunteer/lend/session_helper.hpp"
#include "volunteer/lend/work_record.hpp"

namespace gleaner::volunteer {
namespace {

using Json = nlohmann::ordered_json;

struct Verb {
  const char* name;
  const char* doc;
};

constexpr Verb kVerbs[] = {
    {"about", "tell what a run is and takes, without joining it: about gleaner://..."},
    {"join", "lend this machine by its service, at once and at every start: join gleaner://..."},
    {"leave", "undo join: hand over, and lend this machine no more"},
    {"status", "say what it does, why and until when; --json for programs"},
    {"pause", "compute nothing until `resume`"},
    {"resume", "take `pause` and `snooze` back"},
    {"snooze", "compute nothing for a while: snooze 2h"},
    {"set", "change limits until it ends: set --threads 2 --hours 19-7"},
    {"finish", "hand the shards over, however long it takes, and end"},
    {"log", "print what it decided lately"},
    {"identity", "show its key; identity export|import FILE --cache DIR moves it"},
    {"session-helper", "tell it of input in this X11 session; Windows: show its icon"},
};

struct Flags {
  std::string verb;
  std::string operand;  // snooze's time, the line of join and about
  std::string control;
  std::string cache;
  std::vector<std::string> words;  // of set and identity
  bool json = false;
  bool insecure = false;
};

// Returns the sentence of an error, if any.
std::optional<std::string> read_flags(const std::vector<std::string>& arguments, Flags& flags) {
  flags.verb = arguments[0];
  const bool takes_line = flags.verb == "join" || flags.verb == "about";
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    std::string* target = argument == "--control" ? &flags.control
                          : argument == "--cache" ? &flags.cache
                                                  : nullptr;
    if (target != nullptr) {
      if (i + 1 == arguments.size()) return argument + " needs a path";
      *target = arguments[++i];
    } else if (argument == "--json") {
      flags.json = true;
    } else if (argument == "--insecure" && flags.verb == "about") {
      flags.insecure = true;
    } else if ((flags.verb == "snooze" || takes_line) && !argument.starts_with('-')) {
      // "2 hours" is two words. A pasted command is several.
      flags.operand += (flags.operand.empty() ? "" : " ") + argument;
    } else if (flags.verb == "set" || (flags.verb == "identity" && !argument.starts_with('-'))) {
      flags.words.push_back(argument);
    } else {
      const bool is_time = flags.verb == "pause" && parse_duration(argument);
      return fmt::format("{} takes no '{}'{}", flags.verb, argument,
                         is_time ? "; did you mean snooze " + argument + "?" : "");
    }
  }
  return std::nullopt;
}

ExitCode fail(const std::string& sentence, ExitCode code) {
  std::fprintf(stderr, "gleaner-volunteer: %s\n", sentence.c_str());
  return code;
}

// The first word is a verb or the master's address, which has a port. Any other word is a typing
// error.
std::optional<ExitCode> fail_if_meant(const std::string& word) {
  if (word.starts_with('-') || word.find(':') != std::string::npos) return std::nullopt;
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  std::string meant = did_you_mean(word, names);
  if (word == "stop" || word == "quit" || word == "end") meant = "; did you mean 'finish'?";
  if (word == "limit" || word == "limits") meant = "; did you mean 'set'?";
  if (meant.empty()) return std::nullopt;
  return fail(fmt::format("there is no verb '{}'{}", word, meant), ExitCode::kUsage);
}

// Asks at the first path where a volunteer answers.
Result<std::string> ask_first(const Flags& flags, const std::string& request) {
  std::string tried;
  for (const std::string& path : paths_to_ask(flags.control, flags.cache)) {
    Result<std::string> answer = ask_volunteer(path, request);
    if (answer) return answer;
    tried += (tried.empty() ? "" : "; ") + answer.error().message;
  }
  return Error{ErrorCode::kIo,
               "no volunteer answers: " + tried +
                   ". Give the --control PATH or --cache DIR of the volunteer; only root or an "
                   "administrator can ask the service"};
}

ExitCode print_about(const Flags& flags, const Tell& tell) {
  const auto address = parse_master_address(address_in(flags.operand));
  if (!address) return fail(address.error().message, ExitCode::kUsage);
  if (auto fits = check_secrecy(*address, flags.insecure); !fits) {
    return fail(fits.error().message, ExitCode::kUsage);
  }
  const Result<std::string> told = tell(*address);
  if (!told) return fail(told.error().message, ExitCode::kNetwork);
  std::fputs(told->c_str(), stdout);
  return ExitCode::kOk;
}

// A verb that asks no volunteer; nullopt for others.
std::optional<Result<std::string>> run_alone(const Flags& flags, const Reach& reach) {
  if (flags.verb == "identity") return identity(flags.words, flags.cache);
  if (flags.verb == "join") return join(flags.operand, line_file(), this_machine(reach));
  if (flags.verb == "leave") return leave(line_file(), this_machine(reach));
  return std::nullopt;
}

}  // namespace

std::string reach_sentence(const MasterAddress& address, const Result<void>& reached) {
  const std::string where = to_text(address.where);
  if (reached) return fmt::format("The master at {} answers.\n", where);
  std::string text =
      fmt::format("cannot reach {} yet: {}.\n", where, cause_of(reached.error().message, where));
  if (reached.error().code == ErrorCode::kIdentity) return text;
  if (is_loopback(address.where.host)) {
    return text +
           fmt::format(
               "{} is this machine itself. If the master runs on another one, ask for a line "
               "that names it: its owner starts it with --listen 0.0.0.0:{} or --advertise.\n",
               address.where.host, address.where.port);
  }
  return text + fmt::format(
                    "Is the master running, does it have that address from here, and does its "
                    "firewall let TCP port {} through?\n",
                    address.where.port);
}

std::string verbs_help() {
  std::string text;
  for (const Verb& verb : kVerbs) text += fmt::format("  {:<16}{}\n", verb.name, verb.doc);
  return text;
}

std::vector<std::string> without_pasted_name(std::vector<std::string> arguments) {
  const auto is_word = [](const std::string& word) {
    return word != "sudo" && word != "gleaner-volunteer";
  };
  arguments.erase(arguments.begin(), std::ranges::find_if(arguments, is_word));
  return arguments;
}

std::optional<ExitCode> run_verb(const std::vector<std::string>& arguments, const Reach& reach,
                                 const Tell& tell) {
  if (arguments.empty()) return std::nullopt;
  const bool is_verb = std::any_of(std::begin(kVerbs), std::end(kVerbs),
                                   [&](const Verb& verb) { return arguments[0] == verb.name; });
  if (!is_verb) return fail_if_meant(arguments[0]);
  if (std::ranges::count(arguments, "--help") + std::ranges::count(arguments, "-h") > 0) {
    std::printf("gleaner-volunteer VERB [--control PATH] [--cache DIR] [--json]\n%s",
                verbs_help().c_str());
    return ExitCode::kOk;
  }
  Flags flags;
  if (const auto wrong = read_flags(arguments, flags)) return fail(*wrong, ExitCode::kUsage);
  if (flags.verb == "about") return print_about(flags, tell);
  if (const auto done = run_alone(flags, reach)) {
    if (!*done) return fail(done->error().message, exit_code_of(done->error().code));
    std::fputs((*done)->c_str(), stdout);
    return ExitCode::kOk;
  }
  if (flags.verb == "session-helper") {
    const Error ended = help_session(paths_to_ask(flags.control, flags.cache));
    return fail(ended.message, ExitCode::kFailure);
  }
  Json request = {{"verb", flags.verb}};
  if (flags.verb == "snooze") {
    const auto duration = parse_duration(flags.operand);
    if (!duration) {
      return fail("snooze needs a time from 1 s to 30 d, as in: snooze 2h", ExitCode::kUsage);
    }
    request["seconds"] = duration->count() / 1000;
  }
  if (flags.verb == "set") {
    if (flags.words.empty()) {
      return fail("set needs flags, as in: set --threads 2 --hours 19-7", ExitCode::kUsage);
    }
    request["flags"] = flags.words;
  }
  Result<std::string> answer = ask_first(flags, request.dump());
  if (const auto kept = kept_thanks(flags.cache); !answer && flags.verb == "log" && !kept.empty()) {
    answer = Json{{"log", kept}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  if (!answer) return fail(answer.error().message, ExitCode::kFailure);
  const Json json = Json::parse(*answer, nullptr, false);
  if (json.is_object() && json.contains("error") && json["error"].is_string()) {
    return fail(json["error"].get<std::string>(), ExitCode::kFailure);
  }
  if (flags.json) {
    std::printf("%s\n", answer->c_str());
  } else if (flags.verb == "log" && json.is_object() && json.contains("log")) {
    for (const Json& line : json["log"]) {
      if (line.is_string()) std::printf("%s\n", line.get<std::string>().c_str());
    }
  } else {
    std::fputs(status_table(*answer).c_str(), stdout);
  }
  return ExitCode::kOk;
}

}  // namespace gleaner::volunteer
