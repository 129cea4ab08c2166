// The two ends of a link within the process. Each end has its own executor, so each may run on its
// own thread. Frames arrive complete and in order.
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
