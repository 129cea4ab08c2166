#include "common/access/signed_thanks.hpp"

#include <catch2/catch.hpp>

namespace gleaner {
namespace {

using Catch::Contains;

Thanks work_of(const KeyPair& volunteer) {
  return {volunteer.id(), 11'520, 41'000, Checked::kAll, true, 1'764'000'000, "birds, of 2026"};
}

}  // namespace

TEST_CASE("thanks: a master's signature is that of the key in its line", "[access]") {
  const KeyPair master = KeyPair::make(), volunteer = KeyPair::make();
  REQUIRE(id_of(master.public_key()) == master.id());
  const SignedThanks thanks = sign(work_of(volunteer), master);
  REQUIRE(check(thanks));
  REQUIRE(check(thanks, master.id(), volunteer.id()));
}

TEST_CASE("thanks: another master's, another volunteer's and no key's are refused in a sentence",
          "[access]") {
  const KeyPair master = KeyPair::make(), volunteer = KeyPair::make(), other = KeyPair::make();
  const SignedThanks thanks = sign(work_of(volunteer), master);
  CHECK_THAT(check(thanks, other.id(), volunteer.id()).error().message,
             Contains("another key than the master's has signed them"));
  CHECK_THAT(check(thanks, master.id(), other.id()).error().message,
             Contains("for another volunteer, with the key " + to_text(volunteer.id())));
  SignedThanks moved = thanks;
  moved.master = other.public_key();
  CHECK_FALSE(check(moved));
  CHECK_FALSE(check(SignedThanks{}));
  moved.master.fill(0xff);
  CHECK(check(moved).error().message == "the signature does not fit");
}

TEST_CASE("thanks: each field and each bit of the signature counts", "[access]") {
  const KeyPair master = KeyPair::make(), volunteer = KeyPair::make();
  const SignedThanks good = sign(work_of(volunteer), master);
  const auto changed = [&](auto&& change) {
    SignedThanks bad = good;
    change(bad.thanks);
    return !check(bad);
  };
  CHECK(changed([](Thanks& t) { ++t.volunteer.low; }));
  CHECK(changed([](Thanks& t) { ++t.seconds; }));
  CHECK(changed([](Thanks& t) { ++t.examples; }));
  CHECK(changed([](Thanks& t) { t.checked = Checked::kSome; }));
  CHECK(changed([](Thanks& t) { t.is_finished = false; }));
  CHECK(changed([](Thanks& t) { ++t.wall_seconds; }));
  CHECK(changed([](Thanks& t) { t.run += "2"; }));
  for (std::size_t bit = 0; bit < 8 * good.signature.size(); ++bit) {
    SignedThanks bad = good;
    bad.signature[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    CHECK_FALSE(check(bad));
  }
}

TEST_CASE("thanks: a line is read back, and a changed character never fits", "[access]") {
  const KeyPair master = KeyPair::make(), volunteer = KeyPair::make();
  const SignedThanks thanks = sign(work_of(volunteer), master);
  const std::string line = to_line(thanks);
  REQUIRE(line.find('\n') == std::string::npos);
  REQUIRE(parse_thanks(line) == thanks);
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string other = line;
    other[i] = other[i] == '3' ? '4' : '3';
    const auto read = parse_thanks(other);
    CHECK((!read || !check(*read)));
  }
  for (const std::string& bad : {std::string(), line.substr(1), line + "\t", line.substr(0, 40)}) {
    CHECK_FALSE(parse_thanks(bad));
  }
}

}  // namespace gleaner
