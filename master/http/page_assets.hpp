// The page's files, which the build puts into the program.
#pragma once

#include <span>
#include <string_view>

namespace gleaner {

struct PageAsset {
  std::string_view path;  // "/chart.js"
  const char* type;       // for the header Content-Type
  std::string_view content;
};

std::span<const PageAsset> page_assets();

}  // namespace gleaner
