// A link inside the process: two ends, each delivering through its own executor, so that either may
// live on a thread of its own. Frames arrive whole and in order.
#pragma once

#include <asio/any_io_executor.hpp>
#include <memory>
#include <utility>

#include "common/net/shell_interfaces.hpp"

namespace gleaner {

using LinkPair = std::pair<std::shared_ptr<Link>, std::shared_ptr<Link>>;

// The first end delivers on `first`, the second on `second`.
LinkPair make_memory_links(asio::any_io_executor first, asio::any_io_executor second);

}  // namespace gleaner
