// Files of pages, which the build puts into the programs: see gleaner_page() in CMakeLists.txt.
#pragma once

#include <span>
#include <string_view>

namespace gleaner {

struct PageAsset {
  std::string_view path;  // "/chart.js"
  const char* type;       // for the header Content-Type
  std::string_view content;
};

// The style sheet, the icon, tiles of figures and what formats numbers.
std::span<const PageAsset> shared_page_assets();

}  // namespace gleaner
