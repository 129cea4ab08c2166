#include "volunteer/hello.hpp"

#include <chrono>

#include "common/access/key_pair.hpp"
#include "common/kernels/kernels.hpp"
#include "schema/versions.hpp"
#include "volunteer/speed.hpp"

namespace gleaner::volunteer {

Hello make_hello(const std::string& name, const std::string& invite, std::uint32_t threads,
                 std::uint64_t memory_bytes) {
  ThreadPool pool(threads);
  Hello hello;
  hello.protocol_min = kProtocolMin;
  hello.protocol_max = kProtocolMax;
  hello.build = kBuildVersion;
  hello.name = name;
  hello.cores = threads;
  hello.memory_bytes = memory_bytes;
  hello.simd = simd_level_name(default_kernels().level);
  hello.speed = measure_speed(pool);
  hello.invite = invite;
  const auto started = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  hello.process = static_cast<std::uint64_t>(started.count()) << 20 | (random_bits() & 0xF'FFFF);
  return hello;
}

}  // namespace gleaner::volunteer
