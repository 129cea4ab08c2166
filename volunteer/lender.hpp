// A volunteer's manners at work: readings of the machine become a verdict, the verdict pauses and
// resumes the client, and a person is told and obeyed over the control socket and on the page. I/O
// thread only.
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

class Lender {
 public:
  struct Options {
    Rules rules;
    Millis keep_shards{15'000};
    std::string root;  // of the files that tell of the machine; empty on a real one
    std::string name;
    std::string master;
    std::string control_path;                    // empty: no socket
    std::string state_folder;                    // for the day's figures; empty: they begin at zero
    std::optional<VolunteerPage::Options> page;  // unset: none
  };

  // All three outlive the guest. The client has not been started.
  Lender(asio::io_context& io, Client& client, LogSink& log, Options options);
  ~Lender();
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

  // To be called after everything that the client does.
  void note(const Snapshot& snapshot, std::uint64_t held_bytes);

  // The machine's state is known: the client may start.
  std::function<void()> on_first_verdict;

 private:
  using Json = nlohmann::ordered_json;

  static constexpr Millis kRateWindow{10'000};

  // Counts of what was done and moved since the last time.
  void count();
  void weigh(Readings readings);
  void apply(Verdict verdict);
  // The first sentence of the status.
  [[nodiscard]] std::string doing(const Verdict& verdict) const;
  // "paused by its owner since 08:37, until somebody resumes it".
  [[nodiscard]] std::string pause_sentence(const Verdict& verdict) const;
  void save_every_minute();
  std::string answer(const std::string& request);
  // Everything that a person is told, but for the page's address.
  Json status() const;
  void open_page(const VolunteerPage::Options& options);
  // Everything but what tells when the machine's owner was there.
  void publish();
  void say(const std::string& sentence, LogLevel level = LogLevel::kDebug);

  asio::io_context& io_;
  Client& client_;
  LogSink& log_;
  const Options options_;
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
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<VolunteerPage> page_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // posted readings hold it weakly
  std::unique_ptr<Watch> watch_;                           // last: it posts to all the others
};

}  // namespace gleaner::volunteer
