// Texts with tags as people have them: separators, quotes, encodings, JSON and tags of many forms.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "common/data/text_encoding.hpp"
#include "tests/support/memory_source.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/tools/dataset/run_dataset.hpp"
#include "tools/dataset/tag_forms.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using test::Run;
using test::run;
using Strings = std::vector<std::string>;

// Converts `text`, saved as `name`, with words that occur once, and returns what happened.
Run convert(const TempFolder& folder, const std::string& name, std::string_view text,
            std::vector<std::string> more = {}) {
  write_file(folder.file(name), std::string(text));
  std::vector<std::string> arguments = {
      "convert", folder.file(name), "--output", folder.file("set"), "--force", "--min-count", "1"};
  const bool has_text = std::ranges::find(more, "--text") != more.end();
  if (!has_text) more.insert(more.end(), {"--text", "title", "--tags", "tags"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(folder, arguments);
}

std::string labels(const TempFolder& folder) {
  return read_file(folder.file("set/labels.txt"));
}

std::string features(const TempFolder& folder) {
  return read_file(folder.file("set/features.txt"));
}

std::string utf8_of(std::string_view bytes, const std::string& encoding) {
  auto source = std::move(open_memory_source("given", bytes)).value();
  auto utf8 = as_utf8(std::move(source), encoding);
  if (!utf8) return utf8.error().message;
  std::string text;
  std::array<char, 3> some;
  for (;;) {
    const Result<std::size_t> count = (*utf8)->read(some);
    if (!count) return count.error().message;
    if (*count == 0) return text;
    text.append(some.data(), *count);
  }
}

// The text in UTF-16 as Excel saves "Unicode text".
std::string utf16(std::u16string_view text) {
  std::string bytes = "\xff\xfe";
  for (const char16_t c : text) {
    bytes += static_cast<char>(c & 0xff);
    bytes += static_cast<char>(c >> 8);
  }
  return bytes;
}

}  // namespace

TEST_CASE("text forms: a TSV has no quotes, and --quote none gives CSV none", "[text_forms]") {
  const TempFolder folder;
  const std::string text = "title\ttags\n\"one\ta\ntwo\tb\n5\" disk\tc\n\"three\" more\tb\n";
  const Run tsv = convert(folder, "a.tsv", text);
  CHECK(tsv.status == 0);
  CHECK_THAT(tsv.out, Contains("4 examples"));
  CHECK(labels(folder) == "a\nb\nc\n");
  const std::string csv = "title,tags\n\"one,a\ntwo,b\n\"three\" more,b\n";
  const Run refused = convert(folder, "a.csv", csv);
  CHECK(refused.status == 3);
  CHECK_THAT(refused.err, Contains(":4:2: ") && Contains("--quote none takes quotes as text"));
  CHECK_THAT(convert(folder, "a.csv", csv, {"--quote", "none"}).out, Contains("3 examples"));
  // With quotes, a tab and a line end may stand in a field of a TSV.
  const Run quoted = convert(folder, "a.tsv", "title\ttags\n\"one\ttwo\"\ta\n\"x\ny\"\tb\n",
                             {"--quote", "double"});
  CHECK(quoted.status == 0);
  CHECK_THAT(convert(folder, "a.tsv", "title\ttags\n\"x\ny\"\tb\n").err,
             Contains("give --quote double"));
}

TEST_CASE("text forms: a quoted field that swallows lines is named", "[text_forms]") {
  const TempFolder folder;
  std::string text = "title,tags\nfirst,a\n\"lost,b\n";
  for (int i = 0; i < 20; ++i) text += "swallowed " + std::to_string(i) + ",c\n";
  text += "end\",a\nlast,b\n";
  const Run made = convert(folder, "a.csv", text);
  CHECK(made.status == 0);
  CHECK_THAT(made.out,
             Contains("note: " + folder.file("a.csv") + ":3: a quoted field goes on for 22 lines"));
  CHECK_THAT(convert(folder, "b.csv", "title,tags\n\"two\nlines\",a\nx,b\n").out,
             !Contains("note:"));
}

TEST_CASE("text forms: the separator of fields is recognised, or given", "[text_forms]") {
  const TempFolder folder;
  for (const char* text :
       {"id;title;tags\n1;one, two;a\n2;two;b\n",
        "sep=;\r\nid;title;tags\r\n1;one;a\r\n2;two;b\r\n", "id|title|tags\n1|one|a\n2|two|b\n",
        "id\ttitle\ttags\n1\tone\ta\n2\ttwo\tb\n",
        "\"id\";\"title\";\"tags\"\n1;\"one;\"\"\";a\n2;two;b\n"}) {
    const Run made = convert(folder, "a.csv", text);
    INFO(text << made.err);
    CHECK(made.status == 0);
    CHECK(labels(folder) == "a\nb\n");
  }
  CHECK(convert(folder, "a.csv", "title:tags\none:a\ntwo:b\n", {"--separator", ":"}).status == 0);
  const Run wrong = convert(folder, "a.csv", "title:tags\n", {"--separator", "::"});
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, Contains("is not one character"));
}

TEST_CASE("text forms: a column that is missing or there twice is named", "[text_forms]") {
  const TempFolder folder;
  CHECK_THAT(convert(folder, "a.csv", "Title,tags\nx,a\n").err,
             Contains("expected a column 'title', found Title, tags; did you mean 'Title'?"));
  CHECK_THAT(convert(folder, "a.csv", "titel;tags\nx;a\n").err,
             Contains("found titel, tags; did you mean 'titel'?"));
  CHECK_THAT(convert(folder, "a.csv", "title,x,title,tags\na,b,c,d\n").err,
             Contains("expected one column 'title', found fields 1 and 3 of that name"));
}

TEST_CASE("text forms: tags are cut as they stand", "[text_forms]") {
  CHECK(cut_tags("['a', \"b'c\", 3]", kTagList) == Strings{"a", "b'c", " 3"});
  CHECK(cut_tags("[\"a\", \"b \\u00e9\"]", kTagList) == Strings{"a", "b é"});
  CHECK(cut_tags("[]", kTagList).size() <= 1);
  CHECK(cut_tags("<c++><std-sort>", kTagBrackets) == Strings{"c++", "std-sort"});
  CHECK(cut_tags("a;b", ";") == Strings{"a", "b"});
  const TempFolder folder;
  const auto read = [&](const char* first, const char* second) {
    const Run made =
        convert(folder, "a.tsv",
                std::string("title\ttags\none\t") + first + "\ntwo\t" + second + "\nnone\t\n");
    CHECK(made.status == 0);
    return made.out;
  };
  for (const auto& [first, second] :
       {std::pair("['a', 'b']", "['b', 'c']"), std::pair("[\"a\",\"b\"]", "[\"c\"]"),
        std::pair("<a><b>", "<c>"), std::pair("a; b", "c"), std::pair("a|b", "b|c"),
        std::pair("a,b", "c,b")}) {
    const std::string out = read(first, second);
    INFO(out);
    CHECK(labels(folder) == "a\nb\nc\n");
    CHECK_THAT(out, Contains("as read: one | 'a', 'b'\n"));
  }
  // A note tells the form, and a later file is read the same way.
  CHECK_THAT(read("a; b", "c"), Contains("note: tags are read as --tag-separator ';'"));
  CHECK_THAT(read("a,b", "c"), !Contains("note:"));
  CHECK_THAT(read("a;b", "c, d"), Contains("labels look like several tags, such as 'a;b'"));
  read("<a><b>", "<c>");
  write_file(folder.file("later.tsv"), "title\ttags\none\t<c>\n");
  CHECK_THAT(run(folder, {"convert", folder.file("later.tsv"), "--vocabulary", folder.file("set"),
                          "--output", folder.file("set/later.txt")})
                 .out,
             Contains("1 examples, 0 without a known tag"));
}

TEST_CASE(
    "text forms: where most labels look like lists, the guess is wrong, and a flag settles it",
    "[text_forms]") {
  const TempFolder folder;
  const std::string text = "title\ttags\none\ta;b\ntwo\tc;d\nthree\te, f\nfour\tg;h\nfive\ti;j\n";
  const Run refused = convert(folder, "a.tsv", text);
  CHECK(refused.status == 3);
  CHECK_THAT(refused.err, Contains("4 of 6 labels look like several tags, such as 'a;b'"));
  CHECK_THAT(refused.err, Contains("--tag-separator ';' cuts these"));
  CHECK(convert(folder, "a.tsv", text, {"--tag-separator", ";"}).status == 0);
  CHECK(convert(folder, "a.tsv", text, {"--tag-separator", ","}).status == 0);
}

TEST_CASE("text forms: the summary shows the most frequent labels and examples as read",
          "[text_forms]") {
  const TempFolder folder;
  std::string text = "title,tags\n";
  for (const char* tags : {"\"x,y\"", "y", "\"z,y\"", "\"w,x\"", "v", "u"}) {
    text += std::string("about ") + std::to_string(text.size()) + "," + tags + "\n";
  }
  const Run made = convert(folder, "a.csv", text);
  CHECK_THAT(made.out, Contains("most frequent labels: 'y' (3), 'x' (2), 'u' (1), 'v' (1), 'w' "
                                "(1)\nas read: about 11 | 'x', 'y'\nas read: about 26 | 'y'\n"));
  const Run json = convert(folder, "a.csv", text, {"--json"});
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document["frequent_labels"][0]["name"] == "y");
  CHECK(document["as_read"].size() == 3);
  CHECK(document["notes"].empty());
}

TEST_CASE("text forms: encodings are recognised, or given, and nonsense is placed",
          "[text_forms]") {
  CHECK(utf8_of(utf16(u"é€\U0001F600"), "") == "é€😀");
  CHECK(utf8_of(utf16(u"ab").substr(2), "") == "ab");
  CHECK(utf8_of("\xfe\xff\x20\xac", "") == "€");
  CHECK(utf8_of("\xef\xbb\xbfx", "") == "x");
  CHECK(utf8_of("caf\xe9 \x80", "windows-1252") == "café €");
  CHECK(utf8_of("\xc4\xe3\xba\xc3", "GB18030") == "你好");
  CHECK_THAT(utf8_of("x", "utf-ate"), Contains("'utf-ate' is no encoding that this machine's"));
  CHECK_THAT(
      utf8_of("ab\nc\xe9 un caf\xe9 tr\xe8s l\xe9ger", ""),
      Contains("given:2:2: expected UTF-8, found the byte 0xe9; ") && Contains("--encoding"));
  CHECK_THAT(utf8_of("ab\n\xc3", ""), Contains("given:2:1: expected UTF-8"));
  // A character at every place of the border between two reads.
  std::string many;
  for (int i = 0; i < 40'000; ++i) many += i % 7 == 0 ? "x" : "é€";
  CHECK(utf8_of(many, "") == many);

  const TempFolder folder;
  const Run excel = convert(folder, "a.txt", utf16(u"title\ttags\r\nÖl\ta\r\nfeu\tb\r\n"));
  INFO(excel.err);
  CHECK(excel.status == 0);
  CHECK(features(folder) == "feu\nöl\n");
  const std::string latin = "title;tags\n\xd6l;a\nfeu;b\n";
  const Run refused = convert(folder, "a.csv", latin);
  CHECK(refused.status == 3);
  CHECK_THAT(refused.err, Contains("a.csv:2:1: expected UTF-8, found the byte 0xd6"));
  CHECK(convert(folder, "a.csv", latin, {"--encoding", "latin1"}).status == 0);
  CHECK(features(folder) == "feu\nöl\n");
}

TEST_CASE("text forms: JSON in arrays and over several lines; tags in objects", "[text_forms]") {
  const TempFolder folder;
  const std::vector<std::string> flags = {"--text", "title", "--tags", "tags.name"};
  const std::string first = R"({"title": "one",
    "tags": [{"id": 1, "name": "a"}, {"id": 2, "name": "b, c"}]})";
  const std::string second = R"({"title": "two", "tags": {"name": "a"}})";
  for (const std::string& text : {"[" + first + ",\n" + second + "]\n", first + "\n" + second,
                                  first + second, "  \n[\n  " + first + " , " + second + "\n]"}) {
    const Run made = convert(folder, "a.json", text, flags);
    INFO(text << made.err);
    CHECK(made.status == 0);
    CHECK(labels(folder) == "a\nb, c\n");
  }
  CHECK_THAT(convert(folder, "a.json", first + second, {"--text", "title", "--tags", "tags"}).err,
             Contains("found an object; name one of its fields: tags.id, tags.name"));
  CHECK_THAT(convert(folder, "a.json", "[" + second + ",\n", flags).err,
             Contains("a.json:2:1: expected ']' at the end of the array"));
  CHECK_THAT(convert(folder, "a.json", "[" + second + ",\n{\"title\": x}]", flags).err,
             Contains("a.json:2:11: expected a JSON object, found 'x'"));
  CHECK_THAT(convert(folder, "a.json", "{\"title\": \"x\n\"}", flags).err,
             Contains("a.json:1:13: expected a JSON object, found the end of the line"));
  CHECK_THAT(convert(folder, "a.json", "{\"title\": \"x\"", flags).err,
             Contains("an object that does not end before the file"));
}

TEST_CASE("text forms: a FIFO and standard input are read as files are", "[text_forms]") {
  const TempFolder folder;
  const std::string text = "title;tags\none;a\ntwo;b\n";
  const std::string fifo = folder.file("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::thread writer([&] { write_file(fifo, text); });
  const Run made = run(folder, {"convert", fifo, "--text", "title", "--tags", "tags", "--output",
                                folder.file("set"), "--min-count", "1"});
  writer.join();
  INFO(made.err);
  CHECK(made.status == 0);
  CHECK(labels(folder) == "a\nb\n");

  write_file(folder.file("a"), text + "broken\n");
  const int kept = ::dup(STDIN_FILENO);
  const int given = ::open(folder.file("a").c_str(), O_RDONLY);
  ::dup2(given, STDIN_FILENO);
  const Run input = run(folder, {"convert", "-", "--text", "title", "--tags", "tags", "--output",
                                 folder.file("set"), "--force"});
  ::dup2(kept, STDIN_FILENO);
  for (const int fd : {kept, given}) ::close(fd);
  CHECK_THAT(input.err, Contains("standard input:4:1: expected 2 fields"));
}

}  // namespace gleaner
