// The page's files as answers. On the HTTP server's thread only.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "common/http/http_server.hpp"
#include "common/http/page_assets.hpp"

namespace gleaner {

// The file of `own` that has this path, else the one among those that all pages share; nothing when
// there is none.
std::optional<HttpReply> asset_reply(std::string_view path, std::span<const PageAsset> own);

}  // namespace gleaner
