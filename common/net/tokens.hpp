// How our coroutines wait on Asio: errors are values.
#pragma once

#include <asio/error_code.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>
#include <cstddef>
#include <tuple>

namespace gleaner {

// A named object: GCC 12.2 miscompiles some temporaries within a co_await expression.
inline constexpr asio::experimental::as_tuple_t<asio::use_awaitable_t<>> kAsTuple{
    asio::use_awaitable};

using WaitOutcome = std::tuple<asio::error_code>;
using TransferOutcome = std::tuple<asio::error_code, std::size_t>;

}  // namespace gleaner
