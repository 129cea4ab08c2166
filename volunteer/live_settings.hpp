// Settings that change while a volunteer works: its owner's limits, and the line in its line file.
// I/O thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/rates.hpp"
#include "common/result.hpp"
#include "volunteer/config.hpp"
#include "volunteer/lender.hpp"

namespace gleaner::volunteer {

// The arguments with "--hours 19-7" as the two settings for which it stands.
std::vector<std::string> with_hours(const std::vector<std::string>& arguments);

class LiveSettings {
 public:
  // `config` has passed check(), and names the master at `address`.
  LiveSettings(VolunteerConfig config, const VolunteerOffer& offer, MasterAddress address);

  // The pacers of all links.
  [[nodiscard]] const std::shared_ptr<Pacer>& down() const { return down_; }

  [[nodiscard]] const std::shared_ptr<Pacer>& up() const { return up_; }

  [[nodiscard]] Limits limits() const;

  // Applies the owner's flags. The caller sets the threads. After an error, also for a flag that
  // only a start can obey, nothing has changed.
  Result<Limits> change(const std::vector<std::string>& flags);

  [[nodiscard]] const MasterAddress& address() const { return address_; }

  // Reads the line file again, where there is one. A file that cannot be read changes nothing.
  // Returns whether the address has changed; an error for the line of another master.
  Result<bool> read_line();

 private:
  VolunteerConfig config_;
  const std::uint32_t threads_;  // of the start
  MasterAddress address_;
  std::shared_ptr<Pacer> down_ = std::make_shared<Pacer>(0), up_ = std::make_shared<Pacer>(0);
};

}  // namespace gleaner::volunteer
