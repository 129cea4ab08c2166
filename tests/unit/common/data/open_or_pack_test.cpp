#include "common/data/open_or_pack.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

const std::string kText = "3 10 5\n1,3 0:3 7:4\n 9:2\n4 1:1\n";

// Options that keep the notes.
struct Recording {
  Recording() {
    options.on_note = [this](const std::string& note) { notes.push_back(note); };
  }

  std::unique_ptr<PackedDataset> open(const std::string& path) {
    notes.clear();
    Result<std::unique_ptr<PackedDataset>> dataset = open_or_pack(path, options);
    INFO((dataset ? "" : dataset.error().message));
    REQUIRE(dataset.ok());
    return std::move(*dataset);
  }

  PackOptions options;
  std::vector<std::string> notes;
};

}  // namespace

TEST_CASE("open or pack: text is packed once, then opened", "[open_or_pack]") {
  const TempFolder folder;
  write_file(folder.file("a.txt"), kText);
  Recording recording;
  const auto first = recording.open(folder.file("a.txt"));
  REQUIRE(recording.notes.size() == 1);
  CHECK_THAT(recording.notes[0], Contains("Packing " + folder.file("a.txt")));
  CHECK(first->path() == folder.file("a.txt.gleaner"));
  CHECK(first->points() == 3);
  CHECK(first->features() == 10);
  CHECK(first->labels() == 5);
  CHECK(first->example(0).values[0] == 0.6F);
  const auto second = recording.open(folder.file("a.txt"));
  CHECK(recording.notes.empty());
  CHECK(second->fingerprint() == first->fingerprint());
  CHECK(folder.entries() == 2);
  // The packed file may be named itself.
  CHECK(recording.open(folder.file("a.txt.gleaner"))->fingerprint() == first->fingerprint());
}

TEST_CASE("open or pack: the same points in any text form have one fingerprint", "[open_or_pack]") {
  const TempFolder folder;
  std::string crlf;
  for (const char c : kText) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const std::string svm = "3,1 8:4 1:3 # sorted the other way\n 10:2 3:0\n4 2:1";
  Recording recording;
  std::vector<std::uint64_t> fingerprints;
  for (const std::string& content : {kText, gzip(kText), zstd(kText), crlf, svm}) {
    const std::string path = folder.file("f" + std::to_string(fingerprints.size()));
    write_file(path, content);
    fingerprints.push_back(recording.open(path)->fingerprint());
  }
  for (const std::uint64_t fingerprint : fingerprints) CHECK(fingerprint == fingerprints[0]);
}

TEST_CASE("open or pack: a cache that is stale is made again", "[open_or_pack]") {
  const TempFolder folder;
  write_file(folder.file("a.txt"), kText);
  Recording recording;
  const std::uint64_t before = recording.open(folder.file("a.txt"))->fingerprint();
  SECTION("because the text changed") {
    write_file(folder.file("a.txt"), "1 10 5\n1 1:1\n");
    CHECK(recording.open(folder.file("a.txt"))->points() == 1);
  }
  SECTION("because its time changed, even if its size did not") {
    struct timespec times[2] = {{1'000'000, 0}, {1'000'000, 1}};
    REQUIRE(::utimensat(AT_FDCWD, folder.file("a.txt").c_str(), times, 0) == 0);
    CHECK(recording.open(folder.file("a.txt"))->fingerprint() == before);
  }
  SECTION("because it was written to, even if size and time are as they were") {
    struct stat facts {};

    REQUIRE(::stat(folder.file("a.txt").c_str(), &facts) == 0);
    std::string content(kText);
    content.replace(content.rfind("4 1:1"), 1, "3");
    write_file(folder.file("a.txt"), content);
    struct timespec times[2] = {facts.st_atim, facts.st_mtim};
    REQUIRE(::utimensat(AT_FDCWD, folder.file("a.txt").c_str(), times, 0) == 0);
    CHECK(recording.open(folder.file("a.txt"))->fingerprint() != before);
  }
  SECTION("because the options changed") {
    recording.options.normalize = false;
    CHECK(recording.open(folder.file("a.txt"))->fingerprint() != before);
  }
  REQUIRE(recording.notes.size() == 2);
  CHECK_THAT(recording.notes[0], Contains("older file or other options"));
  recording.open(folder.file("a.txt"));
  CHECK(recording.notes.empty());
}

TEST_CASE("open or pack: a damaged cache is made again", "[open_or_pack]") {
  const TempFolder folder;
  write_file(folder.file("a.txt"), kText);
  Recording recording;
  const std::uint64_t before = recording.open(folder.file("a.txt"))->fingerprint();
  const std::string whole = read_file(folder.file("a.txt.gleaner"));
  for (const std::string& bad :
       {whole.substr(0, 300), std::string(), std::string("nonsense"), whole + "more"}) {
    write_file(folder.file("a.txt.gleaner"), bad);
    CHECK(recording.open(folder.file("a.txt"))->fingerprint() == before);
    REQUIRE(recording.notes.size() == 2);
    CHECK_THAT(recording.notes[0], Contains("damaged packed data set"));
    CHECK(read_file(folder.file("a.txt.gleaner")) == whole);
  }
}

TEST_CASE("open or pack: a refused file leaves nothing behind", "[open_or_pack]") {
  const TempFolder folder;
  write_file(folder.file("a.txt"), kText + "1 1:1\n");
  CHECK_THAT(message_of(open_or_pack(folder.file("a.txt"))),
             StartsWith(folder.file("a.txt") + ":5:1: expected the end of the file"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("open or pack: a folder marked read-only is left alone", "[open_or_pack]") {
  const TempFolder folder;
  const TempFolder cache;
  REQUIRE(::mkdir(folder.file("data").c_str(), 0700) == 0);
  write_file(folder.file("data/a.txt"), kText);
  REQUIRE(::chmod(folder.file("data").c_str(), 0555) == 0);
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("XDG_CACHE_HOME", cache.file("xdg").c_str(), 1);
  Recording recording;
  const auto dataset = recording.open(folder.file("data/a.txt"));
  CHECK_THAT(dataset->path(), StartsWith(cache.file("xdg") + "/gleaner/a.txt-"));
  recording.open(folder.file("data/a.txt"));
  CHECK(recording.notes.empty());
  if (before != nullptr) {
    ::setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  } else {
    ::unsetenv("XDG_CACHE_HOME");
  }
  REQUIRE(::chmod(folder.file("data").c_str(), 0755) == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.file("data")), {}) == 1);
}

TEST_CASE("open or pack: a cache folder of one's own is made and used", "[open_or_pack]") {
  const TempFolder folder;
  write_file(folder.file("a.txt"), kText);
  Recording recording;
  recording.options.cache_dir = folder.file("deep/cache");
  CHECK_THAT(recording.open(folder.file("a.txt"))->path(),
             StartsWith(folder.file("deep/cache/a.txt-")));
  CHECK_FALSE(std::filesystem::exists(folder.file("a.txt.gleaner")));
  write_file(folder.file("plain"), "");
  recording.options.cache_dir = folder.file("plain/cache");
  CHECK_THAT(message_of(open_or_pack(folder.file("a.txt"), recording.options)),
             Contains("no folder to keep its packed form in"));
}

TEST_CASE("open or pack: a test set takes on the training set's dimensions", "[open_or_pack]") {
  const TempFolder folder;
  write_file(folder.file("more.txt"), "1 100 50\n3 9:1\n");
  write_file(folder.file("less.txt"), "1 4 2\n1 3:1\n");
  write_file(folder.file("beyond.txt"), "1 100 50\n3 10:1\n");
  write_file(folder.file("svm.txt"), "3 10:1\n");
  PackOptions options;
  options.text.limits = Dimensions{10, 5};
  for (const char* name : {"more.txt", "less.txt", "svm.txt"}) {
    const auto dataset = std::move(open_or_pack(folder.file(name), options)).value();
    CHECK(dataset->features() == 10);
    CHECK(dataset->labels() == 5);
  }
  CHECK(message_of(open_or_pack(folder.file("beyond.txt"), options)) ==
        folder.file("beyond.txt") +
            ":2:3: expected a feature id from 0 to 9 (the training set has 10 features), found "
            "'10:1'");
  // A packed file is measured by the ids it uses.
  REQUIRE(open_or_pack(folder.file("beyond.txt")).ok());
  CHECK_THAT(message_of(open_or_pack(folder.file("beyond.txt.gleaner"), options)),
             Contains("found feature ids up to 10 and label ids up to 3"));
  REQUIRE(open_or_pack(folder.file("more.txt")).ok());
  CHECK(open_or_pack(folder.file("more.txt.gleaner"), options).ok());
}

TEST_CASE("open or pack: a packed file normalised otherwise than asked is refused",
          "[open_or_pack]") {
  const TempFolder folder;
  write_file(folder.file("a.txt"), kText);
  REQUIRE(open_or_pack(folder.file("a.txt")).ok());
  PackOptions options;
  options.normalize = false;
  CHECK_THAT(message_of(open_or_pack(folder.file("a.txt.gleaner"), options)),
             Contains("its rows are normalised, but unchanged ones are asked for"));
}

TEST_CASE("open or pack: a missing file is refused even where its cache remains",
          "[open_or_pack]") {
  const TempFolder folder;
  write_file(folder.file("a.txt"), kText);
  REQUIRE(open_or_pack(folder.file("a.txt")).ok());
  std::filesystem::remove(folder.file("a.txt"));
  CHECK(open_or_pack(folder.file("a.txt")).error().code == ErrorCode::kNotFound);
}

}  // namespace gleaner
