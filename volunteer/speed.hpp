// How fast this machine is at what a volunteer does, before it has done any: a first guess for the
// master's balancing, replaced by measurements as soon as there are some.
#pragma once

#include "common/thread_pool.hpp"

namespace gleaner::volunteer {

// 10^9 multiply-adds a second over all threads of the pool, by 30 ms of processor a thread: what
// else runs at the moment, as when several programs start at once, is not in it.
float measure_speed(ThreadPool& pool);

}  // namespace gleaner::volunteer
