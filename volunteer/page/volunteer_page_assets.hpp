// The files of a volunteer's page.
#pragma once

#include <span>

#include "common/http/page_assets.hpp"

namespace gleaner {

std::span<const PageAsset> volunteer_page_assets();

}  // namespace gleaner
