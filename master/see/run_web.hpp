// The run's page, API and metrics, as the run's code uses them: it hands in news and never waits
// for readers. I/O thread only; the server's own thread takes the news.
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
  // Serves at the address, or at one of the next ports if that port is taken; port 0 takes any free
  // port. Answers nobody beyond this machine until admit_by(). `desk` answers questions to the
  // newest checkpoint. `program` is served to machines without Gleaner.
  static Result<std::unique_ptr<RunWeb>> open(const HostPort& address, const ModelConfig& model,
                                              std::unique_ptr<PredictDesk> desk,
                                              std::optional<ServedProgram> program,
                                              bool takes_invites);
  ~RunWeb() = default;
  RunWeb(const RunWeb&) = delete;
  RunWeb& operator=(const RunWeb&) = delete;

  // Shows the run beyond this machine by the rules of `access` from now on.
  void admit_by(std::shared_ptr<const PageAccess> access);

  // The page's addresses for people.
  [[nodiscard]] PageServed served() const;

  // A run begins, or begins again, with its store's history and latest receipts.
  void begin(RunFacts facts, std::vector<RoundRecord> history,
             std::vector<LoggedReceipts> receipts);
  // Takes a notice of the core: its checkpoints and evaluations extend the history.
  void notice(const Notice& notice);
  // Takes an event for people.
  void event(const RunEvent& event);

  // Whether another view is due: once a second.
  [[nodiscard]] bool is_due(Instant now) const { return now - published_ >= kPeriod; }

  void publish(RunStatus status, std::vector<AccountRecord> accounts, std::vector<BanShown> banned,
               Instant now);
  // The disk is full and no core runs; `reason` tells the needed room.
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
  // The window over which bytes per second are measured.
  RateWindow down_{Millis{10'000}}, up_{Millis{10'000}};
  EventCounts counts_;

  // News that the server's thread has not taken. The lock is held only for moving pointers.
  std::mutex lock_;
  PageNews news_;

  RunApi api_;  // used by the server's thread only
  std::unique_ptr<PredictDesk> desk_;
  PredictApi predict_;
  const std::optional<ServedProgram> program_;
  std::unique_ptr<HttpServer> server_;  // last: its thread uses the members above
};

}  // namespace gleaner
