#include "master/entrance.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/net/connect.hpp"
#include "common/os/process.hpp"
#include "master/door/advertised_host.hpp"

namespace gleaner {
namespace {

// Bytes of all volunteers' unfinished messages together. Parts of commits and hand-overs are far
// smaller.
constexpr std::size_t kUnfinishedBytesMax = std::size_t{128} << 20;
// Bytes that wait to be sent to all volunteers together, as a multiple of one volunteer's limit.
constexpr std::size_t kFullQueuesMax = 16;

// Limits warnings about failed connections.
constexpr Millis kStrangerLogPeriod{60'000};
constexpr std::size_t kStrangerLogLines = 20;

}  // namespace

TcpLinkOptions link_options(const MasterConfig& config) {
  TcpLinkOptions options;
  options.limits.send_queue_bytes_max = config.network.send_queue_bytes;
  options.limits.pace_in = make_pacer(config.network.limit_down);
  options.limits.pace_out = make_pacer(config.network.limit_up);
  options.limits.budget = std::make_shared<FrameBudget>(kUnfinishedBytesMax);
  options.limits.send_budget =
      std::make_shared<FrameBudget>(kFullQueuesMax * config.network.send_queue_bytes);
  return options;
}

LobbyLimits lobby_limits(const MasterConfig& config) {
  LobbyLimits limits;
  limits.introduction_time_max = config.core.join_timeout;
  limits.waiting_max = config.network.waiting_max;
  limits.waiting_per_address_max = config.network.waiting_per_address_max;
  return limits;
}

Entrance::Entrance(asio::io_context& io, TaskGroup& tasks, MasterConfig& config, std::string store,
                   Console& console)
    : io_(io),
      tasks_(tasks),
      config_(config),
      store_(std::move(store)),
      console_(console),
      stranger_log_(kStrangerLogPeriod, kStrangerLogLines) {}

Result<void> Entrance::open(Observer observer) {
  const bool is_for_others = !config_.network.listen.empty();
  auto where = parse_host_port(is_for_others ? config_.network.listen : "127.0.0.1:0");
  if (!where) return where.error();
  auto acceptor = listen(io_.get_executor(), *where);
  if (!acceptor && !is_for_others) return {};
  if (!acceptor) return acceptor.error();
  acceptor_.emplace(std::move(*acceptor));
  if (is_for_others) config_.network.listen = address();
  if (auto opened = open_gate(std::move(observer.gate)); !opened) return opened;
  os::raise_descriptor_limit();
  TcpLinkOptions options = link_options(config_);
  options.tls = tls_ ? &*tls_ : nullptr;
  Lobby::Observer in_lobby;
  in_lobby.on_introduced = std::move(observer.on_arrival);
  in_lobby.on_turned_away = [this](const std::string& peer, const std::string& reason) {
    warn_of_stranger(peer.empty() ? reason : peer + ": " + reason);
  };
  lobby_.emplace(tasks_, *acceptor_, options, lobby_limits(config_), std::move(in_lobby));
  lobby_->start();
  return {};
}

std::string Entrance::address() const {
  return to_text(acceptor_->local_endpoint());
}

void Entrance::close() {
  if (lobby_) lobby_->stop();
}

std::vector<BanShown> Entrance::bans() const {
  std::vector<BanShown> shown;
  if (!is_open()) return shown;
  for (auto& [key, rule] : gate_->banned()) shown.push_back({to_text(key), rule.name, rule.reason});
  return shown;
}

Result<void> Entrance::open_gate(Gate::Observer observer) {
  const bool is_for_others = !config_.network.listen.empty();
  if (config_.network.insecure && is_for_others) {
    gate_ = Gate::open_to_all();
    console_.log(LogLevel::kWarning,
                 "--insecure: nothing is encrypted, and anybody who reaches the port takes part; "
                 "without this flag, connections are encrypted and take an invite");
  } else {
    auto gate = Gate::open(store_, std::move(observer));
    if (!gate) return gate.error();
    gate_ = std::move(*gate);
    tls_.emplace(*gate_->key());
  }
  return {};
}

Result<void> Entrance::announce() {
  if (config_.network.listen.empty()) return {};
  const auto local = acceptor_->local_endpoint();
  const AdvertisedHost host =
      advertised_host(config_.network.advertise, {local.address().to_string(), local.port()},
                      this_machines_hosts());
  where_ = to_text(host.where);
  const auto join = gate_->listening_at(where_);
  if (!join) return join.error();
  Listening listening{config_.network.listen, join->address, join->is_trusted, host.others,
                      config_.run.store};
  if (config_.network.insecure) listening.join += " --insecure";
  console_.event(listening);
  if (!host.remark.empty()) console_.log(host.level, host.remark);
  if (!join->before.empty()) {
    console_.log(
        LogLevel::kInfo,
        fmt::format("this run's lines named {} until now: volunteers that have such a line "
                    "do not find this master, except by a --line-file with the new line; "
                    "--listen and --advertise give it its old address",
                    join->before));
  }
  return {};
}

void Entrance::keep_out(const KeyId& key, InviteId invite, const std::string& name,
                        const std::string& what) {
  const auto is_suspended = gate_->convict(key, invite, name, "its answers were false: " + what);
  if (!is_suspended) {
    console_.log(LogLevel::kError,
                 fmt::format("the ban of {} could not be stored, so it may come again: {}", name,
                             is_suspended.error().message));
  } else if (*is_suspended) {
    console_.log(
        LogLevel::kWarning,
        fmt::format("invite {} is suspended, since several that came by it gave false answers: "
                    "nobody new comes by it, and those whose work was confirmed may stay. "
                    "`gleaner invite create` makes another one",
                    to_text(invite)));
  }
}

void Entrance::warn_of_stranger(const std::string& text) {
  const std::string peer = text.substr(0, text.find(": "));
  const std::size_t port = peer.rfind(':');
  const bool has_address = port != std::string::npos;
  const std::string address = has_address ? peer.substr(0, port) : std::string();
  const std::string line = has_address ? address + text.substr(peer.size()) : text;
  if (const auto shown = stranger_log_.pass(line, monotonic_now())) {
    console_.event(LogLine{LogLevel::kWarning, *shown, {}, address});
  }
}

}  // namespace gleaner
