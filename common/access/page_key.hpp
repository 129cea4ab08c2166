// A page's key ends its address, after a #, which browsers keep to themselves: whoever was told the
// whole address may do there what mere readers may not.
#pragma once

#include <string>
#include <string_view>

#include "common/access/invite_key.hpp"

namespace gleaner {

// From the system's generator.
InviteSecret make_page_key();

// 26 characters of base32.
std::string page_key_text(const InviteSecret& key);

// In a time that does not depend on where the text differs.
bool is_page_key(std::string_view text, const InviteSecret& key);

}  // namespace gleaner
