// The run's page, its API and its metrics, as the run's own code sees them: it hands in what
// happens, and never waits for whoever looks. I/O thread only; the server has a thread of its own,
// which takes what was handed in.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/http/http_server.hpp"
#include "common/model/run_plan.hpp"
#include "common/rates.hpp"
#include "master/core/events.hpp"
#include "master/core/reports.hpp"
#include "master/see/predict_api.hpp"
#include "master/see/run_api.hpp"
#include "master/see/served_program.hpp"

namespace gleaner {

class RunWeb {
 public:
  // Serves at the address, or at one of the next ports when that one is taken; port 0 takes any
  // that is free. Beyond this machine it answers nobody until admit_by(). `desk` answers what is
  // asked of the newest checkpoint; `program` is for machines that have none.
  static Result<std::unique_ptr<RunWeb>> open(const HostPort& address, const ModelConfig& model,
                                              std::unique_ptr<PredictDesk> desk,
                                              std::optional<ServedProgram> program);
  ~RunWeb() = default;
  RunWeb(const RunWeb&) = delete;
  RunWeb& operator=(const RunWeb&) = delete;

  // Whom it shows the run beyond this machine from now on.
  void admit_by(std::shared_ptr<const PageAccess> access);

  // The addresses that people are told.
  [[nodiscard]] PageServed served() const;

  // A run begins, or begins again, with the history that its store has and its latest receipts.
  void begin(RunFacts facts, std::vector<RoundRecord> history,
             std::vector<LoggedReceipts> receipts);
  // Takes news of the core: the history grows by its checkpoints and evaluations.
  void notice(const Notice& notice);
  // Takes an event that people are told.
  void event(const RunEvent& event);

  // Whether it is time for another view: once a second.
  [[nodiscard]] bool is_due(Instant now) const { return now - published_ >= kPeriod; }

  void publish(RunStatus status, std::vector<AccountRecord> accounts, std::vector<BanShown> banned,
               Instant now);
  // No core runs: the disk is full, and `reason` says what is needed.
  void publish_paused(const std::string& reason, Instant now);

 private:
  static constexpr Millis kPeriod{1000};

  RunWeb(const ModelConfig& model, std::unique_ptr<PredictDesk> desk,
         std::optional<ServedProgram> program);
  [[nodiscard]] bool may_predict(bool is_local, std::string_view key) const;
  HttpReply answer(const HttpRequest& request);
  void add_record(RoundRecord record);
  void measure_bytes(PageView& view);
  void hand_in(PageView view);

  RunPlan plan_;
  const InviteSecret key_ = make_page_key();
  bool has_other_port_ = false;
  Instant published_{};
  std::uint64_t version_ = 0;
  PageView last_;
  RoundRecord last_record_;
  TimeSpent time_;
  // Bytes per second are measured over this time.
  RateWindow down_{Millis{10'000}}, up_{Millis{10'000}};
  EventCounts counts_;

  // News that the server's thread has not taken yet; the lock is held for moving pointers alone.
  std::mutex lock_;
  PageNews news_;

  RunApi api_;  // the server's thread's
  std::unique_ptr<PredictDesk> desk_;
  PredictApi predict_;
  const std::optional<ServedProgram> program_;
  std::unique_ptr<HttpServer> server_;  // last: its thread uses what is above
};

}  // namespace gleaner
