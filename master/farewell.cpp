#include "master/farewell.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/counted.hpp"

namespace gleaner {
namespace {

// Volunteers that were lost longer ago are not waited for.
constexpr std::chrono::minutes kLately{10};
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

Goodbye Farewell::answer(const Message& first) {
  if (const auto* hello = std::get_if<Hello>(&first)) {
    // The later ones of one name are numbered.
    std::erase_if(lost_, [&](const auto& lost) {
      return lost.first == hello->name || lost.first.starts_with(hello->name + " ");
    });
  }
  return {ErrorCode::kFinished, "the run is complete"};
}

void Farewell::wait(asio::io_context& io, Millis most, const bool& is_asked_to_end,
                    Console& console) {
  const Instant begin = monotonic_now();
  std::erase_if(lost_, [&](const auto& lost) { return begin - lost.second > kLately; });
  if (lost_.empty() || most == Millis(0)) return;
  console.log(LogLevel::kInfo,
              fmt::format("the run is complete; the port stays open for at most {} s for {}",
                          most.count() / 1000, counted(lost_.size(), "lost volunteer")));
  while (!lost_.empty() && !is_asked_to_end && monotonic_now() - begin < most) {
    io.run_one_for(kLook);
  }
}

}  // namespace gleaner
