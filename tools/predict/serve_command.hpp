// `gleaner serve`: who may ask a served model (whoever uses this machine, whoever shows the token
// of a file, or everybody), and the histories that its page compares.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/access/standing.hpp"
#include "common/host_port.hpp"
#include "common/http/admission.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "master/see/history_series.hpp"

namespace gleaner {

struct ServeAccessFlags {
  std::string http;        // ADDRESS:PORT
  std::string token_file;  // empty: no token is asked for
  bool is_public = false;
};

// Where the server listens. kInvalidArgument for an address that other machines reach where the
// flags do not say who is answered there.
Result<HostPort> serve_address(const ServeAccessFlags& flags);

// Any thread may ask whom it admits.
class ServeAccess {
 public:
  // Reads the token, and makes the file where there is none.
  static Result<std::unique_ptr<ServeAccess>> open(const ServeAccessFlags& flags);

  [[nodiscard]] HttpReach reach() const { return reach_; }

  // In a time that does not depend on where the token differs.
  [[nodiscard]] bool admits(std::string_view token) const;

  // Reads the file again. After an error the earlier token still holds.
  Result<void> reload();

 private:
  explicit ServeAccess(const ServeAccessFlags& flags);

  const std::string file_;
  const HttpReach reach_;
  mutable std::mutex lock_;
  InviteSecret digest_{};  // of the token
};

// The histories of some stores, read again now and then while somebody looks. Reading takes a
// thread, since a store may be large or slow; whoever asks meanwhile gets what was read last.
// One thread.
class RunHistories {
 public:
  // Reads them. Errors name the store.
  static Result<std::unique_ptr<RunHistories>> open(std::vector<std::string> stores);

  // As openapi.json describes it. What was read may be ten seconds old.
  [[nodiscard]] std::shared_ptr<const std::string> json(Instant now);

 private:
  explicit RunHistories(std::vector<std::string> stores) : stores_(std::move(stores)) {}

  const std::vector<std::string> stores_;
  std::shared_ptr<const std::string> json_;
  Instant read_at_{};
  std::future<Result<std::string>> next_;
};

}  // namespace gleaner
