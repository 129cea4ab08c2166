// The page's files as answers. On the HTTP server's thread only.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "common/http/http_server.hpp"

namespace gleaner {

// Files of pages, which the build puts into the programs: see gleaner_page() in CMakeLists.txt.
struct PageAsset {
  std::string_view path;  // "/chart.js"
  const char* type;       // for the header Content-Type
  std::string_view content;
};

// The style sheet, the icon, tiles of figures and what formats numbers.
std::span<const PageAsset> shared_page_assets();

// The file of `own` that has this path, else the one among those that all pages share; nothing when
// there is none.
std::optional<HttpReply> asset_reply(std::string_view path, std::span<const PageAsset> own);

}  // namespace gleaner
