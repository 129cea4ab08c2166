#include "common/access/signed_thanks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "common/bytes.hpp"

namespace gleaner {
namespace {

// Begins the signed text, so that it cannot be taken for another text signed by the key.
constexpr std::string_view kBegin = "gleaner-thanks-1\t";
// The begin, five numbers and a key, the run's name, the master's key, its signature.
constexpr std::size_t kFields = 10;

// No field contains a tab (a printable name does not), so different thanks have different texts.
std::string signed_text(const Thanks& thanks) {
  return fmt::format("{}{}\t{}\t{}\t{}\t{}\t{}\t{}", kBegin, to_text(thanks.volunteer),
                     thanks.seconds, thanks.examples, static_cast<unsigned>(thanks.checked),
                     static_cast<unsigned>(thanks.is_finished), thanks.wall_seconds, thanks.run);
}

// Nullopt unless `text` is the canonical form of a number of at most `most`.
std::optional<std::uint64_t> number_in(std::string_view text, std::uint64_t most = ~0ULL) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (!is_whole || number > most || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return number;
}

template <typename Array>
bool read_base32(std::string_view text, Array& target) {
  const auto bytes = from_base32(text, target.size());
  if (bytes) std::ranges::copy(*bytes, target.begin());
  return bytes.has_value();
}

}  // namespace

SignedThanks sign(Thanks thanks, const KeyPair& master) {
  const Signature signature = master.sign(signed_text(thanks));
  return {std::move(thanks), master.public_key(), signature};
}

Result<void> check(const SignedThanks& thanks) {
  if (is_signed_by(thanks.master, signed_text(thanks.thanks), thanks.signature)) return {};
  return Error{ErrorCode::kIdentity, "the signature does not fit"};
}

Result<void> check(const SignedThanks& thanks, const KeyId& master, const KeyId& volunteer) {
  if (id_of(thanks.master) != master) {
    return Error{ErrorCode::kIdentity, "another key than the master's has signed them"};
  }
  if (thanks.thanks.volunteer != volunteer) {
    return Error{ErrorCode::kIdentity, "they are for another volunteer, with the key " +
                                           to_text(thanks.thanks.volunteer)};
  }
  return check(thanks);
}

std::string to_line(const SignedThanks& thanks) {
  return fmt::format("{}\t{}\t{}", signed_text(thanks.thanks), to_base32(thanks.master),
                     to_base32(thanks.signature));
}

bool is_thanks_line(std::string_view line) {
  return line.starts_with(kBegin);
}

std::optional<SignedThanks> parse_thanks(std::string_view line) {
  if (!is_thanks_line(line)) return std::nullopt;
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\t', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fields.size() != kFields) return std::nullopt;
  const auto volunteer = parse_key_id(fields[1]);
  const auto seconds = number_in(fields[2]);
  const auto examples = number_in(fields[3]);
  const auto checked = number_in(fields[4], static_cast<unsigned>(Checked::kAll));
  const auto is_finished = number_in(fields[5], 1);
  const auto wall_seconds = number_in(fields[6]);
  if (!volunteer || !seconds || !examples || !checked || !is_finished || !wall_seconds) {
    return std::nullopt;
  }
  SignedThanks thanks{{*volunteer, *seconds, *examples, static_cast<Checked>(*checked),
                       *is_finished == 1, *wall_seconds, std::string(fields[7])},
                      {},
                      {}};
  if (!read_base32(fields[8], thanks.master) || !read_base32(fields[9], thanks.signature)) {
    return std::nullopt;
  }
  return thanks;
}

}  // namespace gleaner
