// `gleaner serve`: the right to ask a served model (users of this machine, bearers of a token, or
// everybody), and the histories that its page compares.
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
  std::string token_file;  // empty: no token is needed
  bool is_public = false;
};

// The address to listen on. kInvalidArgument for an address that other machines reach without a
// flag for a token or the public.
Result<HostPort> serve_address(const ServeAccessFlags& flags);

// Any thread may call admits().
class ServeAccess {
 public:
  // Reads the file of the token, and makes it where it is missing.
  static Result<std::unique_ptr<ServeAccess>> open(const ServeAccessFlags& flags);

  [[nodiscard]] HttpReach reach() const { return reach_; }

  // Takes the same time wherever the token differs.
  [[nodiscard]] bool admits(std::string_view token) const;

  // Reads the file again. After an error the earlier token stays valid.
  Result<void> reload();

 private:
  explicit ServeAccess(const ServeAccessFlags& flags);

  const std::string file_;
  const HttpReach reach_;
  mutable std::mutex lock_;
  InviteSecret digest_{};  // of the token
};

// The histories of some stores. json() starts to read them again when they are old, on a thread,
// since a store may be large or slow, and returns the last histories meanwhile. One caller's
// thread.
class RunHistories {
 public:
  // Errors name the store.
  static Result<std::unique_ptr<RunHistories>> open(std::vector<std::string> stores);

  // As openapi.json describes it; may be ten seconds old.
  [[nodiscard]] std::shared_ptr<const std::string> json(Instant now);

 private:
  explicit RunHistories(std::vector<std::string> stores) : stores_(std::move(stores)) {}

  const std::vector<std::string> stores_;
  std::shared_ptr<const std::string> json_;
  Instant read_at_{};
  std::future<Result<std::string>> next_;
};

}  // namespace gleaner
