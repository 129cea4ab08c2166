// The files of the run's page, and of the page of a model that answers.
#pragma once

#include <span>

#include "common/http/page_assets.hpp"

namespace gleaner {

std::span<const PageAsset> run_page_assets();

}  // namespace gleaner
