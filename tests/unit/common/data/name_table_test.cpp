#include "common/data/name_table.hpp"

#include "tests/unit/common/data/dataset_files.hpp"

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

TEST_CASE("names: lines of text and names are each other's", "[name_table]") {
  CHECK(NameTable::of_lines("").size() == 0);
  const NameTable names = NameTable::of_lines("a b\n\nc\n");
  CHECK(names.size() == 3);
  CHECK(names.name(0) == "a b");
  CHECK(names.name(1).empty());
  CHECK(names.lines() == "a b\n\nc\n");
  CHECK(NameTable::of_lines("a\nb").lines() == "a\nb\n");
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

TEST_CASE("name files: a run takes its own and refuses others", "[name_table]") {
  const TempFolder own;
  const TempFolder other;
  const std::string data = own.file("train.txt");
  write_file(own.file("labels.txt"), "forest\nmetal\n");
  write_file(own.file("features.txt"), "of\nanother\nset\n");
  write_file(own.file("words.json"), "{}");
  const auto settings = name_file_settings(data, {2, 2});
  CHECK(settings.contains("names.labels.txt"));
  CHECK(settings.contains("names.words.json"));
  CHECK_FALSE(settings.contains("names.features.txt"));  // it has three names for two features

  const std::string folder = std::filesystem::path(data).parent_path().string();
  CHECK(check_name_files(settings, folder).ok());
  write_file(other.file("labels.txt"), "zebra\nmetal\n");
  const std::string there = other.file("labels.txt");
  CHECK_THAT(message_of(check_name_file(settings, there, kLabelNamesFile)),
             Catch::StartsWith(there + " is not the labels.txt with which the model was trained"));
  CHECK(check_name_file({}, there, kLabelNamesFile).ok());
  CHECK(check_name_file(settings, other.file("none.txt"), kLabelNamesFile).ok());
  write_file(own.file("words.json"), "{ }");
  CHECK_FALSE(check_name_files(settings, folder).ok());
}

}  // namespace gleaner
