// Hello, Welcome, Refusal, Heartbeat, Leaving, Goodbye, and the pieces that all messages share.
#include "schema/text.hpp"
#include "schema/versions.hpp"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kSilenceMsMax = 24 * 3600 * 1000;

void write(const ModelConfig& from, wire::ModelConfig::Builder to) {
  to.setDataFingerprint(from.data_fingerprint);
  to.setPoints(from.points);
  to.setFeatures(from.features);
  to.setLabels(from.labels);
  to.setSeed(from.seed);
  to.setHidden(from.hidden);
  to.setHiddenUnits(static_cast<std::uint8_t>(from.hidden_units));
  to.setOutputShards(from.output_shards);
  to.setInputShards(from.input_shards);
  to.setEpochs(from.epochs);
  to.setBatchExamples(from.batch_examples);
  to.setRoundBatches(from.round_batches);
  to.setStaleness(from.staleness);
  to.setStalenessRise(from.staleness_rise);
  to.setSampling(static_cast<std::uint8_t>(from.sampling));
  to.setHashBits(from.hash_bits);
  to.setTables(from.tables);
  to.setActiveCap(from.active_cap);
  to.setRandomNegatives(from.random_negatives);
  to.setRehashBatches(from.rehash_batches);
  to.setOutputRate(from.output_rate);
  to.setInputRate(from.input_rate);
  to.setRateDecay(from.rate_decay);
  to.setWarmupBatches(from.warmup_batches);
  to.setSecondMomentDecay(from.second_moment_decay);
  to.setEpsilon(from.epsilon);
  to.setDropout(from.dropout);
  to.setFeatureDropout(from.feature_dropout);
  to.setInputScale(from.input_scale);
  to.setOutputScale(from.output_scale);
  to.setDivergenceFactor(from.divergence_factor);
  to.setGradientStepLog2(from.gradient_step_log2);
  to.setInitialFingerprint(from.initial_fingerprint);
}

ModelConfig read(wire::ModelConfig::Reader from) {
  ModelConfig to;
  to.data_fingerprint = from.getDataFingerprint();
  to.points = from.getPoints();
  to.features = from.getFeatures();
  to.labels = from.getLabels();
  to.seed = from.getSeed();
  to.hidden = from.getHidden();
  to.hidden_units = read_enum("model.hidden_units", from.getHiddenUnits(), HiddenUnits::kLinear);
  to.output_shards = from.getOutputShards();
  to.input_shards = from.getInputShards();
  to.epochs = from.getEpochs();
  to.batch_examples = from.getBatchExamples();
  to.round_batches = from.getRoundBatches();
  to.staleness = from.getStaleness();
  to.staleness_rise = from.getStalenessRise();
  to.sampling = read_enum("model.sampling", from.getSampling(), Sampling::kAll);
  to.hash_bits = from.getHashBits();
  to.tables = from.getTables();
  to.active_cap = from.getActiveCap();
  to.random_negatives = from.getRandomNegatives();
  to.rehash_batches = from.getRehashBatches();
  to.output_rate = from.getOutputRate();
  to.input_rate = from.getInputRate();
  to.rate_decay = from.getRateDecay();
  to.warmup_batches = from.getWarmupBatches();
  to.second_moment_decay = from.getSecondMomentDecay();
  to.epsilon = from.getEpsilon();
  to.dropout = from.getDropout();
  to.feature_dropout = from.getFeatureDropout();
  to.input_scale = from.getInputScale();
  to.output_scale = from.getOutputScale();
  to.divergence_factor = from.getDivergenceFactor();
  to.gradient_step_log2 = from.getGradientStepLog2();
  to.initial_fingerprint = from.getInitialFingerprint();
  // Ranges refuse NaN and infinities as well.
  if (auto valid = validate(to); !valid) malformed("model", "{}", valid.error().message);
  return to;
}

}  // namespace

std::string outgoing_text(std::string_view text, std::size_t bytes_max) {
  return printable(text, bytes_max);
}

std::string read_text(const char* field, capnp::Text::Reader text, std::size_t bytes_max) {
  if (text.size() > bytes_max) malformed(field, "{} bytes, at most {}", text.size(), bytes_max);
  const std::string_view chars(text.begin(), text.size());
  if (!is_printable(chars)) malformed(field, "not printable UTF-8");
  return std::string(chars);
}

ErrorCode read_error_code(const char* field, std::uint16_t code) {
  if (code < static_cast<std::uint16_t>(ErrorCode::kInvalidArgument) ||
      code > static_cast<std::uint16_t>(ErrorCode::kShuttingDown)) {
    malformed(field, "{} is unknown", code);
  }
  return static_cast<ErrorCode>(code);
}

float read_float(const char* field, float value) {
  if (!std::isfinite(value)) malformed(field, "{} is not finite", value);
  return value;
}

std::vector<float> read_floats(const char* field, capnp::Data::Reader data) {
  std::vector<float> values = read_values<float>(field, data);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) malformed(field, "entry {} is {}", i, values[i]);
  }
  return values;
}

void write(const Hello& from, wire::Hello::Builder to) {
  to.setProtocolMin(from.protocol_min);
  to.setProtocolMax(from.protocol_max);
  to.setBuild(outgoing_text(from.build, kNameBytesMax));
  to.setIdentityHigh(from.identity_high);
  to.setIdentityLow(from.identity_low);
  to.setName(outgoing_text(from.name, kNameBytesMax));
  to.setCores(from.cores);
  to.setMemoryBytes(from.memory_bytes);
  to.setSimd(outgoing_text(from.simd, kNameBytesMax));
  to.setSpeed(from.speed);
  to.setToken(outgoing_text(from.token, kTokenBytesMax));
  to.setKeptShards(from.kept_shards);
}

Hello read(wire::Hello::Reader from) {
  Hello to;
  to.protocol_min = from.getProtocolMin();
  to.protocol_max = from.getProtocolMax();
  if (to.protocol_min > to.protocol_max) {
    malformed("protocol_min", "{} is above protocol_max {}", to.protocol_min, to.protocol_max);
  }
  to.build = read_text("build", from.getBuild(), kNameBytesMax);
  to.identity_high = from.getIdentityHigh();
  to.identity_low = from.getIdentityLow();
  to.name = read_text("name", from.getName(), kNameBytesMax);
  to.cores = from.getCores();
  to.memory_bytes = from.getMemoryBytes();
  to.simd = read_text("simd", from.getSimd(), kNameBytesMax);
  to.speed = read_float("speed", from.getSpeed());
  if (to.speed < 0) malformed("speed", "{} is negative", to.speed);
  to.token = read_text("token", from.getToken(), kTokenBytesMax);
  to.kept_shards = from.getKeptShards();
  return to;
}

void write(const Welcome& from, wire::Welcome::Builder to) {
  to.setProtocol(from.protocol);
  to.setBuild(outgoing_text(from.build, kNameBytesMax));
  write(from.model, to.initModel());
  to.setHeartbeatMs(from.heartbeat_ms);
  to.setSilenceMs(from.silence_ms);
  to.setCheckpoint(from.checkpoint);
  to.setTestFingerprint(from.test_fingerprint);
}

Welcome read(wire::Welcome::Reader from) {
  Welcome to;
  to.protocol = from.getProtocol();
  to.build = read_text("build", from.getBuild(), kNameBytesMax);
  to.model = read(from.getModel());
  to.heartbeat_ms = from.getHeartbeatMs();
  to.silence_ms = from.getSilenceMs();
  to.checkpoint = from.getCheckpoint();
  to.test_fingerprint = from.getTestFingerprint();
  // A peer that beats without pause, or is dead as soon as it is silent, helps nobody.
  if (to.heartbeat_ms == 0 || to.heartbeat_ms > kSilenceMsMax) {
    malformed("heartbeat_ms", "{}, must be 1 to {}", to.heartbeat_ms, kSilenceMsMax);
  }
  if (to.silence_ms < to.heartbeat_ms || to.silence_ms > kSilenceMsMax) {
    malformed("silence_ms", "{}, must be {} to {}", to.silence_ms, to.heartbeat_ms, kSilenceMsMax);
  }
  return to;
}

void write(const Refusal& from, wire::Refusal::Builder to) {
  to.setCode(static_cast<std::uint16_t>(from.code));
  to.setSentence(outgoing_text(from.sentence, kSentenceBytesMax));
  to.setRetry(from.retry);
}

Refusal read(wire::Refusal::Reader from) {
  Refusal to;
  to.code = read_error_code("code", from.getCode());
  to.sentence = read_text("sentence", from.getSentence(), kSentenceBytesMax);
  to.retry = from.getRetry();
  return to;
}

void write(const Heartbeat& from, wire::Heartbeat::Builder to) {
  to.setEchoUs(from.echo_us);
  to.setEchoedUs(from.echoed_us);
  if (!from.news) return;
  auto news = to.initNews();
  news.setRound(from.news->round);
  news.setRounds(from.news->rounds);
  news.setEpoch(from.news->epoch);
  news.setEpochs(from.news->epochs);
  news.setVolunteers(from.news->volunteers);
  news.setPrecisionAt1(from.news->precision_at_1);
  news.setWaitingFor(outgoing_text(from.news->waiting_for, kSentenceBytesMax));
  news.setNoShards(outgoing_text(from.news->no_shards, kSentenceBytesMax));
}

Heartbeat read(wire::Heartbeat::Reader from) {
  Heartbeat to;
  to.echo_us = from.getEchoUs();
  to.echoed_us = from.getEchoedUs();
  if (!from.hasNews()) return to;
  const auto news = from.getNews();
  RunNews& run = to.news.emplace();
  run.round = news.getRound();
  run.rounds = news.getRounds();
  run.epoch = news.getEpoch();
  run.epochs = news.getEpochs();
  run.volunteers = news.getVolunteers();
  run.precision_at_1 = read_float("news.precision_at_1", news.getPrecisionAt1());
  run.waiting_for = read_text("news.waiting_for", news.getWaitingFor(), kSentenceBytesMax);
  run.no_shards = read_text("news.no_shards", news.getNoShards(), kSentenceBytesMax);
  return to;
}

void write(const Leaving& from, wire::Leaving::Builder to) {
  to.setReason(outgoing_text(from.reason, kSentenceBytesMax));
}

Leaving read(wire::Leaving::Reader from) {
  return Leaving{read_text("reason", from.getReason(), kSentenceBytesMax)};
}

void write(const Goodbye& from, wire::Goodbye::Builder to) {
  to.setCode(static_cast<std::uint16_t>(from.code));
  to.setSentence(outgoing_text(from.sentence, kSentenceBytesMax));
}

Goodbye read(wire::Goodbye::Reader from) {
  Goodbye to;
  to.code = read_error_code("code", from.getCode());
  to.sentence = read_text("sentence", from.getSentence(), kSentenceBytesMax);
  return to;
}

}  // namespace gleaner
