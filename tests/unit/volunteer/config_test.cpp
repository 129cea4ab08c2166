#include "volunteer/config.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "common/access/secret_file.hpp"
#include "common/limits.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

const std::string kAddress =
    "gleaner://h:7070/u5zrea2vuu2gekrayclbd44ede.ncqnlpj5sqmlobkv4s3stcxo4c2bqf536y";

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

std::string refusal(const std::vector<std::string>& arguments) {
  const Result<VolunteerStart> start = load_volunteer_config(arguments, {});
  return start ? std::string("accepted") : start.error().message;
}

}  // namespace

TEST_CASE("volunteer config: the master's address is enough", "[volunteer_config]") {
  const Result<VolunteerStart> start = load_volunteer_config({kAddress}, {});
  REQUIRE(start.ok());
  VolunteerConfig expected;
  expected.master = kAddress;
  REQUIRE(start->config == expected);
  REQUIRE_FALSE(start->to_print.has_value());
}

TEST_CASE("volunteer config: flags may stand before and after the address", "[volunteer_config]") {
  const Result<VolunteerStart> start =
      load_volunteer_config({"--threads", "1", "[::1]:7070", "--insecure", "--once", "--memory",
                             "4G", "--name", "box", "--cache", "d", "--nice", "3"},
                            {kAddress, std::nullopt});
  REQUIRE(start.ok());
  VolunteerConfig expected;
  expected.master = "[::1]:7070";
  expected.threads = 1;
  expected.nice = 3;
  expected.once = true;
  expected.memory_bytes = std::uint64_t{4} << 30;
  expected.name = "box";
  expected.cache_dir = "d";
  expected.insecure = true;  // and the argument wins over the environment
  REQUIRE(start->config == expected);
}

TEST_CASE("volunteer config: what cannot run is refused with a remedy", "[volunteer_config]") {
  REQUIRE_THAT(refusal({}), Contains("gleaner-volunteer gleaner://HOST:PORT/KEY.INVITE"));
  REQUIRE_THAT(refusal({"alpha"}), StartsWith("'alpha': the port is missing"));
  REQUIRE_THAT(refusal({"alpha:0", "--insecure"}), Contains("port 0"));
  REQUIRE_THAT(refusal({"a:1"}), Contains("has no key") && Contains("--insecure"));
  REQUIRE_THAT(refusal({kAddress, "--insecure"}), Contains("leave --insecure out"));
  // The secret of a line that was cut is not repeated.
  const std::string cut = refusal({kAddress.substr(0, kAddress.size() - 1)});
  REQUIRE_THAT(cut, Contains("has not its 34 characters") && !Contains("ncqnlpj5"));
  REQUIRE_THAT(refusal({kAddress, "b:2"}), StartsWith("Unexpected argument 'b:2'."));
  REQUIRE_THAT(refusal({kAddress, "--memory", "63M"}), Contains("from 64M to"));
  REQUIRE(refusal({kAddress, "--memory", "64M"}) == "accepted");
  REQUIRE_THAT(refusal({kAddress, "--threads", "0"}), StartsWith("--threads is '0'"));
  REQUIRE_THAT(refusal({kAddress, "--nice", "20"}), StartsWith("--nice is '20'"));
  REQUIRE_THAT(refusal({kAddress, "--nice", "-1"}), StartsWith("--nice is '-1'"));
  REQUIRE_THAT(refusal({kAddress, "--retry-ms-max", "499"}),
               StartsWith("network.retry_ms_max is 499"));
  REQUIRE(refusal({kAddress, "--retry-ms-max", "500"}) == "accepted");
  REQUIRE_THAT(refusal({kAddress, "--name", std::string(kNameBytesMax + 1, 'x')}),
               StartsWith("volunteer.name is longer"));
}

TEST_CASE("volunteer config: a file may hold the line, and a flag or the environment name it",
          "[volunteer_config]") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/line";
  const auto write = [&](const std::string& text) {
    REQUIRE(write_secret_file(path, text, SecretFile::kReplaced).ok());
  };
  REQUIRE_THAT(refusal({"--line-file", path}), Contains("no such file"));
  write("\n " + kAddress + " \n");
  REQUIRE(load_volunteer_config({"--line-file", path}, {})->config.master == kAddress);
  REQUIRE(load_volunteer_config({}, {std::nullopt, path})->config.master == kAddress);
  REQUIRE_THAT(refusal({"--line-file", path, "--insecure"}), Contains("leave --insecure out"));
  REQUIRE_THAT(refusal({"--line-file", path, kAddress}), Contains("give one of them"));
  // Text printed for a person has no secret in it.
  const auto printed = load_volunteer_config({"--line-file", path, "--print-config"}, {});
  REQUIRE_THAT(*printed->to_print, Contains(path) && !Contains("ncqnlpj5"));
  for (const std::string& text :
       {std::string(), " \n" + std::string(), kAddress + "\n" + kAddress}) {
    write(text);
    const std::string refused = refusal({"--line-file", path});
    REQUIRE_THAT(refused, Contains("nothing but") && !Contains("ncqnlpj5"));
  }
  write(std::string(1025, 'x'));
  REQUIRE_THAT(refusal({"--line-file", path}), Contains("longer than 1024 bytes"));
}

TEST_CASE("volunteer config: the end of its time is checked, and a job of Slurm tells it",
          "[volunteer_config]") {
  const VolunteerEnvironment job{{}, {}, "1795676400"};
  REQUIRE(load_volunteer_config({kAddress}, job)->config.until == "@1795676400");
  REQUIRE(load_volunteer_config({kAddress, "--until", "4h"}, job)->config.until == "4h");
  const auto refused = load_volunteer_config({kAddress, "--until", "soon"}, {});
  REQUIRE_FALSE(refused.ok());
  REQUIRE_THAT(refused.error().message, Contains("volunteer.until") && Contains("4h"));
}

TEST_CASE("volunteer config: texts that are asked for need no address", "[volunteer_config]") {
  REQUIRE_THAT(*load_volunteer_config({"--version"}, {}).value().to_print,
               StartsWith("gleaner-volunteer "));
  REQUIRE_THAT(*load_volunteer_config({"--help"}, {}).value().to_print,
               StartsWith("Usage: gleaner-volunteer gleaner://HOST:PORT/KEY.INVITE\n") &&
                   Contains("Exit codes:"));
}

TEST_CASE("volunteer config: every default and every change survives --print-config",
          "[volunteer_config]") {
  VolunteerConfig changed;
  changed.master = "h:1";
  changed.threads = 2;
  changed.memory_bytes = (std::uint64_t{1} << 30) + 1;
  changed.once = true;
  changed.retry_ms_max = 99'999;
  for (VolunteerConfig original : {VolunteerConfig{}, changed}) {
    const std::string text = print_toml(volunteer_settings(original), "title");
    VolunteerConfig read = original == changed ? VolunteerConfig{} : changed;
    REQUIRE(read_toml(volunteer_settings(read), text, "printed").ok());
    REQUIRE(read == original);
  }
}

TEST_CASE("volunteer config: what is not set follows from the machine", "[volunteer_config]") {
  const MachineFacts machine{8, std::uint64_t{16} << 30, "alpha"};
  VolunteerConfig config;
  VolunteerOffer offer = effective_offer(config, machine);
  REQUIRE(offer.name == "alpha");
  REQUIRE(offer.threads == 8);
  REQUIRE(offer.memory_bytes == std::uint64_t{8} << 30);
  config.name = "box";
  config.threads = 3;
  config.memory_bytes = 1u << 30;
  offer = effective_offer(config, machine);
  REQUIRE(offer.name == "box");
  REQUIRE(offer.threads == 3);
  REQUIRE(offer.memory_bytes == 1u << 30);
}

TEST_CASE("volunteer config: an odd host name becomes an acceptable one", "[volunteer_config]") {
  MachineFacts machine{1, 0, std::string(kNameBytesMax - 1, 'x') + "ä"};
  REQUIRE(effective_offer({}, machine).name == std::string(kNameBytesMax - 1, 'x'));
  machine.host_name = "a\x1b";
  REQUIRE(effective_offer({}, machine).name == "a?");
  machine.host_name.clear();
  REQUIRE(effective_offer({}, machine).name == "volunteer");
}

TEST_CASE("volunteer config: this machine can be asked", "[volunteer_config]") {
  const MachineFacts facts = machine_facts();
  REQUIRE(facts.cores >= 1);
  REQUIRE(facts.memory_bytes > 1u << 20);
}

TEST_CASE("volunteer config: CONFIGURATION.md says what the table says", "[volunteer_config]") {
  std::ifstream file(GLEANER_SOURCE_DIR "/volunteer/CONFIGURATION.md");
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  // Renew it by hand from `gleaner-volunteer --print-reference` after changing a key.
  REQUIRE_THAT(text.str(), Contains(volunteer_reference()));
}

}  // namespace gleaner
