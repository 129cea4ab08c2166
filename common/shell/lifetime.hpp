// Calls into an owner that are void once it has ended. Its thread only.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace gleaner {

class Lifetime {
 public:
  // `call`, unless the owner has ended by then.
  template <typename... Arguments, typename Call>
  [[nodiscard]] std::function<void(Arguments...)> guard(Call call) const {
    return [alive = std::weak_ptr<int>(alive_), call = std::move(call)](Arguments... arguments) {
      if (!alive.expired()) call(std::forward<Arguments>(arguments)...);
    };
  }

  void end() { alive_.reset(); }

 private:
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace gleaner
