// A cable between two network namespaces, with a delay: an Ethernet interface (TAP) at either end.
// A frame that enters one end leaves the other `delay` later, a millisecond less or two more, in
// order. For measuring (hosts.py); the kernel's own delay queue is not available everywhere. `tc
// tbf` on the interfaces limits the rate. The interfaces leave segmentation and checksums to the
// hardware, as real machines do: up to 64 KiB of segments of one connection travel as one frame
// with a header for it. Needs root. Says "ready" when the interfaces exist; runs until SIGTERM or
// SIGINT.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace gleaner {
namespace {

using Clock = std::chrono::steady_clock;

// The largest frame: an IP packet of 64 KiB, Ethernet's header, and the ten bytes on segments
// (virtio_net_hdr, whose header C++ cannot read).
constexpr std::size_t kFrameBytes = 65'536 + 18 + 10;

// While frames are under way the cable looks at its ends once a tick and moves all frames at once,
// since each waking takes processor time from the measured programs.
constexpr std::chrono::milliseconds kTick{2};

// 200 ms of 1 Gbit/s. What does not fit is dropped, as in a router.
constexpr std::size_t kWaitingBytesMax = 25'000'000;

// NAMESPACE:DEVICE.
struct End {
  std::string name_space;
  std::string device;
};

End parse_end(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    throw std::invalid_argument("expected NAMESPACE:DEVICE instead of '" + text + "'");
  }
  End end{text.substr(0, colon), text.substr(colon + 1)};
  if (end.device.size() >= IFNAMSIZ) {
    throw std::invalid_argument("the name of device '" + end.device + "' is too long");
  }
  return end;
}

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A file descriptor; closes it.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(open(path.c_str(), flags | O_CLOEXEC)) {
    if (number_ < 0) {
      fail(path);
    }
  }

  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;

  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }

  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// Makes the interface in its namespace. It exists for as long as the descriptor.
Descriptor make_interface(const End& end) {
  const Descriptor here("/proc/self/ns/net", O_RDONLY);
  const Descriptor there("/run/netns/" + end.name_space, O_RDONLY);
  if (setns(there.number(), CLONE_NEWNET) != 0) {
    fail("entering namespace " + end.name_space);
  }
  Descriptor interface("/dev/net/tun", O_RDWR | O_NONBLOCK);
  ifreq request{};
  std::copy(end.device.begin(), end.device.end(), request.ifr_name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  constexpr unsigned kOffloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
  if (ioctl(interface.number(), TUNSETIFF, &request) != 0 ||
      ioctl(interface.number(), TUNSETOFFLOAD, kOffloads) != 0) {
    fail("making interface " + end.name_space + ":" + end.device);
  }
  if (setns(here.number(), CLONE_NEWNET) != 0) {
    fail("returning to the first namespace");
  }
  return interface;
}

// One direction.
class DelayLine {
 public:
  DelayLine(int source, int target, Clock::duration delay)
      : source_(source), target_(target), delay_(delay) {}

  // Takes every frame that has entered, as if all had at `entered`.
  void take(Clock::time_point entered) {
    for (;;) {
      const ssize_t size = read(source_, frame_.data(), frame_.size());
      if (size <= 0) {
        return;
      }
      if (waiting_bytes_ + size <= kWaitingBytesMax) {
        waiting_.push_back({entered + delay_, {frame_.begin(), frame_.begin() + size}});
        waiting_bytes_ += size;
      }
    }
  }

  // Hands on what is due by `time`. A frame that the far end cannot take is lost, as on a real
  // cable.
  void give(Clock::time_point time) {
    while (!waiting_.empty() && waiting_.front().due <= time) {
      const std::vector<char>& bytes = waiting_.front().bytes;
      [[maybe_unused]] const ssize_t written = write(target_, bytes.data(), bytes.size());
      waiting_bytes_ -= bytes.size();
      waiting_.pop_front();
    }
  }

  [[nodiscard]] bool is_empty() const { return waiting_.empty(); }

 private:
  struct Frame {
    Clock::time_point due;
    std::vector<char> bytes;
  };

  int source_;
  int target_;
  Clock::duration delay_;
  std::vector<char> frame_ = std::vector<char>(kFrameBytes);
  std::deque<Frame> waiting_;
  std::size_t waiting_bytes_ = 0;
};

volatile std::sig_atomic_t is_stopping = 0;

void carry(const End& a, const End& b, std::chrono::microseconds delay) {
  // A wire waits for no processor. Where that is not allowed it is a little less of a wire.
  const sched_param before_others{1};
  (void)sched_setscheduler(0, SCHED_FIFO, &before_others);
  const Descriptor end_a = make_interface(a);
  const Descriptor end_b = make_interface(b);
  std::puts("ready");
  std::fflush(stdout);
  DelayLine forth(end_a.number(), end_b.number(), delay);
  DelayLine back(end_b.number(), end_a.number(), delay);
  std::array<pollfd, 2> ends{pollfd{end_a.number(), POLLIN, 0}, pollfd{end_b.number(), POLLIN, 0}};
  constexpr timespec kUntilTold{1, 0};
  constexpr timespec kUntilNext{0, std::chrono::nanoseconds(kTick).count()};
  while (is_stopping == 0) {
    if (forth.is_empty() && back.is_empty()) {
      const int ready = ppoll(ends.data(), ends.size(), &kUntilTold, nullptr);
      if (ready < 0 && errno != EINTR) {
        fail("waiting for frames");
      }
      if (ready <= 0) {
        continue;
      }
    }
    ppoll(nullptr, 0, &kUntilNext, nullptr);
    const Clock::time_point now = Clock::now();
    // Frames have come since the last look, half a tick ago in the mean.
    forth.take(now - kTick / 2);
    back.take(now - kTick / 2);
    forth.give(now + kTick / 2);
    back.give(now + kTick / 2);
  }
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  CLI::App app{"A cable with a delay between two network namespaces. Needs root."};
  app.footer("Example:\n  delay_link --from red:eth0 --to hub:red --delay-ms 25");
  std::string from;
  std::string to;
  double delay_ms = 0;
  app.add_option("--from", from, "one end, NAMESPACE:DEVICE; the device is made")->required();
  app.add_option("--to", to, "the other end, NAMESPACE:DEVICE")->required();
  app.add_option("--delay-ms", delay_ms, "one way, milliseconds")->check(CLI::Range(0.0, 10'000.0));
  CLI11_PARSE(app, argc, argv);
  const auto stop = [](int) { gleaner::is_stopping = 1; };
  std::signal(SIGTERM, stop);
  std::signal(SIGINT, stop);
  try {
    gleaner::carry(gleaner::parse_end(from), gleaner::parse_end(to),
                   std::chrono::microseconds(static_cast<long>(delay_ms * 1000)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "delay_link: %s\n", error.what());
    return 1;
  }
  return 0;
}
