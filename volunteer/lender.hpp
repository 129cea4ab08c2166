// Lends the machine: readings of the machine give a verdict, the verdict pauses and resumes the
// client, and the owner commands over the control socket and the page. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/console/log.hpp"
#include "common/net/io_clock_and_threads.hpp"
#include "common/rates.hpp"
#include "volunteer/client.hpp"
#include "volunteer/lend/control_server.hpp"
#include "volunteer/lend/pause_policy.hpp"
#include "volunteer/lend/volunteer_page.hpp"
#include "volunteer/lend/watch.hpp"
#include "volunteer/lend/work_record.hpp"

namespace gleaner::volunteer {

// The settings that a lender obeys, and changes while it works.
struct Limits {
  Rules rules;
  Millis keep_shards{15'000};
  std::uint32_t threads = 1;
};

class Lender {
 public:
  struct Options {
    Limits limits;
    // Applies flags to the settings and returns the new limits.
    std::function<Result<Limits>(const std::vector<std::string>&)> change;
    std::string root;  // prefix of the machine's files; empty on a real machine
    std::string name;
    std::string master;
    std::vector<std::string> control_paths;      // of the sockets, where they can be had
    std::string state_folder;                    // of the day's figures; empty: they begin at zero
    std::optional<VolunteerPage::Options> page;  // unset: none
  };

  // All three outlive the lender. The client has not been started.
  Lender(asio::io_context& io, Client& client, LogSink& log, Options options);
  ~Lender();
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

  // To be called after every event of the client.
  void note(const Snapshot& snapshot, std::uint64_t held_bytes);

  // The master has moved to this HOST:PORT.
  void name_master(std::string master) { options_.master = std::move(master); }

  // Called when the machine's state is known: the client may start.
  std::function<void()> on_first_verdict;

 private:
  using Json = nlohmann::ordered_json;

  static constexpr Millis kRateWindow{10'000};

  // Counts work and traffic since the last call.
  void count();
  void weigh(Readings readings);
  void apply(Verdict verdict);
  // The first sentence of the status.
  [[nodiscard]] std::string doing(const Verdict& verdict) const;
  // "paused by its owner since 08:37, until somebody resumes it".
  [[nodiscard]] std::string pause_sentence(const Verdict& verdict) const;
  void save_every_minute();
  std::string answer(const std::string& request);
  // The owner's flags.
  Result<void> change(const Json& request);
  // The status for the owner, without the page's address.
  Json status() const;
  void open_page(const VolunteerPage::Options& options);
  // Publishes the status without the times of the owner's presence.
  void publish();
  void say(const std::string& sentence, LogLevel level = LogLevel::kDebug);

  asio::io_context& io_;
  Client& client_;
  LogSink& log_;
  Options options_;
  PausePolicy pause_policy_;
  DayLedger ledger_;
  Readings readings_;
  std::optional<Verdict> verdict_;
  std::int64_t paused_at_ = 0;  // wall clock, of the present pause
  Snapshot snapshot_;
  std::uint64_t held_bytes_ = 0;
  std::deque<std::string> said_;
  RateWindow examples_{kRateWindow}, up_{kRateWindow}, down_{kRateWindow};
  Instant published_{};
  IoClock clock_;
  std::vector<std::unique_ptr<ControlServer>> servers_;
  std::unique_ptr<VolunteerPage> page_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // posted readings hold it weakly
  std::unique_ptr<Watch> watch_;                           // last: it posts to all others
};

}  // namespace gleaner::volunteer
