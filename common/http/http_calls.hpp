// The callbacks of libmicrohttpd and their state. Private to http_server and http_calls. Used on
// the server's thread only, except the mailbox: any thread.
#pragma once

#include <microhttpd.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/http/http_server.hpp"

namespace gleaner {

struct HttpAnswerer::Mailbox {
  std::mutex lock;
  std::vector<std::pair<std::uint64_t, HttpReply>> replies;
  int wake_fd = -1;  // -1: the server is gone
};

struct HttpServer::Exchange {
  MHD_Connection* connection = nullptr;
  std::uint64_t id = 0;   // 0 until the body is complete
  std::string body;       // the part received so far
  std::size_t bytes = 0;  // its part of post_bytes_
  std::optional<HttpReply> reply;
};

struct HttpServer::Stream {
  HttpServer* server = nullptr;
  MHD_Connection* connection = nullptr;
  StreamPosition position;
  SharedText piece;
  std::size_t taken = 0;  // bytes sent of the piece
};

struct MhdCalls {
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url,
                               const char* method, const char* version, const char* upload,
                               std::size_t* upload_bytes, void** seen);
  static void on_connection(void* self, MHD_Connection* connection, void** unused,
                            MHD_ConnectionNotificationCode what);
  // The request is over, successful or not.
  static void on_end(void* self, MHD_Connection* connection, void** seen,
                     MHD_RequestTerminationCode how);
  // Sets the bytes that the exchange takes in post_bytes_.
  static void count_bytes(HttpServer& server, HttpServer::Exchange& exchange, std::size_t bytes);

 private:
  // The first call of a request, when its head is complete.
  static MHD_Result begin(HttpServer& server, MHD_Connection* connection, const char* url,
                          std::string_view method, void** seen);
  static std::string_view refusal_to(const HttpServer& server, MHD_Connection* connection);
  static MHD_Result begin_post(HttpServer& server, MHD_Connection* connection, void** seen);
  static MHD_Result go_on(HttpServer& server, HttpServer::Exchange& exchange, const char* url,
                          std::size_t& upload_bytes, const char* upload);
  // Adds to the body. After a reply is set, the rest is discarded.
  static void take_part(HttpServer& server, HttpServer::Exchange& exchange, std::string_view part);
  static HttpReply answer(HttpServer& server, MHD_Connection* connection, const char* url);
  static MHD_Result send(HttpServer& server, MHD_Connection* connection, const HttpReply& reply);
  static MHD_Response* stream(HttpServer& server, MHD_Connection* connection,
                              const StreamPosition& position);
  static ssize_t read(void* self, std::uint64_t position, char* target, std::size_t room);
  static void forget(void* self);
};

// The reply to requests that wait while the program ends.
HttpReply http_ending();

}  // namespace gleaner
