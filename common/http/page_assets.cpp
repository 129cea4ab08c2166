#include "common/http/page_assets.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <map>
#include <memory>
#include <string>

namespace gleaner {
namespace {

// A reply made once: assets never change while the process lives.
struct AssetReply {
  SharedText body;
  std::string etag;
};

HttpReply asset(const PageAsset& found) {
  static std::map<std::string_view, AssetReply> replies;
  AssetReply& kept = replies[found.path];
  if (!kept.body) {
    kept.body = std::make_shared<const std::string>(found.content);
    kept.etag = fmt::format("\"{:016x}\"", XXH3_64bits(found.content.data(), found.content.size()));
  }
  HttpReply made;
  made.type = found.type;
  made.body = kept.body;
  made.etag = kept.etag;
  return made;
}

}  // namespace

std::optional<HttpReply> asset_reply(std::string_view path, std::span<const PageAsset> own) {
  for (const auto assets : {own, shared_page_assets()}) {
    for (const PageAsset& found : assets) {
      if (found.path == path) return asset(found);
    }
  }
  return std::nullopt;
}

}  // namespace gleaner
