// Addresses, invites and key ids as text.
#include <catch2/catch.hpp>
#include <cctype>
#include <string>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/access/key_pair.hpp"
#include "common/bytes.hpp"
#include "common/counter_random.hpp"
#include "common/settings/settings_value.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;

const std::string kKey = "u5zrea2vuu2gekrayclbd44ede";
const std::string kInvite = "ncqnlpj5sqmlobkv4s3stcxo4c2bqf536y";
const std::string kLine = "gleaner://h:7070/" + kKey + "." + kInvite;

}  // namespace

TEST_CASE("address: any bytes have one text in base32, and it is read back", "[access]") {
  Rng rng(7, Purpose::kTest);
  for (std::size_t size = 0; size < 70; ++size) {
    Bytes bytes(size);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
    const std::string text = to_base32(bytes);
    REQUIRE(text.size() == base32_size(size));
    REQUIRE(from_base32(text, size) == bytes);
    // Bits that belong to no byte are zero, or two texts would mean the same.
    if (size % 5 != 0) {
      std::string other = text;
      other.back() = other.back() == 'b' ? 'd' : 'b';
      const auto read = from_base32(other, size);
      REQUIRE((!read || to_base32(*read) == other));
    }
  }
  REQUIRE_FALSE(from_base32("A", 0));
  REQUIRE_FALSE(from_base32("ab1", 1));
  REQUIRE_FALSE(from_base32("AA", 1));
  REQUIRE_FALSE(from_base32("a=", 1));
  REQUIRE_FALSE(from_base32("ab", 1));
}

TEST_CASE("address: a line is read and written, byte for byte", "[access]") {
  for (const std::string& line :
       {kLine, "gleaner://[::1]:1/" + kKey + "." + kInvite, std::string("alpha:7070")}) {
    const auto address = parse_master_address(line);
    REQUIRE(address.ok());
    REQUIRE(to_text(*address) == line);
    REQUIRE(address->secure.has_value() == line.starts_with("gleaner:"));
    REQUIRE(line.find_first_of("&#?% ") == std::string::npos);
  }
}

TEST_CASE("address: what is no line is refused, and no secret is repeated", "[access]") {
  const std::vector<std::string> wrong = {
      "gleaner://h:7070",
      "gleaner://h:7070/",
      "gleaner://h:7070/" + kKey,
      "gleaner://h:7070/" + kKey + ".",
      "gleaner://h:7070/." + kInvite,
      "gleaner://h/" + kKey + "." + kInvite,
      "gleaner://h:0/" + kKey + "." + kInvite,
      kLine + "a",
      kLine.substr(0, kLine.size() - 1),
      "gleaner://h:7070/" + kKey + "x." + kInvite,
      "gleaner://h:7070/" + std::string(26, '1') + "." + kInvite,
      kLine + "/",
      "",
  };
  for (const std::string& line : wrong) {
    INFO(line);
    const auto address = parse_master_address(line);
    REQUIRE_FALSE(address.ok());
    REQUIRE_THAT(address.error().message, !Contains(kInvite.substr(8, 10)));
  }
}

TEST_CASE("address: any change of one character is refused or another address", "[access]") {
  for (std::size_t i = 0; i < kLine.size(); ++i) {
    for (const char c : {'a', '7', 'A', '.', '/', '\0'}) {
      std::string line = kLine;
      if (line[i] == c) continue;
      line[i] = c;
      const auto address = parse_master_address(line);
      if (address) REQUIRE_FALSE(*address == parse_master_address(kLine).value());
      if (address) REQUIRE(to_text(*address) == line);
    }
  }
}

TEST_CASE("address: a line is found in what people paste", "[access]") {
  std::string loud = kLine;
  for (char& c : loud) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string& pasted :
       {kLine, "  " + kLine + "\r\n", "'" + kLine + "'", "<" + kLine + ">", kLine + ".",
        kLine + "/", loud, "gleaner-volunteer " + kLine + " --name mine",
        "`sudo gleaner-volunteer join " + kLine + "`", "(see " + kLine + ")."}) {
    INFO(pasted);
    CHECK(address_in(pasted) == kLine);
  }
  CHECK(address_in(" \"alpha:7070\" ") == "alpha:7070");
  CHECK(address_in(" ").empty());
  CHECK_THAT(parse_master_address(address_in(" http://h:8080/")).error().message,
             Contains("it is that of a page; paste the whole line that the master prints"));
  std::vector<char*> arguments = {loud.data()};
  hide_secrets(arguments);
  CHECK_THAT(loud, Catch::EndsWith(".xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
}

TEST_CASE("address: plain text takes the word of both ends", "[access]") {
  const MasterAddress plain = parse_master_address("h:1").value();
  const MasterAddress secure = parse_master_address(kLine).value();
  REQUIRE(check_secrecy(plain, true).ok());
  REQUIRE(check_secrecy(secure, false).ok());
  REQUIRE_THAT(check_secrecy(plain, false).error().message, Contains("--insecure"));
  REQUIRE_THAT(check_secrecy(secure, true).error().message, Contains("leave --insecure out"));
}

TEST_CASE("address: a command line's secrets are overwritten where they stand", "[access]") {
  std::string program = "gleaner", line = kLine, flag = "--master=" + kLine, other = "h:1.abc";
  std::string cut = "gleaner://h:7070/" + kKey, odd = "gleaner://";
  std::string page = "http://h:8080/#" + kInvite, bare = "http://h:8080/";
  std::vector<char*> arguments;
  for (std::string* text : {&program, &line, &flag, &other, &cut, &odd, &page, &bare}) {
    arguments.push_back(text->data());
  }
  hide_secrets(arguments);
  const std::string hidden = "gleaner://h:7070/" + kKey + "." + std::string(kInvite.size(), 'x');
  REQUIRE(line == hidden);
  REQUIRE(flag == "--master=" + hidden);
  REQUIRE(other == "h:1.abc");
  REQUIRE(cut == "gleaner://h:7070/" + kKey);
  REQUIRE(page == "http://h:8080/#" + std::string(kInvite.size(), 'x'));
  REQUIRE(bare == "http://h:8080/");
}

TEST_CASE("duration: numbers and units, and nothing else", "[access]") {
  REQUIRE(parse_duration_seconds("90s").value() == 90);
  REQUIRE(parse_duration_seconds("7d").value() == 7 * 86'400);
  REQUIRE(parse_duration_seconds("2w").value() == 14 * 86'400);
  REQUIRE(parse_duration_seconds("2 hours").value() == 7200);
  REQUIRE(parse_duration_seconds("1 day").value() == 86'400);
  REQUIRE(parse_duration_seconds("30min").value() == 1800);
  REQUIRE(parse_duration_seconds("1h 30m").value() == 5400);
  for (const char* text : {"", "7", "d", "0d", "-1d", "7dd", "7 ", "2 horses",
                           "99999999999999999999d", "1e3s", "5000w0", "40000d"}) {
    INFO(text);
    REQUIRE_FALSE(parse_duration_seconds(text).ok());
  }
}

}  // namespace gleaner
