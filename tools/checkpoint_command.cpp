#include "tools/checkpoint_command.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/store_access.hpp"

namespace gleaner {
namespace {

Result<void> print_digest(RunStore& run) {
  const Result<std::string> digest = run.checkpoint_digest();
  if (!digest) return digest.error();
  return print_out(*digest + "\n");
}

}  // namespace

void add_checkpoint_commands(CLI::App& app, int& exit_status) {
  CLI::App& checkpoint =
      *app.add_subcommand("checkpoint", "ask about the last whole checkpoint of a store");
  checkpoint.footer(
      "Examples:\n"
      "  gleaner checkpoint digest run1\n"
      "  gleaner checkpoint digest --help");
  checkpoint.require_subcommand(1);

  CLI::App& digest = *checkpoint.add_subcommand(
      "digest", "print the SHA-256 of the last whole checkpoint, 64 hexadecimal digits");
  auto folder = std::make_shared<std::string>();
  digest.add_option("store", *folder, "folder that gleaner-master was given as --store")
      ->required();
  digest.footer(std::string("The digest covers configuration, seed and data fingerprint, "
                            "progress, every weight, state and\ntable entry. Whoever trains with "
                            "the same data, configuration and seed has the same digest\nat the "
                            "same checkpoint, whichever machines took part. It may be asked for "
                            "while the master runs.\n\n"
                            "Examples:\n"
                            "  gleaner checkpoint digest run1\n"
                            "  test \"$(gleaner checkpoint digest run1)\" = "
                            "\"$(gleaner checkpoint digest run2)\"\n\n") +
                kStoreExitCodes);
  digest.callback([folder, &exit_status] { exit_status = run_on_store(*folder, print_digest); });
}

}  // namespace gleaner
