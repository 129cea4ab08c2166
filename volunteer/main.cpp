// gleaner-volunteer: wires the parts together.
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/net/stop_signals.hpp"
#include "common/net/tcp_link.hpp"
#include "common/net/tls_context.hpp"
#include "common/result.hpp"
#include "common/train/self_test/self_test.hpp"
#include "schema/question.hpp"
#include "schema/versions.hpp"
#include "volunteer/about.hpp"
#include "volunteer/config.hpp"
#include "volunteer/hello.hpp"
#include "volunteer/lend/control_client.hpp"
#include "volunteer/lend/machine.hpp"
#include "volunteer/lend/schedule.hpp"
#include "volunteer/lend/verbs.hpp"
#include "volunteer/lender.hpp"
#include "volunteer/live_settings.hpp"
#include "volunteer/status_line.hpp"
#include "volunteer/threaded_client.hpp"
#include "volunteer/volunteer_status.hpp"

namespace gleaner::volunteer {
namespace {

[[gnu::used, gnu::retain]] constexpr ProgramMark kMark{ProgramMark().name, kProtocolMin,
                                                       kProtocolMax};

// How long `join` tries to reach the master.
constexpr Millis kReachTime{5'000};

// Sends no invite, since an attempt would use up an invite for one machine.
Result<void> reach_master(const MasterAddress& address) {
  TlsContext tls(KeyPair::make());
  TcpLinkOptions options;
  if (address.secure) {
    options.tls = &tls;
    options.master = address.secure->key;
  }
  return reach_tcp(address.where, kReachTime, options);
}

Result<std::string> tell_about(const MasterAddress& address) {
  const Result<RunStatus> status = ask<RunStatus>(address, observe_by(address));
  if (!status) return status.error();
  return about_text(*status, to_text(address.where), effective_offer({}, machine_facts()));
}

int fail(const Error& error, ExitCode code) {
  std::fprintf(stderr, "gleaner-volunteer: %s\n", error.message.c_str());
  return static_cast<int>(code);
}

// A final refusal counts as a network error, whatever its reason.
int exit_status(const Exit& exit) {
  if (exit.success) return static_cast<int>(ExitCode::kOk);
  return fail(exit.error, ExitCode::kNetwork);
}

void watch_signals(asio::signal_set& signals, Client& client, StatusLine& status,
                   bool is_again = false) {
  signals.async_wait([&, is_again](asio::error_code error, int signal) {
    if (error) return;
    if (!is_again || signal != kHangup) {
      status.log(LogLevel::kInfo, "stopping: handing the shards over first; again to stop at once");
      client.stop("asked to stop");
    }
    watch_signals(signals, client, status, true);
  });
}

// Work at the lowest priority may take for ever, and nobody wants its result.
[[noreturn]] void end_at_once(int status) {
  std::fflush(nullptr);
  note_end(status);
  std::_Exit(status);
}

// The end of the volunteer's time, on the clock of the cores.
std::optional<Instant> end_of_time(const VolunteerConfig& config) {
  const std::int64_t now = wall_seconds();
  const auto until = parse_until(config.until, now);
  if (!until) return std::nullopt;  // empty, since check() has refused errors
  return monotonic_now() + std::chrono::seconds(*until - now);
}

// Gives way to other programs as a process. Each compute thread gives way besides.
void give_way_as_process(const VolunteerConfig& config) {
  give_way_in_memory();
  if (config.nice == kNiceIdle) give_way_as_group("");
}

TcpLinkOptions link_options_of(const LiveSettings& live, TlsContext& tls) {
  TcpLinkOptions options;
  // The results of one piece of work may be a whole shard. The client begins no other work
  // meanwhile.
  options.limits.send_queue_bytes_max = std::numeric_limits<std::size_t>::max();
  options.limits.pace_in = live.down();
  options.limits.pace_out = live.up();
  if (live.address().secure) {
    options.tls = &tls;
    options.master = live.address().secure->key;
  }
  return options;
}

// `live` outlives the client.
ThreadedClient::Options client_options(const VolunteerConfig& config, const VolunteerOffer& offer,
                                       const LiveSettings& live, const KeyPair& key) {
  const MasterAddress& address = live.address();
  ThreadedClient::Options options;
  options.core.hello = make_hello(offer.name, "", offer.threads, offer.memory_bytes);
  options.core.master = to_text(address.where);
  if (address.secure) options.core.master_key = address.secure->key;
  options.on_hello = [&live](Hello& hello) {
    const auto& secure = live.address().secure;
    if (secure) hello.invite = to_text(secure->invite);
  };
  options.core.own_key = key.id();
  options.core.once = config.once;
  options.core.retry_first = Millis(config.retry_ms_min);
  options.core.retry_longest = Millis(config.retry_ms_max);
  if (config.give_up_s) options.core.give_up = Millis(std::int64_t{*config.give_up_s} * 1000);
  options.core.leave_grace = Millis(std::int64_t{config.leave_grace_s} * 1000);
  options.core.until = end_of_time(config);
  options.core.seed = key.id().low;
  options.threads = offer.threads;
  options.nice = config.nice;
  options.pins_threads = config.pins_threads;
  options.memory_bytes = offer.memory_bytes;
  options.points = {config.cache_dir, config.cache_bytes};
  return options;
}

Lender::Options lender_options(const VolunteerConfig& config, const VolunteerOffer& offer,
                               LiveSettings& live, ThreadedClient& client, const KeyPair& key) {
  Lender::Options options;
  options.limits = live.limits();
  options.change = [&](const std::vector<std::string>& flags) {
    Result<Limits> limits = live.change(flags);
    if (limits) client.use_threads(limits->threads);
    return limits;
  };
  options.name = offer.name;
  options.master = to_text(live.address().where);
  // The page's key follows from the volunteer's key, so that a bookmark stays valid.
  if (!config.http.empty()) options.page = {*parse_host_port(config.http), key.derive("page")};
  options.state_folder = config.cache_dir;
  // Tests put a folder in place of the machine.
  const char* root =
      std::getenv("GLEANER_MACHINE_ROOT");  // NOLINT(concurrency-mt-unsafe): one thread
  if (root != nullptr) options.root = root;
  options.control_paths = control_paths(config.control, config.cache_dir);
  return options;
}

// Dials the master, wherever its line says that it is now. Warns once if another master answers or
// is named.
std::function<void(const Client::Dialled&)> dialler(TaskGroup& tasks, LiveSettings& live,
                                                    Millis timeout, TcpLinkOptions options,
                                                    StatusLine& status,
                                                    std::function<void(std::string)> on_move) {
  const auto has_warned = std::make_shared<bool>(false);
  return [&tasks, &live, &status, timeout, options = std::move(options),
          on_move = std::move(on_move), has_warned](const Client::Dialled& on_dialled) {
    const auto warn_once = [&status, has_warned](const Error& error) {
      if (!std::exchange(*has_warned, true)) status.log(LogLevel::kError, error.message);
    };
    const Result<bool> has_moved = live.read_line();
    if (!has_moved) warn_once(has_moved.error());
    if (has_moved && *has_moved) on_move(to_text(live.address().where));
    dial_tcp(tasks, live.address().where, timeout, options,
             [warn_once, on_dialled](Result<std::shared_ptr<Link>> dialled) {
               const bool is_another = !dialled && dialled.error().code == ErrorCode::kIdentity;
               if (is_another) warn_once(dialled.error());
               on_dialled(std::move(dialled));
             });
  };
}

int run(const VolunteerConfig& config, const MasterAddress& address, const KeyPair& key) {
  std::optional<QuietSession> session;
  session.emplace("", config.nice);
  const VolunteerOffer offer = effective_offer(config, machine_facts());
  std::string master = to_text(address.where);
  LiveSettings live(config, offer, address);
  TlsContext tls(key);
  asio::io_context io(1);
  StatusLine status(
      stdout, stderr,
      output_options(terminal_facts(stdout), config.log_format, config.quiet, config.verbose,
                     Journal::behind(stdout, "gleaner-volunteer")),
      [] { return terminal_width(stdout); }, &monotonic_now);
  TaskGroup tasks(io.get_executor(), [&](const std::string& task, const std::string& what) {
    status.log(LogLevel::kError, task + ": " + what);
  });

  std::optional<Exit> exit;
  ThreadedClient::Options options = client_options(config, offer, live, key);
  std::unique_ptr<Lender> lender;
  options.dial = dialler(tasks, live, Millis(config.connect_timeout_ms), link_options_of(live, tls),
                         status, [&](std::string moved) {
                           status.log(LogLevel::kInfo, "the line names " + moved + " now");
                           master = std::move(moved);
                           lender->name_master(master);
                         });
  options.on_change = [&](const Snapshot& snapshot, std::uint64_t held_bytes) {
    if (lender) lender->note(snapshot, held_bytes);
    status.update(status_of(snapshot, master, held_bytes));
  };
  StopSignals signals(io);
  options.on_exit = [&](const Exit& reason) {
    exit = reason;
    signals.cancel();
  };
  {
    ThreadedClient client(io, std::move(options));
    watch_signals(signals, client, status);
    lender = std::make_unique<Lender>(io, client, status,
                                      lender_options(config, offer, live, client, key));
    lender->on_first_verdict = [&] { client.start(); };
    // This thread decrypts and unpacks all data, a fifth of the work. It gives way less than the
    // compute threads: they and the master wait for it. The watch has started already and keeps its
    // priority.
    if (config.nice == kNiceIdle) give_way(kVolunteerNice);
    while (!exit) io.run_one();
    // The last message, for instance a goodbye, still has to leave.
    tasks.cancel();
    client.clock.stop();
    lender.reset();
    io.run_for(std::chrono::seconds(1));
    if (client.is_working()) {
      session.reset();
      end_at_once(exit_status(*exit));
    }
  }
  return exit_status(*exit);
}

int print_self_test() {
  const SelfTestReport report = self_test_report();
  std::fputs(report.text.c_str(), stdout);
  return static_cast<int>(report.is_sound ? ExitCode::kOk : ExitCode::kFailure);
}

int start(std::vector<std::string> arguments) {
  arguments = without_pasted_name(std::move(arguments));
  if (arguments == std::vector<std::string>{"--self-test"}) return print_self_test();
  if (const auto code = run_verb(arguments, &reach_master, &tell_about)) {
    return static_cast<int>(*code);
  }
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
  };
  auto loaded = load_volunteer_config(
      arguments,
      {variable("GLEANER_MASTER"), variable("GLEANER_LINE_FILE"), variable("SLURM_JOB_END_TIME")});
  if (!loaded) return fail(loaded.error(), ExitCode::kUsage);
  if (loaded->to_print) {
    std::fputs(loaded->to_print->c_str(), stdout);
    return static_cast<int>(ExitCode::kOk);
  }
  const Result<std::vector<std::string>> warnings = use_sound_level();
  if (!warnings) return fail(warnings.error(), exit_code_of(warnings.error().code));
  for (const std::string& warning : *warnings) {
    std::fprintf(stderr, "gleaner-volunteer: %s\n", warning.c_str());
  }
  const Result<MasterAddress> address = parse_master_address(loaded->config.master);
  if (!address) return fail(address.error(), ExitCode::kUsage);
  const Result<KeyPair> key = load_identity(loaded->config.cache_dir);
  if (!key) return fail(key.error(), ExitCode::kFailure);
  give_way_as_process(loaded->config);
  return run(loaded->config, *address, *key);
}

}  // namespace
}  // namespace gleaner::volunteer

int main(int argc, char** argv) {
  gleaner::end_in_words("gleaner-volunteer");
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    gleaner::hide_secrets({argv, static_cast<std::size_t>(argc)});
    return gleaner::volunteer::run_as_started(std::move(arguments), &gleaner::volunteer::start);
  } catch (const std::exception&) {
    return gleaner::say_exception(
        "gleaner-volunteer",
        "this machine has less memory than --memory promises, and none was left to go on with. "
        "Nothing is lost: the master lends the shards to others. Start it again with less");
  }
}
