// Small messages that decode, for tests to damage.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "common/limits.hpp"
#include "common/model/shard_rows.hpp"
#include "common/work/quantized_activations.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr LeaseRef kLease{ShardId{1}, LeaseEpoch{2}};

inline void require_refused(const Message& message, const std::string& beginning) {
  const auto decoded = decode(encode(message));
  REQUIRE_FALSE(decoded.ok());
  REQUIRE(decoded.error().code == ErrorCode::kProtocol);
  INFO(decoded.error().message);
  REQUIRE(decoded.error().message.find(beginning) == 0);
}

inline void require_accepted(const Message& message) {
  REQUIRE(decode(encode(message)).ok());
}

inline Hello hello() {
  return Hello{1, 1, "0.1.0", "n", 4, 1, "scalar", 1.0F, "", 2, 3, {{"dot", 4}}};
}

inline Welcome welcome() {
  Welcome message;
  message.protocol = 1;
  message.build = "0.1.0";
  message.heartbeat_ms = 1000;
  message.silence_ms = 5000;
  message.model.points = 100;
  message.model.round_batches = 1;
  message.model.features = 10;
  message.model.labels = 50;
  return message;
}

inline ShardRows two_rows() {
  return ShardRows{{1, 2}, {1, 2, 3, 4}, {0, 0}, {5, 6}, {}};
}

inline TrainUnit unit() {
  const QuantizedActivations codes{1, 16, {1.0F}, std::vector<std::uint8_t>(16)};
  const auto hidden = std::make_shared<const Bytes>(pack(codes));
  return TrainUnit{UnitId{1}, {kLease}, {{5, hidden, {{0, 1}, {3}}}, {6, hidden, {{0, 0}, {}}}}};
}

inline UnitResult result() {
  return UnitResult{
      UnitId{1}, {{5, {{ShardId{1}, 0, 0, 0}, {ShardId{4}, 0, 0, 0}}, {}}}, 0, false, {}};
}

inline SharedBytes some_bytes() {
  return std::make_shared<const Bytes>(Bytes{1, 2, 3});
}

// An update and a forward pass on one shard.
inline InputUnit input_unit() {
  return InputUnit{UnitId{1},
                   {kLease},
                   {{InputStep::Kind::kBackward, 5, 2, 0.5F, {some_bytes()}},
                    {InputStep::Kind::kForward, 7, 2, 0, {}}}};
}

// Points 4 and 9; the first has two features.
inline Points points() {
  return Points{PointSet::kTestSet, {4, 9}, {0, 2, 2}, {7, 300}, {0.5F, -1.0F}, {{0}, {}}};
}

inline EvalResult scores() {
  return EvalResult{UnitId{1}, 2, {{4, 1.0F}, {9, 1.0F}}, 0};
}

}  // namespace gleaner
