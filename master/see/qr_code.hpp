// The text as a QR code: one string per row, '1' for a dark module and '0' for a light one, without
// the quiet zone of four modules around the code. Empty when the text is too long for a code.
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
