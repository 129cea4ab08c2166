#include "common/data/byte_source.hpp"

#include <sys/stat.h>

#include <array>

#include "tests/support/memory_source.hpp"
#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// Reads on in small pieces, so that every piece boundary is met.
Result<std::string> read_all(ByteSource& source) {
  std::string text;
  std::array<char, 7> piece;
  for (;;) {
    Result<std::size_t> count = source.read(piece);
    if (!count) return count.error();
    if (*count == 0) return text;
    text.append(piece.data(), *count);
  }
}

Result<std::string> decode(std::string_view stored) {
  Result<std::unique_ptr<ByteSource>> source = open_memory_source("data.txt", stored);
  if (!source) return source.error();
  return read_all(**source);
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += std::to_string(i * 7919 % 10'007) + " ";
  return text;
}

}  // namespace

TEST_CASE("byte source: compression is recognised by content", "[byte_source]") {
  const std::string text = long_text();
  CHECK(*decode(text) == text);
  CHECK(*decode(gzip(text)) == text);
  CHECK(*decode(zstd(text)) == text);
  CHECK(decode({})->empty());
  for (const std::string& tiny : {std::string(), std::string("a"), std::string("\x1f"),
                                  std::string("\x28\xb5\x2f", 3), std::string(3, '\0')}) {
    CHECK(*decode(tiny) == tiny);
    CHECK(*decode(gzip(tiny)) == tiny);
    CHECK(*decode(zstd(tiny)) == tiny);
  }
}

TEST_CASE("byte source: several members or frames read as one stream", "[byte_source]") {
  const std::string text = long_text();
  CHECK(*decode(gzip("one\n") + gzip("") + gzip(text)) == "one\n" + text);
  CHECK(*decode(zstd("one\n") + zstd("") + zstd(text)) == "one\n" + text);
  // A skippable frame of three bytes in front, as parallel writers put there.
  const std::string skippable("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
  CHECK(*decode(skippable + zstd(text)) == text);
}

TEST_CASE("byte source: compressed input cut short anywhere is refused by name", "[byte_source]") {
  const std::string text = long_text();
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    for (std::size_t cut = 4; cut < whole.size(); cut += 1 + whole.size() / 97) {
      const Result<std::string> read = decode(std::string_view(whole).substr(0, cut));
      REQUIRE_THAT(message_of(read), StartsWith("data.txt: damaged"));
      REQUIRE_THAT(message_of(read), Contains("ends in the middle"));
      REQUIRE(read.error().code == ErrorCode::kInvalidData);
    }
    REQUIRE_THAT(message_of(decode(std::string_view(whole).substr(0, whole.size() - 1))),
                 StartsWith("data.txt: damaged"));
  }
}

TEST_CASE("byte source: damaged compressed input is refused by name", "[byte_source]") {
  std::string bad = gzip(long_text());
  bad[bad.size() - 6] = static_cast<char>(bad[bad.size() - 6] ^ 1);  // its checksum
  CHECK_THAT(message_of(decode(bad)), StartsWith("data.txt: damaged gzip data"));
  bad = zstd(long_text());
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 0x55);
  bad[bad.size() / 2 + 1] = static_cast<char>(bad[bad.size() / 2 + 1] ^ 0x55);
  const Result<std::string> read = decode(bad);
  CHECK((!read.ok() || *read != long_text()));
  CHECK_THAT(message_of(decode(gzip("abc") + "trailing")), Contains("other bytes follow"));
  CHECK_THAT(message_of(decode(zstd("abc") + "trailing")), StartsWith("data.txt: damaged zstd"));
}

TEST_CASE("byte source: what is not a readable regular file is refused by name", "[byte_source]") {
  const TempFolder folder;
  const auto missing = open_file_source(folder.file("missing.txt"));
  CHECK_THAT(message_of(missing), StartsWith(folder.file("missing.txt") + ": cannot be opened"));
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK_THAT(message_of(open_file_source(folder.file("."))), Contains("not a regular file"));
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK_THAT(message_of(open_file_source(folder.file("pipe"))), Contains("not a regular file"));
}

TEST_CASE("byte source: forms that are not read are called by their names", "[byte_source]") {
  using namespace std::string_literals;
  CHECK(message_of(decode("\xfd\x37\x7a\x58\x5a\x00rest"s)) ==
        "data.txt is compressed by xz, which is not read here; decompress it with 'xz -d'");
  CHECK_THAT(message_of(decode("BZh91AY&SY")), Contains("bzip2 -d"));
  CHECK_THAT(message_of(decode("PK\x03\x04 and more")), Contains("save the sheet as CSV"));
  CHECK_THAT(message_of(decode("PAR1....")), Contains("a Parquet file"));
  CHECK(decode("BZ is a text").ok());
}

TEST_CASE("byte source: progress counts stored bytes", "[byte_source]") {
  const TempFolder folder;
  const std::string stored = gzip(long_text());
  write_file(folder.file("a"), stored);
  auto source = std::move(open_file_source(folder.file("a"))).value();
  CHECK(source->total() == stored.size());
  REQUIRE(read_all(*source).ok());
  CHECK(source->position() == stored.size());
}

}  // namespace gleaner
