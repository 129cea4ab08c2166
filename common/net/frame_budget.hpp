// Memory that all connections may take together, for frames that have not come whole or that wait
// to be sent. What an honest peer takes is small and soon over; peers that begin large frames and
// never finish them, or read nothing, would fill the memory of this process. Beyond the budget the
// connection that takes the most is closed. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <set>

namespace gleaner {

class FrameBudget {
 public:
  explicit FrameBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // One connection's memory. The budget outlives it.
  class Share {
   public:
    // `close` ends the connection; it is called at most once, from within anybody's hold().
    // `budget` may be null: then nothing is counted.
    Share(FrameBudget* budget, std::function<void()> close);

    ~Share() { hold(0); }

    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // The connection is about to hold `bytes` in all.
    void hold(std::size_t bytes);

   private:
    friend class FrameBudget;

    FrameBudget* budget_;
    std::function<void()> close_;
    std::size_t bytes_ = 0;
  };

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void close_largest();

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::set<Share*> shares_;  // that hold something
};

}  // namespace gleaner
