// A text as a QR code, which a phone's camera reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gleaner {

// The code's rows, each a '1' for every dark module and a '0' for every light one, without the
// quiet zone of four modules that belongs around it. Empty when the text is longer than a code can
// hold.
std::vector<std::string> qr_rows(std::string_view text);

}  // namespace gleaner
