// Texts with tags to data sets.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/data/word_model.hpp"
#include "tests/support/memory_source.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/tools/dataset/run_dataset.hpp"
#include "tools/dataset/tag_forms.hpp"
#include "tools/dataset/text_records.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using test::read_points;
using test::Run;
using test::run;

// With tags cut as `fields` says.
Result<std::vector<TextRecord>> read_records(std::string_view text, const RecordOptions& options,
                                             const TextFields& fields) {
  auto source = std::move(open_memory_source("given", text)).value();
  auto records = TextRecords::open(std::move(source), options, fields);
  if (!records) return records.error();
  std::vector<TextRecord> all;
  TextRecord record;
  for (;;) {
    Result<bool> has_record = (*records)->next(record);
    if (!has_record) return has_record.error();
    if (!*has_record) return all;
    for (const std::string& tag : cut_tags(record.uncut_tags, fields.tag_separator)) {
      record.add_tag(tag);
    }
    all.push_back(record);
  }
}

Result<std::vector<TextRecord>> read_records(std::string_view text, RecordForm form,
                                             const TextFields& fields) {
  return read_records(text, RecordOptions{form, {}, {}, {}}, fields);
}

const TextFields kFields{{"title", "body"}, "tags", "id", ","};

constexpr const char* kCsv =
    "\xef\xbb\xbfid,title,body,tags\r\n"
    "1,Plain,\"quoted, with \"\"quotes\"\"\",\"a, b\"\r\n"
    "\r\n"
    "\"2\",\"two\nlines\",,\n"
    "3,last,line,c";

}  // namespace

TEST_CASE("text records: CSV as RFC 4180 has it", "[dataset_text]") {
  const auto records = std::move(read_records(kCsv, RecordForm::kCsv, kFields)).value();
  REQUIRE(records.size() == 3);
  CHECK(records[0].text == "Plain quoted, with \"quotes\"");
  CHECK(records[0].tags == std::vector<std::string>{"a", "b"});
  CHECK(records[0].name == "1");
  CHECK(records[1].text == "two\nlines ");
  CHECK(records[1].tags.empty());
  CHECK(records[2].text == "last line");
  const auto tabs =
      read_records("t\ttags\nx, y\ta|b\n", RecordForm::kTsv, {{"t"}, "tags", "", "|"});
  REQUIRE(tabs.ok());
  CHECK(tabs->front().text == "x, y");
  CHECK(tabs->front().tags == std::vector<std::string>{"a", "b"});
  CHECK(tabs->front().name == "x, y");
}

TEST_CASE("text records: what is no CSV is refused by line and column", "[dataset_text]") {
  const auto refused = [](std::string_view text) {
    return message_of(read_records(text, RecordForm::kCsv, {{"t"}, "g", "", ","}));
  };
  CHECK(refused("") == "given:1:1: expected a row that names the columns, found none");
  CHECK(refused("t,x\n1,2\n") == "given:1:1: expected a column 'g', found t, x");
  CHECK(refused("t,g\na\n") == "given:2:1: expected 2 fields as the first row has, found 1");
  CHECK(refused("t,g\n\"a\nb\",c,d\n") ==
        "given:2:1: expected 2 fields as the first row has, found 3");
  CHECK_THAT(refused("t,g\na,b\n\"a\"b,c\n"), Catch::StartsWith("given:3:4: expected a field"));
  CHECK_THAT(refused("t,g\na,\"b\nc\n"), Catch::StartsWith("given:2:1: expected a row, found a "
                                                           "quoted field that does not end"));
}

TEST_CASE("text records: JSON lines", "[dataset_text]") {
  const auto records = read_records(
      "{\"title\": \"a\", \"body\": [\"b\", 3], \"tags\": [\"x,y\", \" z \"], \"id\": 7}\n\n"
      "{\"title\": null, \"body\": \"c\\nd\", \"tags\": \"x,z\"}\n",
      RecordForm::kJson, kFields);
  REQUIRE(records.ok());
  REQUIRE(records->size() == 2);
  CHECK((*records)[0].text == "a b 3");
  // A list's items are whole.
  CHECK((*records)[0].tags == std::vector<std::string>{"x,y", "z"});
  CHECK((*records)[0].name == "7");
  CHECK((*records)[1].tags == std::vector<std::string>{"x", "z"});
  CHECK((*records)[1].name == "c d");
  const auto refused = [](std::string_view text) {
    return message_of(read_records(text, RecordForm::kJson, {{"t"}, "g", "", ","}));
  };
  CHECK_THAT(refused("{\"t\": \"a\"}\n{\"t\": }\n"),
             Catch::StartsWith("given:2:7: expected a JSON object, found '}'"));
  CHECK(refused("[1]\n") == "given:1:2: expected a JSON object, found another value");
  CHECK(refused("{\"T\": 1}\n") == "given:1:1: expected a field 't', found T; did you mean 'T'?");
  CHECK_THAT(refused("{\"t\": {\"u\": 1}}\n"),
             Contains("found an object; name one of its fields: t.u"));
  CHECK_THAT(refused("{\"t\": [[\"u\"]]}\n"), Contains("nested deeper"));
  CHECK_THAT(refused("{\"t\": \"\xff\"}\n"), Catch::StartsWith("given:1:"));
}

TEST_CASE("text records: the name's ending, or how it begins, says what a file holds",
          "[dataset_text]") {
  CHECK(record_form("a.csv", "{") == RecordForm::kCsv);
  CHECK(record_form("a.tsv.gz", "") == RecordForm::kTsv);
  CHECK(record_form("a.jsonl.zst", "") == RecordForm::kJson);
  CHECK(record_form("a.ndjson", "") == RecordForm::kJson);
  CHECK(record_form("posts", "title,tags") == RecordForm::kCsv);
  CHECK(record_form("-", " \n[{") == RecordForm::kJson);
}

TEST_CASE("dataset convert: texts and tags become points", "[dataset_text]") {
  const TempFolder folder;
  write_file(folder.file("posts.csv"),
             "text,tags\n"
             "The cat and the dog,\"pets,cats\"\n"
             "the Dog barks,pets\n"
             "nothing in common,\n"
             "cat cat cat,cats\n");
  const Run made = run(folder, {"convert", folder.file("posts.csv"), "--text", "text", "--tags",
                                "tags", "--output", folder.file("set")});
  INFO(made.err);
  REQUIRE(made.status == 0);
  const auto in = [&](const char* name) { return folder.file(std::string("set/") + name); };
  CHECK(read_file(in("features.txt")) == "cat\ndog\nthe\n");
  CHECK(read_file(in("labels.txt")) == "cats\npets\n");
  // The folder stands for its training part.
  CHECK(run(folder, {"info", folder.file("set")}).out ==
        run(folder, {"info", in("train.txt")}).out);
  CHECK(run(folder, {"info", folder.file("set")}).status == 0);
  CHECK_FALSE(std::filesystem::exists(in("test.txt")));
  const std::vector<Point> points = read_points(in("train.txt"));
  REQUIRE(points.size() == 4);
  CHECK(points[0].labels == std::vector<std::uint32_t>{0, 1});
  CHECK(points[0].features == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(points[2].labels.empty());
  CHECK(points[2].features.empty());
  // All three words are on two of four points: ln(5 / 3) + 1.
  const double rare = std::log(5.0 / 3.0) + 1;
  const auto rounded = [](double value) {
    return static_cast<float>(std::round(value * 1000) / 1000);
  };
  CHECK(points[0].values[0] == rounded(rare));
  CHECK(points[0].values[2] == rounded((1 + std::log(2.0)) * rare));
  CHECK(points[3].values[0] == rounded((1 + std::log(3.0)) * rare));
  CHECK(read_file(in("train.points.txt")).starts_with("The cat and the dog\nthe Dog barks\n"));
  const auto words = nlohmann::json::parse(read_file(in("words.json")));
  CHECK(words["gleaner_words"] == 1);
  CHECK(words["points"] == 4);
  CHECK(words["occurrences"] == std::vector<int>{2, 2, 2});
}

TEST_CASE("dataset convert: a later file is made with the training part's words and rarities",
          "[dataset_text]") {
  const TempFolder folder;
  std::string lines;
  for (int i = 0; i < 400; ++i) {
    const std::string text = "w" + std::to_string(i % 7) + " w" + std::to_string(i % 11) +
                             " common once" + std::to_string(i);
    lines += "{\"body\": \"" + text + "\", \"tag\": \"t" + std::to_string(i % 5) + "|all\"}\n";
  }
  write_file(folder.file("all.jsonl"), lines);
  const Run made = run(folder, {"convert", folder.file("all.jsonl"), "--text", "body", "--tags",
                                "tag", "--tag-separator", "|", "--share", "0.25", "--seed", "3",
                                "--output", folder.file("set")});
  INFO(made.err);
  REQUIRE(made.status == 0);
  const std::vector<Point> train = read_points(folder.file("set/train.txt"));
  const std::vector<Point> test = read_points(folder.file("set/test.txt"));
  CHECK(train.size() + test.size() == 400);
  CHECK(test.size() > 60);
  // Converts the same texts by the vocabulary: what was for testing comes out as it did.
  const Run later = run(folder, {"convert", folder.file("all.jsonl"), "--vocabulary",
                                 folder.file("set"), "--output", folder.file("set/later.txt.gz")});
  INFO(later.err);
  REQUIRE(later.status == 0);
  const std::vector<Point> again = read_points(folder.file("set/later.txt.gz"));
  REQUIRE(again.size() == 400);
  std::size_t found = 0;
  for (const Point& point : again) found += found < test.size() && point == test[found];
  CHECK(found == test.size());
  CHECK(read_file(folder.file("set/later.points.txt")).starts_with("w0 w0 common once0\n"));
  CHECK(read_file(folder.file("set/labels.txt")) == "all\nt0\nt1\nt2\nt3\nt4\n");

  const auto model = load_word_model(folder.file("set"));
  REQUIRE(model.ok());
  CHECK(model->fields.tag_separator == "|");
  CHECK(model->point_of("W3, COMMON; unknown").features.size() == 2);
  write_file(folder.file("set/features.txt"), "other\n");
  CHECK_THAT(message_of(load_word_model(folder.file("set"))), Contains("not of one data set"));
  write_file(folder.file("set/words.json"), "{}");
  CHECK_THAT(message_of(load_word_model(folder.file("set"))), Contains("words.json"));
  CHECK_THAT(message_of(load_word_model(folder.file("none"))), Contains("words.json is missing"));
}

TEST_CASE("word model: a line about a package has the features that its point has of its words",
          "[dataset_text]") {
  const TempFolder folder;
  std::string index;
  for (int i = 0; i < 60; ++i) {
    index += "Package: lib" + std::string(1, static_cast<char>('a' + i % 26)) + std::to_string(i) +
             "-dev\nDescription: files for building " + std::to_string(i % 4) +
             "\nDepends: libc6\nSection: devel\nMaintainer: A Team <a@b.org>\n\n";
  }
  write_file(folder.file("dump"), index);
  const std::string script = GLEANER_SOURCE "/tools/dataset/debian.py ";
  const std::string paths = folder.file("set") + " --dump " + folder.file("dump");
  REQUIRE(std::system((script + paths + " > /dev/null").c_str()) == 0);
  const auto model = load_word_model(folder.file("set"));
  INFO((model ? "" : model.error().message));
  REQUIRE(model.ok());
  CHECK(model->kind == WordKind::kDebian);
  const std::string lines = read_file(folder.file("set/train.points.txt"));
  const Point whole = read_points(folder.file("set/train.txt")).front();
  const Point of_line = model->point_of(lines.substr(0, lines.find('\n')));
  // All but section and maintainer.
  CHECK(of_line.features.size() + 2 == whole.features.size());
  for (std::size_t i = 0; i < of_line.features.size(); ++i) {
    const auto place = std::find(whole.features.begin(), whole.features.end(), of_line.features[i]);
    REQUIRE(place != whole.features.end());
    CHECK(of_line.values[i] ==
          whole.values[static_cast<std::size_t>(place - whole.features.begin())]);
  }
  // A description alone has no name's parts.
  CHECK(model->point_of("building files, so to say: of all kinds").features.size() == 2);
}

TEST_CASE("dataset convert: texts that make no data set are refused", "[dataset_text]") {
  const TempFolder folder;
  write_file(folder.file("a.csv"), "text,tags\none,x\ntwo,y\n");
  const auto convert = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"convert", folder.file("a.csv"), "--output",
                                          folder.file("set")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(folder, arguments);
  };
  const Run rare = convert({"--text", "text", "--tags", "tags"});
  CHECK(rare.status == 3);
  CHECK_THAT(rare.err, Contains("0 features and 2 labels"));
  CHECK(convert({"--text", "text", "--tags", "tags", "--min-count", "1"}).status == 0);
  CHECK(convert({"--text", "text", "--tags", "tags", "--min-count", "1"}).status == 2);
  CHECK(convert({"--text", "words", "--tags", "tags", "--force"}).status == 3);
  CHECK(convert({"--text", "text", "--share", "2", "--force"}).status == 2);
  CHECK(convert({"--text", "text", "--force", "--min-count", "1"}).status == 3);  // no labels
}

}  // namespace gleaner
