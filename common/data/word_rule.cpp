#include "common/data/word_rule.hpp"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utext.h>
#include <unicode/uversion.h>

#include <charconv>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace gleaner {
namespace {

constexpr std::uint32_t kCharactersMax = 8;

constexpr UChar32 kReplacement = 0xFFFD;  // replaces bytes that are not UTF-8

enum class Kind { kNone, kSpaced, kUnspaced, kSymbol };

// Letters and marks of several scripts, such as the Japanese length mark, belong to the script of
// the character before.
Kind kind_of(UChar32 character, Kind previous) {
  const auto mask = U_GET_GC_MASK(character);
  if (character == kReplacement) return Kind::kNone;
  if ((mask & U_GC_SO_MASK) != 0) return Kind::kSymbol;
  if ((mask & (U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK)) == 0) {
    return character == '+' ? Kind::kSpaced : Kind::kNone;
  }
  UErrorCode error = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(character, &error);
  if (uscript_breaksBetweenLetters(script) != 0) return Kind::kUnspaced;
  const bool is_shared = script == USCRIPT_COMMON || script == USCRIPT_INHERITED;
  const bool is_digit = (mask & U_GC_N_MASK) != 0;
  return is_shared && !is_digit && previous == Kind::kUnspaced ? previous : Kind::kSpaced;
}

std::string folded(std::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const form = icu::Normalizer2::getNFKCCasefoldInstance(error);
  GLEANER_CHECK(U_SUCCESS(error));
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  form->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())),
                      sink, nullptr, error);
  GLEANER_CHECK(U_SUCCESS(error));
  return result;
}

// Making an iterator reads the dictionaries, and it serves one thread at a time: each thread keeps
// its own.
icu::BreakIterator& dictionary_words() {
  thread_local const std::unique_ptr<icu::BreakIterator> words = [] {
    UErrorCode error = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> made(
        icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), error));
    GLEANER_CHECK(U_SUCCESS(error));
    return made;
  }();
  return *words;
}

// A text in UTF-8 that ICU reads in place.
class OpenText {
 public:
  explicit OpenText(std::string_view text) {
    UErrorCode error = U_ZERO_ERROR;
    utext_openUTF8(&text_, text.data(), static_cast<std::int64_t>(text.size()), &error);
    GLEANER_CHECK(U_SUCCESS(error));
  }

  OpenText(const OpenText&) = delete;
  OpenText& operator=(const OpenText&) = delete;

  ~OpenText() { utext_close(&text_); }

  [[nodiscard]] UText* get() { return &text_; }

 private:
  UText text_ = UTEXT_INITIALIZER;
};

// The ends of the words of the run, in bytes; the first entry is 0.
std::vector<std::size_t> dictionary_bounds(std::string_view run) {
  OpenText text(run);
  UErrorCode error = U_ZERO_ERROR;
  icu::BreakIterator& words = dictionary_words();
  words.setText(text.get(), error);
  GLEANER_CHECK(U_SUCCESS(error));
  std::vector<std::size_t> bounds;
  for (std::int32_t at = words.first(); at != icu::BreakIterator::DONE; at = words.next()) {
    bounds.push_back(static_cast<std::size_t>(at));
  }
  return bounds;
}

std::vector<std::size_t> character_bounds(std::string_view run) {
  std::vector<std::size_t> bounds;
  for (std::size_t at = 0; at < run.size(); ++at) {
    if ((static_cast<unsigned char>(run[at]) & 0xC0) != 0x80) bounds.push_back(at);
  }
  bounds.push_back(run.size());
  return bounds;
}

// Handles a run of a script without spaces. A dictionary word that is also a run of characters is
// one word.
void use_unspaced(const WordRule& rule, std::string_view run,
                  const std::function<void(std::string_view)>& use) {
  std::set<std::pair<std::size_t, std::size_t>> words;
  if (rule.has_dictionary) {
    const std::vector<std::size_t> bounds = dictionary_bounds(run);
    for (std::size_t i = 1; i < bounds.size(); ++i) words.emplace(bounds[i - 1], bounds[i]);
  }
  if (rule.characters_min > 0) {
    const std::vector<std::size_t> bounds = character_bounds(run);
    const std::size_t count = bounds.size() - 1;
    const std::size_t shortest = std::min<std::size_t>(rule.characters_min, count);
    const std::size_t longest = std::min<std::size_t>(rule.characters_max, count);
    for (std::size_t length = shortest; length <= longest; ++length) {
      for (std::size_t i = 0; i + length <= count; ++i)
        words.emplace(bounds[i], bounds[i + length]);
    }
  }
  for (const auto& [begin, end] : words) use(run.substr(begin, end - begin));
}

void use_unicode(const WordRule& rule, std::string_view text,
                 const std::function<void(std::string_view)>& use) {
  OpenText open(text);
  Kind kind = Kind::kNone;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const auto end = static_cast<std::size_t>(utext_getNativeIndex(open.get()));
    const UChar32 character = utext_next32(open.get());
    const Kind next = character < 0 ? Kind::kNone : kind_of(character, kind);
    const bool goes_on = character >= 0 && next == kind && kind != Kind::kSymbol;
    if (goes_on) continue;
    const std::string_view run = text.substr(begin, end - begin);
    if (kind == Kind::kUnspaced) {
      use_unspaced(rule, run, use);
    } else if (kind != Kind::kNone) {
      use(run);
    }
    begin = end;
    kind = next;
  }
}

// Reads "2-3", or "2".
bool parse_characters(std::string_view lengths, WordRule& rule) {
  const char* const end = lengths.data() + lengths.size();
  auto read = std::from_chars(lengths.data(), end, rule.characters_min);
  rule.characters_max = rule.characters_min;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-') {
    read = std::from_chars(read.ptr + 1, end, rule.characters_max);
  }
  return read.ec == std::errc() && read.ptr == end && rule.characters_min > 0 &&
         rule.characters_min <= rule.characters_max && rule.characters_max <= kCharactersMax;
}

}  // namespace

Result<WordRule> parse_word_rule(const std::string& text) {
  constexpr std::string_view kCharacters = "characters:";
  if (text == "ascii") return kAsciiWords;
  WordRule rule;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string_view part = std::string_view(text).substr(at, end - at);
    while (part.starts_with(' ')) part.remove_prefix(1);
    const bool is_known =
        part == "icu" ||
        (part.starts_with(kCharacters) && parse_characters(part.substr(kCharacters.size()), rule));
    rule.has_dictionary = rule.has_dictionary || part == "icu";
    if (!is_known) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("'{}' is no rule for words: give ascii, icu, characters:A-B with A "
                               "from 1 and B to {}, or icu,characters:A-B",
                               text, kCharactersMax)};
    }
    at = end + 1;
  }
  return rule;
}

std::string to_string(const WordRule& rule) {
  if (rule.is_ascii) return "ascii";
  std::string text = rule.has_dictionary ? "icu" : "";
  if (rule.characters_min == 0) return text;
  return fmt::format("{}{}characters:{}-{}", text, text.empty() ? "" : ",", rule.characters_min,
                     rule.characters_max);
}

void for_each_word(const WordRule& rule, std::string_view text,
                   const std::function<void(std::string_view)>& use) {
  const auto is_beyond_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (rule.is_ascii || std::ranges::none_of(text, is_beyond_ascii)) {
    for_each_word(text, use);
  } else {
    use_unicode(rule, folded(text), use);
  }
}

std::string icu_version() {
  return U_ICU_VERSION;
}

}  // namespace gleaner
