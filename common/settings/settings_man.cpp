#include <fmt/format.h>

#include "common/exit_code.hpp"
#include "common/settings/roff.hpp"
#include "common/settings/settings_flags.hpp"

namespace gleaner {
namespace {

std::string facts_of(const Setting& setting, const std::string& other_name) {
  return fmt::format("{} {}; {}; default {}.", setting.doc, other_name, setting.expects(),
                     setting.default_text.empty() ? "empty" : setting.default_text);
}

std::string flag_of(const Setting& setting) {
  if (setting.value.kind != SettingKind::kBoolean) return setting.flag + " VALUE";
  return setting.flag + ", --no-" + setting.flag.substr(2);
}

// An item a setting of the section.
template <typename Item>
std::string items(const Settings& settings, const SettingSection& section, Item item) {
  std::string text;
  for (const Setting& setting : settings.all()) {
    if (setting.section == section.name) text += item(setting);
  }
  return text;
}

std::string config_file_of(const ProgramText& program) {
  return program.name + ".toml";
}

}  // namespace

std::string print_man(const Settings& settings, const ProgramText& program) {
  std::string text = roff_title(program.name, 1, program.name + " " + program.version);
  const std::string first_sentence = program.summary.substr(0, program.summary.find(". "));
  text += roff_section("NAME") + roff(program.name) + " \\- " + roff(first_sentence) + "\n";
  text += roff_section("SYNOPSIS") + ".B " + roff(program.name) + "\n" + roff(program.usage) + "\n";
  text += roff_section("DESCRIPTION") + roff_paragraph(program.summary);
  if (!program.notes.empty()) text += roff_paragraph(program.notes);
  text += roff_section("EXAMPLES") + roff_lines(program.examples);
  text += roff_section("OPTIONS");
  text += roff_item("--config FILE", fmt::format("Read a TOML file, described in {}(5); flags win "
                                                 "over it.",
                                                 config_file_of(program)));
  for (const PrintingFlag& flag : printing_flags()) text += roff_item(flag.flag, flag.doc);
  for (const SettingSection& section : settings.sections()) {
    text += roff_subsection(section.name) + roff_paragraph(section.doc);
    text += items(settings, section, [](const Setting& setting) {
      return roff_item(flag_of(setting), facts_of(setting, "Key " + setting.key));
    });
  }
  text += roff_section("EXIT STATUS") + roff_lines(exit_code_help());
  return text + roff_section("SEE ALSO") + roff(config_file_of(program) + "(5), gleaner(1)") + "\n";
}

std::string print_man_config(const Settings& settings, const ProgramText& program) {
  const std::string name = config_file_of(program);
  std::string text = roff_title(name, 5, program.name + " " + program.version);
  text +=
      roff_section("NAME") + roff(name) + " \\- " + roff("configuration of " + program.name) + "\n";
  text += roff_section("SYNOPSIS") + ".B " + roff(program.name + " --config") + "\n.I FILE\n";
  text +=
      roff_section("DESCRIPTION") +
      roff_paragraph(fmt::format(
          "A TOML file under any name. Every key is also a flag of {0}(1), and a flag wins over "
          "the file. Nothing needs a file. {0} --print-config writes one with every key and "
          "the value that it has. An unknown key, or a value of the wrong kind or out of "
          "range, is refused by name and line. Where auto may stand, the value follows from "
          "the data or the machine. Sizes are bytes, or a whole number and K, M, G or T "
          "(powers of 1024).",
          program.name));
  for (const SettingSection& section : settings.sections()) {
    text += roff_section("[" + section.name + "]") + roff_paragraph(section.doc);
    text += items(settings, section, [](const Setting& setting) {
      return roff_item(setting.name, facts_of(setting, "Flag " + setting.flag));
    });
  }
  return text + roff_section("SEE ALSO") + roff(program.name + "(1)") + "\n";
}

}  // namespace gleaner
