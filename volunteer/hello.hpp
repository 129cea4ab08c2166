// A volunteer's introduction when it joins.
#pragma once

#include <cstdint>
#include <string>

#include "common/access/key_pair.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"

namespace gleaner::volunteer {

// A volunteer's identity towards its masters: a key in its cache folder, so that its account
// survives a restart.

// The key in `cache_dir`/key, made if it is missing. An empty `cache_dir` gives a new key each
// time. Errors name the file.
Result<KeyPair> load_identity(const std::string& cache_dir);

// A first guess at the volunteer's speed, for the master's balancing until it has measurements.

// 10^9 multiply-adds per second over all threads of the pool, from 30 ms of processor time per
// thread. Processor time leaves out other programs that run meanwhile.
float measure_speed(ThreadPool& pool);

// Measures the machine briefly with a pool of `threads`. `invite` is an invite's text, or empty.
Hello make_hello(const std::string& name, const std::string& invite, std::uint32_t threads,
                 std::uint64_t memory_bytes);

}  // namespace gleaner::volunteer
