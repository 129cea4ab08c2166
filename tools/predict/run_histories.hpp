// Histories of the stores that the page of `gleaner serve` compares.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"

namespace gleaner {

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
