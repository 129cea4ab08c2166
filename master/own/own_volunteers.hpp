// The volunteers of the master's own process: those that were asked for, the one that trains while
// nobody else is here, and the referee of audits. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>

#include "common/result.hpp"
#include "master/config/config.hpp"
#include "master/console/progress.hpp"
#include "master/core/events/records.hpp"
#include "master/own/fallback.hpp"
#include "master/own/local_volunteers.hpp"

namespace gleaner {

class OwnVolunteers {
 public:
  // All but `on_failure` outlive it. Each volunteer has `threads`. `on_failure` is called when one
  // gave up for good, which only a defect can make it do.
  OwnVolunteers(asio::io_context& io, CoreRunner& runner, const MasterConfig::Run& config,
                std::uint32_t threads, Console& console,
                std::function<void(const Error&)> on_failure);

  // Starts `run.local` of them.
  void start();
  // Starts the one that decides audits when no other trusted volunteer is here. It stays until the
  // end; a second call does nothing.
  void start_referee();
  // To be called a few times a second: begins and ends `run.fallback_local_s`.
  void observe(const CoreSnapshot& now);
  // They end at once. What they have posted may still run afterwards, so that this must outlive it.
  void end();

 private:
  [[nodiscard]] LocalVolunteersOptions options_of(std::uint32_t count);
  void start(std::uint32_t count);

  asio::io_context& io_;
  CoreRunner& runner_;
  const MasterConfig::Run& config_;
  const std::uint32_t threads_;
  Console& console_;
  const std::function<void(const Error&)> on_failure_;
  Fallback fallback_;
  std::optional<LocalVolunteers> local_;
  std::optional<LocalVolunteers> referee_;
  bool is_stepping_back_ = false;  // the fallback is leaving
};

}  // namespace gleaner
