#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <utility>

#include "common/result.hpp"
#include "common/settings/settings.hpp"
#include "common/settings/settings_value.hpp"

namespace gleaner {
namespace {

struct GivenFlag {
  const Setting* setting = nullptr;
  std::string text;
};

struct ParsedArguments {
  bool help = false;
  bool help_all = false;
  bool version = false;
  bool print_config = false;
  bool print_reference = false;
  std::string config;
  std::vector<GivenFlag> flags;  // in the table's order
};

Error usage_error(const ProgramText& program, const std::string& sentence) {
  return {ErrorCode::kInvalidArgument, fmt::format("{} See {} --help.", sentence, program.name)};
}

// The error for the first unknown argument.
Error unknown_argument(const Settings& settings, const ProgramText& program,
                       const std::string& argument) {
  if (argument.empty() || argument.front() != '-') {
    return usage_error(program, fmt::format("Unexpected argument '{}'.", argument));
  }
  const std::string flag = argument.substr(0, argument.find('='));
  return usage_error(program, fmt::format("Unknown flag {}.{}", flag, settings.flag_hint(flag)));
}

// `message` begins with the flag whose value is missing, then a colon.
Error missing_value(const Settings& settings, const ProgramText& program,
                    const std::string& message) {
  const std::string flag = message.substr(0, message.find(':'));
  const Setting* setting = settings.find_flag(flag);
  return usage_error(program, fmt::format("{} needs a value: {}.", flag,
                                          setting == nullptr ? "PATH" : setting->expects()));
}

// CLI11 would take the next argument as the value of "--flag=", which is an empty value.
std::vector<std::string> with_empty_values(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("--") && argument.find('=') + 1 == argument.size()) {
      result.push_back(argument.substr(0, argument.size() - 1));
      result.emplace_back();
    } else {
      result.push_back(argument);
    }
  }
  return result;
}

Result<ParsedArguments> parse(const Settings& settings, const ProgramText& program,
                              const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();  // our --help is made from the table
  app.allow_extras();
  ParsedArguments parsed;
  app.add_flag("-h,--help", parsed.help);
  app.add_flag("--help-all", parsed.help_all);
  app.add_flag("--version", parsed.version);
  app.add_flag("--print-config", parsed.print_config);
  app.add_flag("--print-reference", parsed.print_reference);
  app.add_option("--config", parsed.config)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  // CLI11 keeps references to these values.
  std::deque<std::string> texts;
  std::vector<std::pair<CLI::Option*, const Setting*>> options;
  for (const Setting& setting : settings.all()) {
    std::string& text = texts.emplace_back();
    CLI::Option* option = nullptr;
    if (setting.value.kind == SettingKind::kBoolean) {
      option = app.add_flag(setting.flag + ",!--no-" + setting.flag.substr(2), text);
    } else if (setting.key == program.positional_key) {
      option = app.add_option(setting.flag + "," + setting.name, text);
    } else {
      option = app.add_option(setting.flag, text);
    }
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    options.emplace_back(option, &setting);
  }
  // The library reports usage errors by exceptions, which end here. It takes arguments in reverse.
  std::vector<std::string> reversed = with_empty_values(arguments);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    return missing_value(settings, program, error.what());
  } catch (const CLI::ParseError& error) {
    return usage_error(program, fmt::format("{}.", std::string(error.what())));
  }
  const std::vector<std::string> extras = app.remaining();
  if (!extras.empty() && !parsed.help && !parsed.help_all)
    return unknown_argument(settings, program, extras.front());
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i].first->count() > 0) parsed.flags.push_back({options[i].second, texts[i]});
  }
  return parsed;
}

Result<void> apply(const Setting& setting, const std::string& source, const std::string& text) {
  if (setting.value.set(text)) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is '{}': it must be {}{}", source, text, setting.expects(),
                           did_you_mean_number(text))};
}

constexpr std::pair<const char*, const char*> kPrintingFlags[] = {
    {"--print-config", "Write the configuration as a commented TOML file and exit."},
    {"--print-reference", "Write the reference of all keys as Markdown and exit."},
    {"--version", "Print the version and exit."},
    {"-h, --help", "Print this and exit."},
    {"--help-all", "Print this with the flags that few people ever set, and exit."}};

}  // namespace

std::string print_help(const Settings& settings, const ProgramText& program, bool all) {
  std::string text = fmt::format("Usage: {} {}\n\n", program.name, program.usage);
  text += wrap_text(program.summary, 0);
  text += fmt::format("\nExamples:\n{}", program.examples);
  text +=
      "\nEverywhere:\n"
      "  --config FILE               Read a TOML file; flags win over it.\n";
  for (const auto& [flag, doc] : kPrintingFlags) {
    text += fmt::format("  {:<28}{}", flag, wrap_text(doc, 30).substr(30));
  }
  text += print_flags(settings, all);
  text += fmt::format("\nExit codes:\n{}", exit_code_help());
  if (!program.notes.empty()) text += "\n" + program.notes;
  return text;
}

Result<TextToPrint> load_settings(const Settings& settings, const ProgramText& program,
                                  const std::vector<EnvironmentValue>& environment,
                                  const std::vector<std::string>& arguments) {
  Result<ParsedArguments> parsed = parse(settings, program, arguments);
  if (!parsed) return parsed.error();
  if (parsed->help || parsed->help_all) {
    return TextToPrint(print_help(settings, program, parsed->help_all));
  }
  if (parsed->version) return TextToPrint(program.name + " " + program.version + "\n");
  if (parsed->print_reference) return TextToPrint(print_reference(settings));
  if (!parsed->config.empty()) {
    if (auto read = read_toml_file(settings, parsed->config); !read) return read.error();
  }
  for (const EnvironmentValue& given : environment) {
    const Setting* setting = settings.find_key(given.key);
    GLEANER_CHECK(setting != nullptr);
    if (auto set = apply(*setting, given.variable, given.text); !set) return set.error();
  }
  for (const GivenFlag& flag : parsed->flags) {
    if (auto set = apply(*flag.setting, flag.setting->flag, flag.text); !set) return set.error();
  }
  if (parsed->print_config) {
    return TextToPrint(
        print_toml(settings, fmt::format("Configuration of {} {}. Flags win over this file.",
                                         program.name, program.version)));
  }
  return TextToPrint();
}

}  // namespace gleaner
