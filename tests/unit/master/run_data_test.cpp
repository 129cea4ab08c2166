#include "master/run_data.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "storage/engine/rocks_store.hpp"
#include "storage/engine/store_folder.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/storage/check_result.hpp"

namespace gleaner {

using test::require_value;

TEST_CASE("run data: a run that goes on takes the weights of its wide rows from its store",
          "[run_data]") {
  const TempFolder folder;
  std::string text = "60 30 7\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{} {}:1 {}:2\n", i % 7, i % 15, 15 + i % 11);
  write_file(folder.file("train.txt"), text);
  const auto open = [&] {
    const MasterStart start = require_value(
        load_master_config({"--train", folder.file("train.txt"), "--store", folder.file("store"),
                            "--local", "1", "--hidden", "0", "--output-shards", "2"}));
    return require_value(open_run_data(start.config, {}));
  };
  const RunData first = open();
  REQUIRE(first.wide_start);
  REQUIRE(first.wide_weights.mean > 7);
  const std::string kept = GENERATE("5 7", "");  // what nobody counts, and a store without them
  {
    RunIdentity identity{first.model, {}};
    if (!kept.empty()) identity.settings[kWideWeightsKey] = kept;
    const auto place = require_value(hold_store_folder(folder.file("store")));
    require_value(RunStore::create_or_open(require_value(open_rocks_store(place, {})), identity,
                                           first.label_counts, first.wide_start->rows()));
  }
  const RunData again = open();
  CHECK_FALSE(again.wide_start);
  CHECK(again.model == first.model);
  CHECK(wide_weights_text(again.wide_weights) ==
        (kept.empty() ? wide_weights_text(first.wide_weights) : kept));
}

TEST_CASE("run data: the weights of wide rows are read as a store keeps them", "[run_data]") {
  const auto of = [](const std::string& text) {
    return stored_wide_weights({{kWideWeightsKey, text}});
  };
  const auto read = of(wide_weights_text({12, 345}));
  REQUIRE((read && read->mean == 12 && read->beyond == 345));
  REQUIRE_FALSE(stored_wide_weights({}));
  for (const char* text : {"", "12", "12 ", " 12", "12 3x", "12  3", "x 3", "-1 3"}) {
    CAPTURE(text);
    REQUIRE_FALSE(of(text));
  }
}

}  // namespace gleaner
