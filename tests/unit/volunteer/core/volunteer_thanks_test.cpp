#include <catch2/catch.hpp>

#include "tests/support/volunteer_driver.hpp"

namespace gleaner::volunteer {

TEST_CASE("volunteer: thanks count as the master has signed them, and others are refused",
          "[volunteer]") {
  const KeyPair master = KeyPair::make(), other = KeyPair::make();
  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.master_key = master.id();
  config.own_key = other.id();
  const auto receive = [&](const KeyPair& signer, const KeyId& volunteer) {
    VolunteerDriver driver(config);
    driver.join();
    Goodbye goodbye{ErrorCode::kFinished, "the run is complete"};
    goodbye.thanks = sign({volunteer, 60, 1'000, Checked::kAll, true, 0, "birds"}, signer);
    driver.receive(goodbye);
    return driver.snapshot();
  };
  const Snapshot good = receive(master, other.id());
  REQUIRE(good.thanks.has_value());
  CHECK(good.thanks_refused.empty());
  CHECK(good.service->examples == 1'000);
  CHECK(good.service->checked == Checked::kAll);
  for (const Snapshot& bad : {receive(other, other.id()), receive(master, master.id())}) {
    CHECK_FALSE(bad.thanks.has_value());
    CHECK_FALSE(bad.thanks_refused.empty());
    CHECK(bad.service->examples == 0);
    CHECK(bad.phase == Snapshot::Phase::kFinished);
  }
}

}  // namespace gleaner::volunteer
