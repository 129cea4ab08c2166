// Words of texts in any script.
#include "common/data/word_rule.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/data/word_model.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/tools/dataset/run_dataset.hpp"

namespace gleaner {
namespace {

using Words = std::vector<std::string>;
using test::run;
using test::Run;

Words words_of(const std::string& rule, std::string_view text) {
  Words words;
  for_each_word(std::move(parse_word_rule(rule)).value(), text,
                [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

}  // namespace

TEST_CASE("words: every rule gives the words of ASCII text that the ASCII rule gives",
          "[word_rule]") {
  const std::string text = "C++ isn't foo_bar, x86-64's \"Main.cpp\" + 3.14; END";
  const Words expected = {"c++", "isn",  "t",   "foo", "bar", "x86", "64",
                          "s",   "main", "cpp", "+",   "3",   "14",  "end"};
  for (const char* rule : {"ascii", "icu", "characters:1-3", "icu,characters:2"}) {
    CHECK(words_of(rule, text) == expected);
    // So does a text that has one other word.
    Words more = words_of(rule, text + " \xc3\xa9");
    more.pop_back();
    CHECK(more == expected);
  }
}

TEST_CASE("words: composed and decomposed letters, widths and capitals are one form",
          "[word_rule]") {
  CHECK(words_of("icu", "Cafe\u0301 CAFÉ café") == Words{"café", "café", "café"});
  CHECK(words_of("icu", "Straße STRASSE") == Words{"strasse", "strasse"});
  CHECK(words_of("icu", "Ｇｌｅａｎｅｒ ﬁne") == Words{"gleaner", "fine"});
  CHECK(words_of("icu", "“Öl” – ΣΊΣΥΦΟΣ") == Words{"öl", "σίσυφοσ"});
  // The ASCII rule keeps the bytes: data sets made before have these features.
  CHECK(words_of("ascii", "“Öl”") == Words{"“Öl”"});
  // Marks belong to the letters before them; a symbol is a word; broken bytes are none.
  CHECK(words_of("icu", "हिन्दी भाषा") == Words{"हिन्दी", "भाषा"});
  CHECK(words_of("icu", "ok👍👍") == Words{"ok", "👍", "👍"});
  CHECK(words_of("icu", "a\xff\xfe b\xc3") == Words{"a", "b"});
}

TEST_CASE("words: scripts without spaces are cut by dictionary, by characters, or both",
          "[word_rule]") {
  CHECK(words_of("icu", "我们在北京大学学习。") == Words{"我们", "在", "北京", "大学", "学习"});
  CHECK(words_of("icu", "ภาษาไทยง่าย") == Words{"ภาษา", "ไทย", "ง่าย"});
  CHECK(words_of("icu", "データを使う").size() >= 3);
  CHECK(words_of("characters:2-3", "北京大") == Words{"北京", "北京大", "京大"});
  CHECK(words_of("characters:2-3", "字") == Words{"字"});
  // A word that is also a run of characters counts once.
  CHECK(words_of("icu,characters:1-2", "学习") == Words{"学", "学习", "习"});
  // The length mark belongs to the script before it; digits and Latin letters are cut off.
  CHECK(words_of("characters:4", "データー3章iPhone手机") ==
        Words{"データー", "3", "章", "iphone", "手机"});
  // Korean has spaces.
  CHECK(words_of("characters:2", "한국어 텍스트") == Words{"한국어", "텍스트"});
}

TEST_CASE("words: a rule is read as it is written, and nonsense is refused", "[word_rule]") {
  for (const char* text : {"ascii", "icu", "characters:1-2", "icu,characters:2-3"}) {
    CHECK(to_string(std::move(parse_word_rule(text)).value()) == text);
  }
  CHECK(to_string(std::move(parse_word_rule("icu, characters:2")).value()) == "icu,characters:2-2");
  for (const char* text : {"", "ICU", "icu,", "characters:", "characters:0-2", "characters:3-2",
                           "characters:1-99", "characters:1-2x", "ascii,icu"}) {
    CHECK_THAT(message_of(parse_word_rule(text)), Catch::Contains("is no rule for words"));
  }
}

TEST_CASE("words: a folder's rule makes the same features of a text when predicting",
          "[word_rule]") {
  const TempFolder folder;
  write_file(folder.file("a.csv"),
             "text,tags\n北京大学,a\n大学的学习,b\nCafé 北京,a\nภาษาไทย,c\nภาษา,c\ncafe\u0301,b\n");
  const auto convert = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "convert", folder.file("a.csv"), "--text",           "text",   "--tags",
        "tags",    "--output",           folder.file("set"), "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(folder, arguments);
  };
  for (const char* rule : {"icu,characters:1-2", "characters:2-3", "ascii"}) {
    const Run made = convert({"--words", rule, "--min-count", "1"});
    INFO(made.err);
    REQUIRE(made.status == 0);
    const auto model = load_word_model(folder.file("set"));
    REQUIRE(model.ok());
    CHECK(to_string(model->rule) == rule);
    const std::vector<Point> points = test::read_points(folder.file("set/train.txt"));
    CHECK(model->point_of("北京大学").features == points[0].features);
    CHECK(model->point_of("Café 北京").values == points[2].values);
  }
  CHECK_THAT(convert({"--words", "words"}).err, Catch::Contains("is no rule for words"));
  // A folder that was made before there were rules has the rule of that time.
  const std::string features = read_file(folder.file("set/features.txt"));
  std::string words = read_file(folder.file("set/words.json"));
  const std::size_t at = words.find("\"words\":\"ascii\",");
  REQUIRE(at != std::string::npos);
  write_file(folder.file("set/words.json"), words.erase(at, 16));
  CHECK(std::move(load_word_model(folder.file("set"))).value().rule == kAsciiWords);
}

}  // namespace gleaner
