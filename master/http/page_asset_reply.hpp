// The page's files as answers. On the HTTP server's thread only.
#pragma once

#include <optional>
#include <string_view>

#include "master/http/http_server.hpp"

namespace gleaner {

// Nothing when no file has this path.
std::optional<HttpReply> asset_reply(std::string_view path);

}  // namespace gleaner
