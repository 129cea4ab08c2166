#include "tests/support/relay_lies.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/work/quantized_activations.hpp"
#include "schema/wire/codec.hpp"
#include "tests/support/lies.hpp"

namespace gleaner {
namespace {

// About a message that a volunteer sends.
Lie about_passing(Lie change) {
  return about<RelayFrame>([change = std::move(change)](RelayFrame& frame) {
    Message inner = decode(frame.payload).value();
    if (!change(inner)) return false;
    frame.payload = encode(inner);
    return true;
  });
}

bool is_result(const RelayFrame& frame) {
  return std::holds_alternative<UnitResult>(decode(frame.payload).value());
}

// Results come on the channel of the one before, if that is another.
Lie crossed() {
  return about<RelayFrame>([last = std::make_shared<std::uint32_t>(0)](RelayFrame& frame) {
    if (!is_result(frame)) return false;
    const std::uint32_t before = std::exchange(*last, frame.channel);
    if (before == 0 || before == frame.channel) return false;
    frame.channel = before;
    return true;
  });
}

// An earlier result comes in place of this one.
Lie again() {
  return about<RelayFrame>([earlier = std::make_shared<Bytes>()](RelayFrame& frame) {
    if (!is_result(frame)) return false;
    if (earlier->empty()) *earlier = frame.payload;
    if (*earlier == frame.payload) return false;
    frame.payload = *earlier;
    return true;
  });
}

// A sum that nobody has asked for comes in place of a result.
Lie unasked() {
  return [](Message& message) {
    const auto* const frame = std::get_if<RelayFrame>(&message);
    if (frame == nullptr || !is_result(*frame)) return false;
    const auto result = std::get<UnitResult>(decode(frame->payload).value());
    const BatchResult& batch = result.batches.front();
    message = RelaySum{1, batch.batch, {{frame->channel, result.unit}}, batch.gradient};
    return true;
  };
}

// Sends the activations of an earlier batch with as many examples.
Lie stale_activations() {
  return about<TrainUnit>([earlier = std::make_shared<SharedBytes>()](TrainUnit& unit) {
    SharedBytes& hidden = unit.batches.front().hidden;
    if (!*earlier) *earlier = hidden;
    if (**earlier == *hidden) return false;
    const auto one = unpack_quantized(**earlier);
    const auto other = unpack_quantized(*hidden);
    if (!one || !other || one->hidden == 0 || one->examples != other->examples) return false;
    hidden = *earlier;
    return true;
  });
}

Lie other_rows() {
  return about<ShardChunk>([](ShardChunk& chunk) {
    if (chunk.rows.values.empty()) return false;
    chunk.rows.values.front() += 0.5F;
    return true;
  });
}

std::map<std::string, RelayLie> lies_downwards() {
  return {
      {"activations", {{}, stale_activations()}},
      {"labels", {{}, about<TrainUnit>([](TrainUnit& unit) {
                    Positives& positives = unit.batches.front().positives;
                    if (positives.neurons.empty()) return false;
                    positives.neurons.clear();
                    std::ranges::fill(positives.offsets, 0);
                    return true;
                  })}},
      {"rate", {{}, about<TrainUnit>([](TrainUnit& unit) {
                  unit.batches.front().output_rate /= 2;
                  return true;
                })}},
      {"rows", {{}, other_rows()}},
      {"examples", {{}, about<Points>([](Points& points) {
                      if (points.values.empty()) return false;
                      points.values.front() *= 2;
                      return true;
                    })}},
  };
}

std::map<std::string, RelayLie> lies_upwards(const KeyId& victim) {
  return {
      {"crossed", {crossed(), {}, false}},
      {"again", {again(), {}, false}},
      {"unasked", {unasked(), {}, false}},
      {"summed",
       {about_passing(about<UnitResult>([](UnitResult& result) {
          if (result.batches.front().gradient.empty()) return false;
          for (BatchResult& batch : result.batches) batch.gradient.clear();
          return result.is_summed = true;
        })),
        {},
        false}},
      {"another's key",
       {[victim](Message& message) {
          if (auto* open = std::get_if<RelayOpen>(&message)) open->key = victim;
          return about_passing(lies().at("gradient"))(message);
        },
        {}}},
  };
}

}  // namespace

std::map<std::string, RelayLie> lies_in_sums() {
  const auto about_sum = [](std::function<bool(Bytes&)> change) {
    return RelayLie{about<RelaySum>([change = std::move(change)](RelaySum& sum) {
                      return change(sum.gradient);
                    }),
                    {}};
  };
  return {
      {"sum-changed", about_sum([](Bytes& gradient) {
         if (gradient.size() < 8) return false;
         gradient[gradient.size() - 2] ^= 4;
         return true;
       })},
      // Zeros for the small world's eight examples.
      {"sum-empty",
       {about<RelaySum>([](RelaySum& sum) {
          if (std::ranges::all_of(sum.gradient, [](std::uint8_t byte) { return byte == 0; }))
            return false;
          sum.gradient.assign(8, 0);
          return true;
        }),
        {}}},
      {"sum-before", about_sum([earlier = std::make_shared<Bytes>()](Bytes& gradient) {
         if (earlier->empty()) *earlier = gradient;
         // One of another size is refused at once.
         if (*earlier == gradient || earlier->size() != gradient.size()) return false;
         gradient = *earlier;
         return true;
       })},
  };
}

std::map<std::string, RelayLie> relay_lies(const KeyId& victim) {
  std::map<std::string, RelayLie> all = lies_upwards(victim);
  all.merge(lies_downwards());
  for (const char* name : {"gradient", "digest", "loss", "level", "score"}) {
    all[name] = {about_passing(lies().at(name)), {}};
  }
  return all;
}

}  // namespace gleaner
