// gleaner relay: one connection to a master for all volunteers of a site.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <asio/io_context.hpp>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "common/access/addresses.hpp"
#include "common/access/secret_file.hpp"
#include "common/console/terminal.hpp"
#include "common/host_port.hpp"
#include "common/net/connect.hpp"
#include "common/net/io_clock_and_threads.hpp"
#include "common/net/lobby.hpp"
#include "common/net/stop_signals.hpp"
#include "common/net/tcp_link.hpp"
#include "common/net/tls_context.hpp"
#include "common/os/process.hpp"
#include "master/door/advertised_host.hpp"
#include "master/door/gate.hpp"
#include "schema/versions.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/relay/relay.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kLineBytesMax = 1024;
constexpr Millis kConnectMax{10'000};
constexpr Millis kCountsPeriod{60'000};
constexpr Millis kFarewell{2'000};

constexpr const char* kFooter =
    "The relay joins the master by its line and prints a line of its own, by which the volunteers\n"
    "of the site join: they are trusted as it is. Where that is not at all, their work is "
    "audited,\n"
    "and nothing is summed.\n\n"
    "Examples:\n"
    "  gleaner relay line --listen 0.0.0.0:7071\n"
    "  gleaner relay gleaner://MASTER:7070/KEY.INVITE --name attic\n"
    "  gleaner-volunteer gleaner://RELAY:7071/KEY.INVITE      on each machine of the site\n\n"
    "Exit status: 0 done, as the run is or as it was asked to stop, 1 failure of the system, 2 "
    "usage,\n"
    "5 the master refuses it.";

struct RelayFlags {
  std::string line;
  std::string listen = "0.0.0.0:7071";
  std::string folder = "gleaner-relay";
  std::string name;
  std::string advertise;
  bool json = false;
};

void say(LogLevel level, const std::string& text) {
  print_error(
      fmt::format("gleaner relay: {}{}", level >= LogLevel::kWarning ? "warning: " : "", text));
}

// The address in the line itself, or in the file that holds it.
Result<MasterAddress> read_line(const std::string& what) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(what, error)) return parse_master_address(what);
  auto text = read_secret_file(what, kLineBytesMax, SecretFrom::kMount);
  if (!text) return text.error();
  return parse_master_address(address_in(text->value_or("")));
}

class RelayProgram {
 public:
  RelayProgram(const RelayFlags& flags, MasterAddress master)
      : flags_(flags),
        master_(std::move(master)),
        tasks_(io_.get_executor(),
               [](const std::string& task, const std::string& what) {
                 say(LogLevel::kError, task + ": " + what);
               }),
        signals_(io_),
        clock_(io_) {}

  Result<void> run() {
    if (auto opened = open(); !opened) return opened;
    relay_.emplace(clock_, options());
    lobby_->start();
    relay_->start();
    signals_.async_wait([this](asio::error_code error, int) {
      if (!error) relay_->stop();
    });
    tell_counts();
    while (!ended_) io_.run_one();
    signals_.cancel();
    lobby_->stop();
    clock_.stop();
    io_.run_for(kFarewell);
    tasks_.cancel();
    io_.poll();
    return *ended_;
  }

 private:
  Result<void> open() {
    const auto address = parse_host_port(flags_.listen);
    if (!address) return address.error();
    std::error_code error;
    if (std::filesystem::create_directories(flags_.folder, error)) {
      std::filesystem::permissions(flags_.folder, std::filesystem::perms::owner_all, error);
    }
    if (error) return Error{ErrorCode::kIo, flags_.folder + ": " + error.message()};
    if (master_.secure) {
      auto gate = Gate::open(flags_.folder, {});
      if (!gate) return gate.error();
      gate_ = std::move(*gate);
      tls_.emplace(*gate_->key());
    } else {
      gate_ = Gate::open_to_all();
    }
    auto acceptor = listen(io_.get_executor(), *address);
    if (!acceptor) return acceptor.error();
    acceptor_.emplace(std::move(*acceptor));
    os::raise_descriptor_limit();
    Lobby::Observer in_lobby;
    in_lobby.on_introduced = [this](Arrival arrival) { relay_->receive(std::move(arrival)); };
    in_lobby.on_turned_away = [](const std::string& peer, const std::string& reason) {
      say(LogLevel::kWarning, peer.empty() ? reason : peer + ": " + reason);
    };
    lobby_.emplace(tasks_, *acceptor_, link_options(), LobbyLimits{}, std::move(in_lobby));
    return announce();
  }

  Result<void> announce() {
    const auto local = acceptor_->local_endpoint();
    const AdvertisedHost host = advertised_host(
        flags_.advertise, {local.address().to_string(), local.port()}, this_machines_hosts());
    const auto join = gate_->listening_at(to_text(host.where));
    if (!join) return join.error();
    const std::string line = join->address + (master_.secure ? "" : " --insecure");
    auto printed = print_done(flags_.json, "relay", to_text(master_.where), {{"join", line}},
                              "gleaner-volunteer " + line + "\n");
    if (!printed && !is_reader_lost(printed)) return printed;
    std::fflush(stdout);
    if (!host.remark.empty()) say(host.level, host.remark);
    return {};
  }

  TcpLinkOptions link_options() {
    TcpLinkOptions options;
    // All volunteers' commits may wait at once.
    options.limits.send_queue_bytes_max = std::numeric_limits<std::size_t>::max();
    options.tls = tls_ ? &*tls_ : nullptr;
    return options;
  }

  Relay::Options options() {
    TcpLinkOptions to_master = link_options();
    std::string invite;
    if (master_.secure) {
      to_master.master = master_.secure->key;
      invite = to_text(master_.secure->invite);
    }
    Relay::Options options;
    options.hello = {kProtocolMin, kProtocolMax, kBuildVersion,
                     flags_.name.empty() ? this_machines_hosts().name : flags_.name, invite};
    options.dial = [this, to_master](const Relay::Dialled& on_dialled) {
      dial_tcp(tasks_, master_.where, kConnectMax, to_master, on_dialled);
    };
    options.admit = [this](const Arrival& arrival,
                           const Hello& hello) -> std::variant<KeyId, Message> {
      auto verdict =
          gate_->admit(arrival.key, arrival.peer, Message(hello), wall_seconds(), monotonic_now());
      if (auto* last = std::get_if<Message>(&verdict)) return std::move(*last);
      say(LogLevel::kInfo, fmt::format("{} ({}) has come", hello.name, arrival.peer));
      return std::get<Standing>(verdict).identity;
    };
    options.on_log = &say;
    options.on_exit = [this](Result<void> how) { ended_ = std::move(how); };
    options.seed = static_cast<std::uint64_t>(wall_seconds());
    return options;
  }

  // Shows people the bytes on either side.
  void tell_counts() {
    clock_.after(kCountsPeriod, [this] {
      const Relay::Counts& now = relay_->counts();
      if (now.volunteers > 0) {
        say(LogLevel::kInfo,
            fmt::format("{} volunteers; {} from the master and {} to it, {} to volunteers and {} "
                        "from them",
                        now.volunteers, bytes_shown(now.from_master), bytes_shown(now.to_master),
                        bytes_shown(now.to_volunteers), bytes_shown(now.from_volunteers)));
      }
      gate_->tick(wall_seconds());
      tell_counts();
    });
  }

  const RelayFlags& flags_;
  const MasterAddress master_;
  asio::io_context io_{1};
  std::unique_ptr<Gate> gate_;
  std::optional<TlsContext> tls_;  // outlives the links
  TaskGroup tasks_;
  StopSignals signals_;
  IoClock clock_;
  std::optional<asio::ip::tcp::acceptor> acceptor_;
  std::optional<Lobby> lobby_;
  std::optional<Relay> relay_;
  std::optional<Result<void>> ended_;
};

int run(const RelayFlags& flags) {
  auto master = read_line(flags.line);
  if (!master) {
    say(LogLevel::kError, master.error().message);
    return static_cast<int>(ExitCode::kUsage);
  }
  const Result<void> ended = RelayProgram(flags, std::move(*master)).run();
  if (ended) return static_cast<int>(ExitCode::kOk);
  say(LogLevel::kError, ended.error().message);
  return static_cast<int>(ended.error().code == ErrorCode::kIo ? ExitCode::kFailure
                                                               : ExitCode::kNetwork);
}

}  // namespace

void add_relay_command(CLI::App& app, int& exit_status) {
  CLI::App* const relay =
      app.add_subcommand("relay", "Carry many volunteers over one connection to their master.");
  const auto flags = std::make_shared<RelayFlags>();
  relay->add_option("LINE", flags->line, "the line that the master prints, or a file with it")
      ->required();
  relay->add_option("--listen", flags->listen, "where its volunteers join")->capture_default_str();
  relay->add_option("--dir", flags->folder, "folder of its key and its invites")
      ->capture_default_str();
  relay->add_option("--name", flags->name, "for people; unset: the machine's");
  relay->add_option("--advertise", flags->advertise,
                    "host that the line names; unset: an address of this machine");
  relay->add_flag("--json", flags->json, "one JSON object");
  relay->footer(kFooter);
  relay->callback([flags, &exit_status] { exit_status = run(*flags); });
}

}  // namespace gleaner
