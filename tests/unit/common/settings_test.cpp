#include "common/settings/settings.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "common/settings/settings_value.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

enum class Mood : std::uint8_t { kCalm, kBold };

struct Sample {
  std::uint32_t width = 128;
  std::int32_t step = -14;
  std::uint64_t seed = 1;
  float rate = 0.003F;
  double share = 0.25;
  bool fast = true;
  bool loud = false;
  std::string path;
  Mood mood = Mood::kCalm;
  std::optional<float> decay;
  std::optional<Mood> other_mood;
  std::uint64_t memory = std::uint64_t{4} << 30;
  std::string listen;
  friend bool operator==(const Sample&, const Sample&) = default;
};

Settings table(Sample& s) {
  const SettingScope model = SettingScope::kModel;
  const SettingScope machine = SettingScope::kMachine;
  Settings settings;
  settings.begin_section("model", "The trained network.");
  settings.add("width", model, "units", "Width | of it.", integer_setting(s.width, 16, 4096));
  settings.add("step", model, "", "Step.", integer_setting(s.step, -30, 0));
  settings.add("seed", model, "", "Seed.",
               integer_setting(s.seed, 0, std::numeric_limits<std::int64_t>::max()));
  settings.add("rate", model, "", "Rate.", number_setting(s.rate, 0.0F, 10.0F));
  settings.add("share", SettingScope::kRun, "", "Share.", number_setting(s.share, 0.0, 1.0));
  settings.add("mood", model, "", "Mood.", choice_setting(s.mood, {"calm", "bold"}));
  settings.add("decay", model, "", "Decay.",
               or_auto(s.decay, [](float& field) { return number_setting(field, 0.0F, 1.0F); }));
  settings.add("other_mood", model, "", "Mood.", or_auto(s.other_mood, [](Mood& field) {
                 return choice_setting(field, {"calm", "bold"});
               }));
  settings.begin_section("machine", "Where it runs.");
  settings.add("path", machine, "", "Where.", text_setting(s.path, "PATH"), "store");
  settings.add("fast", machine, "", "Speed.", boolean_setting(s.fast));
  settings.add("loud", machine, "", "Noise.", boolean_setting(s.loud));
  settings.add("memory", machine, "", "Memory.",
               bytes_setting(s.memory, 1 << 20, std::uint64_t{1} << 40));
  settings.add("listen", machine, "", "Address.", host_port_setting(s.listen, false));
  return settings;
}

const ProgramText& program() {
  static const ProgramText text{"prog",         "1.2", "PLACE",         "Does it.",
                                "  prog x:1\n", "",    "machine.listen"};
  return text;
}

Result<TextToPrint> load(Sample& sample, const std::vector<std::string>& arguments,
                         const std::vector<EnvironmentValue>& environment = {}) {
  return load_settings(table(sample), program(), environment, arguments);
}

std::string refusal(const std::string& toml) {
  Sample sample;
  const Result<void> result = read_toml(table(sample), toml, "run.toml");
  return result ? std::string("accepted") : result.error().message;
}

std::string flag_refusal(const std::vector<std::string>& arguments) {
  Sample sample;
  const Result<TextToPrint> result = load(sample, arguments);
  return result ? std::string("accepted") : result.error().message;
}

}  // namespace

TEST_CASE("settings: a TOML file sets every kind of key", "[settings]") {
  Sample sample;
  const Settings settings = table(sample);
  REQUIRE(read_toml(settings, "machine.path = 'dotted'", "run.toml").ok());
  REQUIRE(sample.path == "dotted");
  REQUIRE(read_toml(settings, R"(
[model]
width = 64
step = -3
seed = 9223372036854775807
rate = 1
share = 1e-3
mood = "bold"
decay = 0.5
other_mood = "auto"
[machine]
path = 'a "b" \c'
fast = false
memory = "512M"
listen = "[::1]:7070"
)",
                    "run.toml")
              .ok());
  Sample expected;
  expected.width = 64;
  expected.step = -3;
  expected.seed = 9223372036854775807u;
  expected.rate = 1.0F;
  expected.share = 1e-3;
  expected.mood = Mood::kBold;
  expected.decay = 0.5F;
  expected.path = "a \"b\" \\c";
  expected.fast = false;
  expected.memory = std::uint64_t{512} << 20;
  expected.listen = "[::1]:7070";
  REQUIRE(sample == expected);
}

TEST_CASE("settings: an unknown key is refused by name and line, with the likely one",
          "[settings]") {
  REQUIRE(refusal("[model]\n\nwidht = 3\n") ==
          "run.toml:3: unknown key `model.widht`. Did you mean `model.width`?");
  REQUIRE(refusal("width = 64") == "run.toml:1: unknown key `width`. Did you mean `model.width`?");
  REQUIRE(refusal("[machine]\nwidth = 64") ==
          "run.toml:2: unknown key `machine.width`. Did you mean `model.width`?");
  REQUIRE(refusal("[machine]\nzzzzzzzz = 64") == "run.toml:2: unknown key `machine.zzzzzzzz`.");
  REQUIRE(refusal("[modell]\nwidth = 64") ==
          "run.toml:1: unknown section `modell`. Did you mean [model]?");
  REQUIRE(refusal("[weather]\n") ==
          "run.toml:1: unknown section `weather`. The sections are model, machine.");
  REQUIRE(refusal("model = 3") ==
          "run.toml:1: `model` is a section: write [model] and its keys below");
}

TEST_CASE("settings: an ill-typed value is refused by name and line, with what would do",
          "[settings]") {
  REQUIRE(refusal("[model]\nwidth = \"64\"") ==
          "run.toml:2: model.width is \"64\": it must be an integer from 16 to 4096 (units)");
  REQUIRE(refusal("[model]\nwidth = 64.0") ==
          "run.toml:2: model.width is 64: it must be an integer from 16 to 4096 (units)");
  REQUIRE(refusal("[model]\nwidth = 15") ==
          "run.toml:2: model.width is 15: it must be an integer from 16 to 4096 (units)");
  REQUIRE(refusal("[model]\nwidth = \"auto\"") ==
          "run.toml:2: model.width is \"auto\": it must be an integer from 16 to 4096 (units)");
  REQUIRE(refusal("[model]\nrate = nan") ==
          "run.toml:2: model.rate is nan: it must be a number from 0 to 10");
  REQUIRE(refusal("[model]\nrate = 10.001") ==
          "run.toml:2: model.rate is 10.001: it must be a number from 0 to 10");
  REQUIRE(refusal("[model]\nmood = \"Bold\"") ==
          "run.toml:2: model.mood is \"Bold\": it must be one of calm, bold");
  REQUIRE(refusal("[model]\ndecay = \"soon\"") ==
          "run.toml:2: model.decay is \"soon\": it must be a number from 0 to 1, or auto");
  REQUIRE(refusal("[machine]\nfast = 1") ==
          "run.toml:2: machine.fast is 1: it must be true or false");
  REQUIRE(refusal("[machine]\npath = [1]") ==
          "run.toml:2: machine.path is an array: it must be PATH");
  REQUIRE(refusal("[machine]\npath = 2020-01-01") ==
          "run.toml:2: machine.path is a date or time: it must be PATH");
  REQUIRE_THAT(refusal("[machine]\nlisten = \"7070\""),
               StartsWith("run.toml:2: machine.listen is \"7070\": it must be HOST:PORT"));
}

TEST_CASE("settings: of several problems the first in the file is reported", "[settings]") {
  REQUIRE_THAT(refusal("[model]\nzzz = 1\nwidth = 1\n[machine]\nfast = 3\n"),
               StartsWith("run.toml:2: "));
  REQUIRE_THAT(refusal("[machine]\nfast = 3\n[model]\nzzz = 1\n"), StartsWith("run.toml:2: "));
}

TEST_CASE("settings: malformed TOML is refused by line", "[settings]") {
  REQUIRE_THAT(refusal("[model]\nwidth = = 3\n"), StartsWith("run.toml:2: not valid TOML: "));
  REQUIRE_THAT(refusal("[model]\nwidth = 64\nwidth = 65\n"),
               StartsWith("run.toml:3: not valid TOML: "));
  REQUIRE_THAT(refusal("a = \"\xff\""), StartsWith("run.toml:1: not valid TOML: "));
}

TEST_CASE("settings: a configuration file that cannot be read is refused by path", "[settings]") {
  Sample sample;
  const Settings settings = table(sample);
  REQUIRE(read_toml_file(settings, "/nonexistent/run.toml").error().message ==
          "cannot read the configuration /nonexistent/run.toml: there is no such file");
  REQUIRE(read_toml_file(settings, "/").error().message ==
          "cannot read the configuration /: it is a folder");
}

TEST_CASE("settings: a path in a configuration file begins at that file", "[settings]") {
  Sample sample;
  const Settings settings = table(sample);
  const auto read = [&](const std::string& value) {
    REQUIRE(read_toml(settings, "machine.path = '" + value + "'", "/conf/run.toml").ok());
    return sample.path;
  };
  REQUIRE(read("data/train.txt") == "/conf/data/train.txt");
  REQUIRE(read("../train.txt") == "/train.txt");
  REQUIRE(read("/data/train.txt") == "/data/train.txt");
  REQUIRE(read("").empty());
}

TEST_CASE("settings: what --print-config writes reads back as the same configuration",
          "[settings]") {
  Sample defaults;
  defaults.path = "/store";  // paths are printed whole
  Sample changed;
  changed.width = 4096;
  changed.step = -30;
  changed.seed = 77;
  changed.rate = 1.0F / 3;
  changed.share = 0.1;
  changed.fast = false;
  changed.loud = true;
  changed.path = "/C:\\a \"quoted\" path # with = all [of] it";
  changed.mood = Mood::kBold;
  changed.decay = 1e-8F;
  changed.other_mood = Mood::kBold;
  changed.memory = (std::uint64_t{1} << 30) + 1;
  changed.listen = "example.org:0";
  for (Sample* sample : {&defaults, &changed}) {
    const std::string text = print_toml(table(*sample), "A title.");
    Sample read = *sample == defaults ? changed : defaults;
    REQUIRE(read_toml(table(read), text, "printed").ok());
    REQUIRE(read == *sample);
  }
  REQUIRE_THAT(
      print_toml(table(defaults), "A title."),
      StartsWith("# A title.\n\n[model]\n# The trained network.\n\n# Width | of it.\n# Flag "
                 "--width; an integer from 16 to 4096 (units); default 128.\n"
                 "width = 128\n"));
}

TEST_CASE("settings: every float survives being written and read", "[settings]") {
  float field = 0;
  const SettingValue value = number_setting(field, 0.0F, std::numeric_limits<float>::max());
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const std::uint32_t bits = i * 1'069'547u % 0x7f800000u;
    float original = 0;
    std::memcpy(&original, &bits, sizeof(original));
    field = original;
    const std::string text = value.get();
    field = -1;
    REQUIRE(value.set(text));
    REQUIRE(field == original);
  }
}

TEST_CASE("settings: a flag wins over the environment, and that over the file", "[settings]") {
  const int file = memfd_create("run.toml", 0);
  REQUIRE(file >= 0);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const std::string text =
      "[model]\nwidth = 32\nrate = 0.5\n[machine]\npath = \"file\"\nloud = true\n";
  REQUIRE(write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  Sample sample;
  const Result<TextToPrint> loaded =
      load(sample, {"--width", "64", "--config", path, "--no-loud"},
           {{"PROG_PATH", "machine.path", "environment"}, {"PROG_W", "model.width", "48"}});
  close(file);
  REQUIRE(loaded.ok());
  REQUIRE_FALSE(loaded.value().has_value());
  REQUIRE(sample.width == 64);
  REQUIRE(sample.rate == 0.5F);
  REQUIRE(sample.path == "environment");
  REQUIRE_FALSE(sample.loud);
}

TEST_CASE("settings: flags of every shape are understood", "[settings]") {
  Sample sample;
  REQUIRE(load(sample, {"--step", "-3", "--rate=0.25", "--no-fast", "--loud", "--store=", "--width",
                        "32", "--width", "48", "host:1"})
              .ok());
  REQUIRE(sample.step == -3);
  REQUIRE(sample.rate == 0.25F);
  REQUIRE_FALSE(sample.fast);
  REQUIRE(sample.loud);
  REQUIRE(sample.path.empty());
  REQUIRE(sample.width == 48);
  REQUIRE(sample.listen == "host:1");
  REQUIRE(load(sample, {"--store", "", "--loud=false", "--fast", "--listen", "other:2"}).ok());
  REQUIRE_FALSE(sample.loud);
  REQUIRE(sample.fast);
  REQUIRE(sample.listen == "other:2");
}

TEST_CASE("settings: a wrong flag is refused by name, with a remedy", "[settings]") {
  REQUIRE(flag_refusal({"--widht", "3"}) ==
          "Unknown flag --widht. Did you mean --width? See prog --help.");
  REQUIRE(flag_refusal({"--machine.path", "x"}) ==
          "Unknown flag --machine.path. Did you mean --store? See prog --help.");
  REQUIRE(flag_refusal({"--zzzzzzzzzz"}) == "Unknown flag --zzzzzzzzzz. See prog --help.");
  REQUIRE(flag_refusal({"-q"}) == "Unknown flag -q. See prog --help.");
  REQUIRE(flag_refusal({"a:1", "b"}) == "Unexpected argument 'b'. See prog --help.");
  REQUIRE(flag_refusal({"--width"}) ==
          "--width needs a value: an integer from 16 to 4096 (units). See prog --help.");
  REQUIRE(flag_refusal({"--width", "12x"}) ==
          "--width is '12x': it must be an integer from 16 to 4096 (units)");
  REQUIRE(flag_refusal({"--width="}) ==
          "--width is '': it must be an integer from 16 to 4096 (units)");
  REQUIRE(flag_refusal({"--loud=maybe"}) == "--loud is 'maybe': it must be true or false");
  REQUIRE(flag_refusal({"--seed", "-1"}) ==
          "--seed is '-1': it must be an integer from 0 to 2^63 - 1");
  REQUIRE(flag_refusal({"--config", "/nonexistent"}) ==
          "cannot read the configuration /nonexistent: there is no such file");
}

TEST_CASE("settings: texts that are asked for are returned, with what was set before",
          "[settings]") {
  Sample sample;
  REQUIRE(*load(sample, {"--version"}).value() == "prog 1.2\n");
  const std::string help = *load(sample, {"--help", "--nonsense"}).value();
  REQUIRE_THAT(help, StartsWith("Usage: prog PLACE\n\nDoes it.\n\nExamples:\n  prog x:1\n"));
  for (const char* part :
       {"--width N", "--[no-]fast", "--loud ", "--store PATH", "--mood WORD",
        "One of calm, bold. (default calm)", "(units, default 128)", "Exit codes:\n  0  done"}) {
    REQUIRE_THAT(help, Contains(part));
  }
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = help.find('\n', at);
    REQUIRE(end - at <= 80);
    at = end + 1;
  }
  REQUIRE_THAT(*load(sample, {"--print-config", "--width", "64"}).value(),
               Contains("\nwidth = 64\n"));
  REQUIRE_THAT(*load(sample, {"--print-reference"}).value(),
               Contains("- `model.width` (16 to 4096 units; 64): Width | of it."));
}

TEST_CASE("settings: help shows what many set, and the flags for experts on request",
          "[settings]") {
  Sample sample;
  Settings settings = table(sample);
  settings.show({"model.width", "machine.loud"});
  const auto help = [&](const char* flag) {
    return *load_settings(settings, program(), {}, {flag}).value();
  };
  for (const char* part : {"\nmodel:\n", "--width N", "--loud ", "--help-all"}) {
    REQUIRE_THAT(help("--help"), Contains(part));
    REQUIRE_THAT(help("--help-all"), Contains(part));
  }
  for (const char* part : {"--mood WORD", "--store PATH"}) {
    REQUIRE_THAT(help("--help"), !Contains(part));
    REQUIRE_THAT(help("--help-all"), Contains(part));
  }
  // A section without any flag to show has no heading.
  settings.show({"model.width"});
  REQUIRE_THAT(help("--help"), !Contains("\nmachine:\n"));
  // Help leaves out what it does not refuse.
  REQUIRE(load_settings(settings, program(), {}, {"--mood", "bold"}).ok());
  REQUIRE(sample.mood == Mood::kBold);
}

TEST_CASE("settings: a store remembers what belongs to the run and nothing else", "[settings]") {
  Sample sample;
  sample.decay = 0.5F;
  const std::map<std::string, std::string> values = table(sample).run_values();
  REQUIRE(values.size() == 8);
  REQUIRE(values.at("model.width") == "128");
  REQUIRE(values.at("model.share") == "0.25");
  REQUIRE(values.at("model.decay") == "0.5");
  REQUIRE(values.at("model.other_mood") == "auto");
  REQUIRE(values.count("machine.path") == 0);
}

TEST_CASE("settings: a number as people write it is refused with the number", "[settings]") {
  CHECK(did_you_mean_number("0,2") == "; did you mean 0.2?");
  CHECK(did_you_mean_number("20 %") == "; did you mean 0.2?");
  CHECK(did_you_mean_number("2,5%") == "; did you mean 0.025?");
  for (const char* text : {"", "0.2", "1,2,3", "%", "many", "1,x"}) {
    CHECK(did_you_mean_number(text).empty());
  }
}

TEST_CASE("did you mean: the closest word is named, whatever its capitals", "[settings]") {
  const std::vector<std::string> known = {"status", "Title", "verify"};
  CHECK(did_you_mean("statsu", known) == "; did you mean 'status'?");
  CHECK(did_you_mean("title", known) == "; did you mean 'Title'?");
  CHECK(did_you_mean("body", known).empty());
  CHECK(did_you_mean("body", {}).empty());
}

TEST_CASE("settings: sizes in bytes are read and written exactly", "[settings]") {
  REQUIRE(parse_bytes("0") == 0u);
  REQUIRE(parse_bytes("1000") == 1000u);
  REQUIRE(parse_bytes("4G") == std::uint64_t{4} << 30);
  REQUIRE(parse_bytes("4GiB") == std::uint64_t{4} << 30);
  REQUIRE(parse_bytes("5GB") == std::uint64_t{5} << 30);
  REQUIRE(parse_bytes("5 gb") == std::uint64_t{5} << 30);
  REQUIRE(parse_bytes("16777215T") == std::uint64_t{16777215} << 40);
  for (const char* bad : {"", "G", "iB", "4iB", "4GBB", "4 ", "-4G", "+4", "4.5G", "16777216T",
                          "18446744073709551616", "0x10", "4X"}) {
    INFO(bad);
    REQUIRE_FALSE(parse_bytes(bad).has_value());
  }
  REQUIRE(bytes_text(0) == "0");
  REQUIRE(bytes_text(1536u << 20) == "1536M");
  REQUIRE(bytes_text(std::uint64_t{1} << 40) == "1T");
  REQUIRE(bytes_text(1025) == "1025");
}

TEST_CASE("settings: an address has a host and a port", "[settings]") {
  std::string field = "before";
  const SettingValue listener = host_port_setting(field, false);
  const SettingValue target = host_port_setting(field, true);
  for (const char* good :
       {"", "localhost:7070", "[fe80::1%eth0]:65535", "127.0.0.1:1", "a-b.c_d:7"}) {
    INFO(good);
    REQUIRE(listener.set(good));
    REQUIRE(listener.get() == good);
    REQUIRE(target.set(good));
  }
  field = "kept";
  for (const char* bad :
       {"host", ":70", "host:", "host:65536", "host:-1", "::1:70", "[::1]", "[host]:1", "ho st:1",
        "host:1 ", "[]:1", "h/x:1", "host:0x1", "ho\nst:1"}) {
    INFO(bad);
    REQUIRE_FALSE(listener.set(bad));
    REQUIRE(field == "kept");
  }
  REQUIRE_FALSE(target.set("host:0"));
  REQUIRE(listener.set("host:0"));
}

TEST_CASE("settings: the distance of words counts swapped neighbours once", "[settings]") {
  REQUIRE(edit_distance("", "abc") == 3);
  REQUIRE(edit_distance("hidden", "hidden") == 0);
  REQUIRE(edit_distance("hiden", "hidden") == 1);
  REQUIRE(edit_distance("widht", "width") == 1);
  REQUIRE(edit_distance("kitten", "sitting") == 3);
}

}  // namespace gleaner
