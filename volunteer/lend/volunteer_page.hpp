// A volunteer's own page: what it does and why, and buttons for its owner. A button sends a request
// of the control socket's protocol to `ask`. Everybody who reaches the address may look. Buttons
// need the page's key, in a header that no page of another origin can send, and work on the
// volunteer's machine alone.
//
// I/O thread only. The server has a thread of its own, which calls `ask`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "common/access/standing.hpp"
#include "common/host_port.hpp"
#include "common/http/http_server.hpp"
#include "common/result.hpp"

namespace gleaner {

// The files of a volunteer's page.
std::span<const PageAsset> volunteer_page_assets();

}  // namespace gleaner

namespace gleaner::volunteer {

class VolunteerPage {
 public:
  // Passes the line of a request on, and calls `give` once with the line of the answer, from any
  // thread.
  using Ask =
      std::function<void(std::string request, std::function<void(std::string answer)> give)>;

  struct Options {
    HostPort address;  // in numbers, or localhost; port 0 takes a free one
    InviteSecret key{};
  };

  // kIo when the address cannot be used.
  static Result<std::unique_ptr<VolunteerPage>> open(const Options& options, Ask ask);
  ~VolunteerPage() = default;
  VolunteerPage(const VolunteerPage&) = delete;
  VolunteerPage& operator=(const VolunteerPage&) = delete;

  // With the key: "http://127.0.0.1:8091/#KEY". For a server at all addresses, its address on this
  // machine.
  [[nodiscard]] std::string url() const;

  // Shows `status` to readers from now on: a JSON object on one line.
  void publish(std::string status);

 private:
  VolunteerPage(const InviteSecret& key, Ask ask) : key_(key), ask_(std::move(ask)) {}

  HttpReply answer(const HttpRequest& request);
  SharedText next_piece(StreamPosition& position);
  void take(HttpPost post);

  const InviteSecret key_;
  const Ask ask_;
  std::mutex lock_;  // guards status_ and version_
  SharedText status_ = std::make_shared<const std::string>("{}");
  std::uint64_t version_ = 0;
  std::shared_ptr<HttpServer> server_;  // last: its thread uses the members above
};

}  // namespace gleaner::volunteer
