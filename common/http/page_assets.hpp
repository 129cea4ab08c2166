// The pages' files as HTTP replies. On the HTTP server's thread only.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "common/http/http_server.hpp"

namespace gleaner {

// A file of a page, which the build embeds in the program: see gleaner_page() in CMakeLists.txt.
struct PageAsset {
  std::string_view path;  // "/chart.js"
  const char* type;       // for the header Content-Type
  std::string_view content;
};

// Files of all pages: style sheet, icon, tiles of figures, number formats.
std::span<const PageAsset> shared_page_assets();

// The file with this path in `own`, else in shared_page_assets(); nullopt when neither has it.
std::optional<HttpReply> asset_reply(std::string_view path, std::span<const PageAsset> own);

}  // namespace gleaner
