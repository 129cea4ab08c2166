// A volunteer's introduction when it joins.
#pragma once

#include <cstdint>
#include <string>

#include "common/access/key_pair.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"

namespace gleaner::volunteer {

// Who a volunteer is to the masters it works for: a key, kept in its cache folder so that its
// account survives a restart.

// The key in `cache_dir`/key, made there when it is missing. An empty `cache_dir` gives a new one
// each time. Errors name the file.
Result<KeyPair> load_identity(const std::string& cache_dir);

// How fast this machine is at what a volunteer does, before it has done any: a first guess for the
// master's balancing, replaced by measurements as soon as there are some.

// 10^9 multiply-adds a second over all threads of the pool, by 30 ms of processor a thread: what
// else runs at the moment, as when several programs start at once, is not in it.
float measure_speed(ThreadPool& pool);

// Measures the machine for a moment with a pool of `threads`. `invite` as text, or empty.
Hello make_hello(const std::string& name, const std::string& invite, std::uint32_t threads,
                 std::uint64_t memory_bytes);

}  // namespace gleaner::volunteer
