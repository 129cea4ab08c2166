// The text as a QR code: one string per row, '1' for a dark module and '0' for a light one, without
// the quiet zone of four modules around the code. Empty when the text is too long for a code.
#pragma once

#include <qrencode.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gleaner {

// The code's rows, each a '1' for every dark module and a '0' for every light one, without the
// quiet zone of four modules that belongs around it. Empty when the text is longer than a code can
// hold.
inline std::vector<std::string> qr_rows(std::string_view text) {
  const std::string copy(text);
  const std::unique_ptr<QRcode, decltype(&QRcode_free)> code(
      QRcode_encodeString8bit(copy.c_str(), 0, QR_ECLEVEL_M), &QRcode_free);
  std::vector<std::string> rows;
  if (!code) return rows;
  const auto width = static_cast<std::size_t>(code->width);
  for (std::size_t y = 0; y < width; ++y) {
    std::string& row = rows.emplace_back(width, '0');
    for (std::size_t x = 0; x < width; ++x) {
      if ((code->data[y * width + x] & 1) != 0) row[x] = '1';
    }
  }
  return rows;
}

}  // namespace gleaner
