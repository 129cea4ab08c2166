#include "volunteer/lend/volunteer_page.hpp"

#include <string_view>
#include <utility>

#include "common/access/addresses.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::string_view kControlPath = "/api/v1/control";

HttpReply reply(unsigned status, const char* text) {
  return text_reply(status, kHttpText, text);
}

}  // namespace

Result<std::unique_ptr<VolunteerPage>> VolunteerPage::open(const Options& options, Ask ask) {
  std::unique_ptr<VolunteerPage> page(new VolunteerPage(options.key, std::move(ask)));
  VolunteerPage* const self = page.get();
  HttpHandler handler;
  handler.answer = [self](const HttpRequest& request) { return self->answer(request); };
  handler.next_piece = [self](StreamPosition& position) { return self->next_piece(position); };
  handler.takes_post = [](std::string_view path) { return path == kControlPath; };
  handler.post = [self](HttpPost post) { self->take(std::move(post)); };
  auto server = HttpServer::prepare(
      options.address, std::move(handler),
      is_loopback(options.address.host) ? HttpReach::kThisMachine : HttpReach::kNetwork);
  if (!server) return server.error();
  page->server_ = std::move(*server);
  page->server_->start();
  return page;
}

std::string VolunteerPage::url() const {
  HostPort address = server_->address();
  if (is_any_address(address.host)) address.host = "localhost";
  return "http://" + to_text(address) + "/#" + page_key_text(key_);
}

void VolunteerPage::publish(std::string status) {
  {
    const std::lock_guard guard(lock_);
    if (status == *status_) return;
    status_ = std::make_shared<const std::string>(std::move(status));
    ++version_;
  }
  server_->wake();
}

HttpReply VolunteerPage::answer(const HttpRequest& request) {
  if (request.path == "/api/v1/status") {
    HttpReply made;
    made.type = kHttpJson;
    const std::lock_guard guard(lock_);
    made.body = status_;
    return made;
  }
  if (request.path == "/api/v1/events") {
    HttpReply made;
    made.type = "text/event-stream";
    made.stream = StreamPosition{};
    return made;
  }
  if (request.path == kControlPath) {
    HttpReply refused = reply(405, "Requests to the volunteer are sent with POST, as JSON.\n");
    refused.allow = "POST";
    return refused;
  }
  if (auto asset = asset_reply(request.path, volunteer_page_assets())) return *std::move(asset);
  return reply(404, "There is nothing here; the page is at /.\n");
}

SharedText VolunteerPage::next_piece(StreamPosition& position) {
  const std::lock_guard guard(lock_);
  if (position.version == version_) return nullptr;
  position.version = version_;
  return std::make_shared<const std::string>("event: status\ndata: " + *status_ + "\n\n");
}

void VolunteerPage::take(HttpPost post) {
  if (!post.is_local) {
    post.answer(reply(403, "The buttons work on the volunteer's own machine alone.\n"));
    return;
  }
  if (!is_page_key(post.page_key, key_)) {
    post.answer(reply(403,
                      "The buttons take the page's whole address, which 'gleaner-volunteer "
                      "status' prints.\n"));
    return;
  }
  ask_(std::move(post.body), [give = post.answer](std::string answer) {
    give(text_reply(200, kHttpJson, std::move(answer)));
  });
}

}  // namespace gleaner::volunteer
