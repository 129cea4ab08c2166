// Decides who may ask a served model: users of this machine, bearers of the token of a file, or
// everybody.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "common/access/standing.hpp"
#include "common/host_port.hpp"
#include "common/http/admission.hpp"
#include "common/result.hpp"

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

}  // namespace gleaner
