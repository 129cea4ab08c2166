// The accounting identity: for every volunteer, units issued = applied + refused + expired +
// outstanding, where issued and outstanding are counted here from the messages that pass. What the
// store has of earlier lives of the master obeys it too.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

using Identity = KeyId;

class AccountChecker : public Checker {
 public:
  AccountChecker(SimLog& log, const ClusterOptions& options)
      : Checker(log), is_wide_(is_wide(options.model)) {}

  void store_opened(RunStore& store) override {
    const auto accounts = store.accounts();
    if (!accounts) return;
    for (const AccountRecord& account : *accounts) {
      if (account.units_issued < account.units + account.units_refused + account.units_expired) {
        fail(fmt::format("accounts: {} is on record with more units ended than issued",
                         account.name));
      }
    }
  }

  void master_gone() override {
    sessions_.clear();
    books_.clear();
  }

  void event(const Event& event) override {
    if (const auto* opened = std::get_if<SessionOpened>(&event)) {
      opened_[opened->session] = opened->standing.identity;
    }
    if (const auto* closed = std::get_if<SessionClosed>(&event)) end_session(closed->session);
    const auto* received = std::get_if<MessageReceived>(&event);
    if (received == nullptr) return;
    if (const auto* result = std::get_if<UnitResult>(&received->message)) {
      answered(received->session, result->unit);
    }
    if (const auto* result = std::get_if<EvalResult>(&received->message)) {
      answered(received->session, result->unit);
    }
    if (const auto* result = std::get_if<InputResult>(&received->message)) {
      answered(received->session, result->unit);
    }
    if (const auto* part = std::get_if<HandOver>(&received->message)) {
      cancelled(received->session, part->lease);
    }
  }

  void effect(const Effect& effect) override {
    if (const auto* close = std::get_if<CloseSession>(&effect)) end_session(close->session);
    if (const auto* task = std::get_if<StorageTask>(&effect)) {
      if (const auto* fold = std::get_if<FoldTask>(task)) handed_in(fold->accounts);
      if (const auto* record = std::get_if<RecordEvaluationTask>(task)) handed_in(record->accounts);
    }
    const auto* send = std::get_if<Send>(&effect);
    if (send == nullptr) return;
    if (std::holds_alternative<Welcome>(send->message)) {
      sessions_[send->session].identity = opened_[send->session];
      opened_.erase(send->session);
    }
    if (const auto* unit = std::get_if<TrainUnit>(&send->message)) sent(send->session, *unit);
    if (const auto* unit = std::get_if<EvalUnit>(&send->message)) sent(send->session, *unit);
    if (const auto* unit = std::get_if<InputUnit>(&send->message)) sent(send->session, *unit);
    if (const auto* revoke = std::get_if<Revoke>(&send->message)) {
      cancelled(send->session, revoke->lease);
    }
  }

  void state(const MasterCore& core) override {
    for (const AccountRecord& account : core.accounts()) {
      const Book& book = books_[account.identity];
      const std::uint64_t ended = account.units + account.units_refused + account.units_expired;
      if (account.units_issued != book.issued || account.units_issued != ended + book.outstanding) {
        fail(
            fmt::format("accounts: {} was sent {} units; its account says {} issued, {} applied, "
                        "{} refused, {} expired, and {} are out",
                        account.name, book.issued, account.units_issued, account.units,
                        account.units_refused, account.units_expired, book.outstanding));
      }
    }
  }

 private:
  struct Book {
    std::uint64_t issued = 0;
    std::uint64_t outstanding = 0;
  };

  struct Session {
    Identity identity;
    std::map<UnitId, std::vector<LeaseRef>> out;
  };

  // From a final record on, the volunteer's account begins again.
  void handed_in(const std::vector<AccountRecord>& accounts) {
    for (const AccountRecord& account : accounts) {
      if (!account.is_final) continue;
      Book& book = books_[account.identity];
      const std::uint64_t ended = account.units + account.units_refused + account.units_expired;
      if (account.units_issued != book.issued || ended != book.issued || book.outstanding != 0) {
        fail(
            fmt::format("accounts: the final one of {} says {} units issued and {} ended; it was "
                        "sent {}, and {} are out",
                        account.name, account.units_issued, ended, book.issued, book.outstanding));
      }
      book = {};
    }
  }

  template <typename Unit>
  void sent(SessionId id, const Unit& unit) {
    Session& session = sessions_[id];
    session.out.emplace(unit.unit, unit.leases);
    Book& book = books_[session.identity];
    ++book.issued;
    ++book.outstanding;
  }

  void answered(SessionId id, UnitId unit) {
    const auto session = sessions_.find(id);
    if (session == sessions_.end() || session->second.out.erase(unit) == 0) return;
    --books_[session->second.identity].outstanding;
  }

  // The lease is over, and so are its units. With a hidden layer they are answered all the same.
  void cancelled(SessionId id, const LeaseRef& lease) {
    const auto session = sessions_.find(id);
    if (!is_wide_ || session == sessions_.end()) return;
    books_[session->second.identity].outstanding -=
        std::erase_if(session->second.out,
                      [&](const auto& unit) { return std::ranges::count(unit.second, lease) > 0; });
  }

  void end_session(SessionId id) {
    opened_.erase(id);
    const auto session = sessions_.find(id);
    if (session == sessions_.end()) return;
    books_[session->second.identity].outstanding -= session->second.out.size();
    sessions_.erase(session);
  }

  const bool is_wide_;
  std::map<SessionId, Identity> opened_;
  std::map<SessionId, Session> sessions_;
  std::map<Identity, Book> books_;  // in this life of the master
};

}  // namespace

std::unique_ptr<Checker> make_account_checker(SimLog& log, const ClusterOptions& options) {
  return std::make_unique<AccountChecker>(log, options);
}

}  // namespace gleaner::sim
