// Input: u8 choice, then an address, an invite, a key's id, or the file of invites. What can be
// read has one text.
#include <string>
#include <string_view>

#include "common/access/addresses.hpp"
#include "common/result.hpp"
#include "master/door/access_book.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0) {
    const auto address = parse_master_address(text);
    if (address) GLEANER_CHECK(parse_master_address(to_text(*address)).value() == *address);
    if (address && address->secure) GLEANER_CHECK(text.ends_with(to_text(address->secure->invite)));
  } else if (data[0] % 4 == 1) {
    const auto invite = parse_invite_key(text);
    if (invite) GLEANER_CHECK(to_text(*invite) == text);
  } else if (data[0] % 4 == 2) {
    const auto id = parse_key_id(text);
    if (id) GLEANER_CHECK(to_text(*id) == text);
  } else {
    const auto book = parse_access_book(text);
    if (book) GLEANER_CHECK(parse_access_book(print(*book)).value() == *book);
  }
  return 0;
}
