#include "common/dataset/name_table.hpp"

#include "tests/unit/dataset/dataset_files.hpp"

namespace gleaner {

TEST_CASE("names: one a line, in the order of the ids", "[name_table]") {
  const TempFolder folder;
  write_file(folder.file("labels.txt"), gzip("libc6\r\n\npython3 (>= 3)\nlast"));
  const NameTable names = std::move(NameTable::load(folder.file("labels.txt"))).value();
  CHECK(names.size() == 4);
  CHECK(names.name(0) == "libc6");
  CHECK(names.name(2) == "python3 (>= 3)");
  CHECK(names.name(3) == "last");
  CHECK(names.name(4).empty());
  CHECK(names.name_or("label", 1) == "label 1");
  CHECK(names.name_or("label", 99) == "label 99");
  CHECK(names.name_or("label", 0) == "libc6");
}

TEST_CASE("names: an unreadable file is refused by name", "[name_table]") {
  const TempFolder folder;
  CHECK_THAT(message_of(NameTable::load(folder.file("none"))),
             Catch::StartsWith(folder.file("none")));
}

TEST_CASE("names: companions are found beside the data set", "[name_table]") {
  const TempFolder folder;
  write_file(folder.file("labels.txt"), "a\n");
  CHECK(companion_path(folder.file("train.txt"), "labels.txt") == folder.file("labels.txt"));
  CHECK(companion_path(folder.file("train.txt"), "features.txt").empty());
}

}  // namespace gleaner
