#include "common/data/point_writer.hpp"

#include <limits>

#include "common/data/text_reader.hpp"
#include "tests/support/memory_source.hpp"
#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {

TEST_CASE("point writer: lines read back as the same point", "[point_writer]") {
  const std::vector<Point> points = {{{0, 4}, {0, 9}, {0.1F, -1.0F / 3}},
                                     {{}, {3}, {std::numeric_limits<float>::denorm_min()}},
                                     {{}, {3}, {std::numeric_limits<float>::max()}},
                                     {{2}, {}, {}},
                                     {}};
  std::string text = xc_header(points.size(), {10, 5});
  for (const Point& point : points) append_libsvm(text, point, 0);
  auto source = std::move(open_memory_source("f", text)).value();
  auto reader = std::move(TextReader::open(std::move(source), {})).value();
  for (const Point& point : points) {
    Point read;
    REQUIRE(*reader->next(read));
    CHECK(read == point);
  }
  Point none;
  CHECK_FALSE(*reader->next(none));
}

TEST_CASE("point writer: the name's ending chooses the compression", "[point_writer]") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += std::to_string(i) + "\n";
  for (const std::string name : {"a.txt", "a.gz", "a.zst"}) {
    auto output = std::move(TextOutput::create(folder.file(name))).value();
    for (std::size_t at = 0; at < text.size(); at += 70'001) {
      REQUIRE(output->write(std::string_view(text).substr(at, 70'001)).ok());
    }
    REQUIRE(output->commit(AtomicFile::Existing::kRefuse).ok());
    const std::string stored = read_file(folder.file(name));
    CHECK((stored.size() < text.size() / 2) == (name != "a.txt"));
    auto source = std::move(open_file_source(folder.file(name))).value();
    std::string back(text.size() + 1, '\0');
    std::size_t size = 0;
    while (const std::size_t count = *source->read(std::span(back).subspan(size))) size += count;
    back.resize(size);
    CHECK(back == text);
  }
}

TEST_CASE("point writer: an empty compressed file is a valid one", "[point_writer]") {
  const TempFolder folder;
  for (const std::string name : {"a.gz", "a.zst"}) {
    auto output = std::move(TextOutput::create(folder.file(name))).value();
    REQUIRE(output->commit(AtomicFile::Existing::kRefuse).ok());
    auto source = std::move(open_file_source(folder.file(name))).value();
    char byte = 0;
    CHECK(*source->read({&byte, 1}) == 0);
    CHECK(std::filesystem::file_size(folder.file(name)) > 4);
  }
}

}  // namespace gleaner
