// The paths under which a model answers: POST /v1/predict, POST /v1/annif/suggest in the form of
// Annif, GET /v1/model, and metrics for Prometheus. Handlers run on the HTTP server's thread, their
// work on the desk's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/http/http_server.hpp"
#include "storage/infer/predict_desk.hpp"

namespace gleaner {

inline constexpr std::string_view kPredictPath = "/v1/predict";
// Annif asks for its project at the path without "/suggest".
inline constexpr std::string_view kAnnifPath = "/v1/annif";
inline constexpr std::string_view kAnnifSuggestPath = "/v1/annif/suggest";

class PredictApi {
 public:
  // `desk` outlives the server whose handlers use this.
  explicit PredictApi(PredictDesk& desk) : desk_(desk) {}

  // Sets the handlers of POST.
  void handle_posts(HttpHandler& handler);
  // Nullopt for all other paths.
  [[nodiscard]] std::optional<HttpReply> answer(const HttpRequest& request) const;
  // Each with the label `run`, unless that is empty.
  [[nodiscard]] std::string metrics(const std::string& run = {}) const;

 private:
  PredictDesk& desk_;
};

}  // namespace gleaner
