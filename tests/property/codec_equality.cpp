// Deep equality of messages.
#include <algorithm>
#include <type_traits>
#include <variant>

#include "tests/property/codec_messages.hpp"

namespace gleaner::testing {

bool are_equal(const Message& a, const Message& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<TrainUnit>(&a)) {
    const auto& y = std::get<TrainUnit>(b);
    const auto same_batch = [](const UnitBatch& m, const UnitBatch& n) {
      return m.batch == n.batch && *m.hidden == *n.hidden && m.positives == n.positives;
    };
    return x->unit == y.unit && x->leases == y.leases && x->wants_gradient == y.wants_gradient &&
           x->may_be_summed == y.may_be_summed &&
           std::equal(x->batches.begin(), x->batches.end(), y.batches.begin(), y.batches.end(),
                      same_batch);
  }
  if (const auto* x = std::get_if<EvalUnit>(&a)) {
    const auto& y = std::get<EvalUnit>(b);
    return x->unit == y.unit && x->leases == y.leases && x->top_k == y.top_k &&
           *x->hidden == *y.hidden;
  }
  if (const auto* x = std::get_if<InputUnit>(&a)) {
    const auto& y = std::get<InputUnit>(b);
    const auto same_bytes = [](const SharedBytes& m, const SharedBytes& n) { return *m == *n; };
    const auto same_step = [&](const InputStep& m, const InputStep& n) {
      return m.kind == n.kind && m.index == n.index && m.examples == n.examples &&
             m.rate == n.rate &&
             std::equal(m.gradients.begin(), m.gradients.end(), n.gradients.begin(),
                        n.gradients.end(), same_bytes);
    };
    return x->unit == y.unit && x->leases == y.leases &&
           std::equal(x->steps.begin(), x->steps.end(), y.steps.begin(), y.steps.end(), same_step);
  }
  if (const auto* x = std::get_if<RelayPart>(&a)) {
    const auto& y = std::get<RelayPart>(b);
    return x->number == y.number && *x->bytes == *y.bytes;
  }
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, TrainUnit> || std::is_same_v<T, EvalUnit> ||
                      std::is_same_v<T, InputUnit> || std::is_same_v<T, RelayPart>) {
          return false;  // compared above
        } else {
          return x == std::get<T>(b);
        }
      },
      a);
}

}  // namespace gleaner::testing
