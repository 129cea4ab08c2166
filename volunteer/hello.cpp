#include "volunteer/hello.hpp"

#include "common/access/key_pair.hpp"
#include "common/kernels/kernels.hpp"
#include "common/time.hpp"
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
  hello.process =
      static_cast<std::uint64_t>(wall_milliseconds()) << 20 | (random_bits() & 0xF'FFFF);
  return hello;
}

}  // namespace gleaner::volunteer
