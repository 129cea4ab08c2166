// Hello, Welcome, Refusal, Heartbeat, Leaving, Goodbye, and the pieces that all messages share.
#include <algorithm>
#include <map>

#include "common/model/model_fields.hpp"
#include "common/text.hpp"
#include "schema/versions.hpp"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kSilenceMsMax = 24 * 3600 * 1000;

// More than any model has, and longer than any is written.
constexpr std::size_t kModelFieldsMax = 256;
constexpr std::size_t kModelTextBytesMax = 64;

template <typename Builder>
void write(const ModelConfig& from, Builder to) {
  const auto fields = model_fields(from);
  auto list = to.initModel(static_cast<unsigned>(fields.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setName(fields[i].first);
    list[i].setValue(fields[i].second);
  }
}

ModelConfig read(capnp::List<wire::ModelField>::Reader from) {
  if (from.size() > kModelFieldsMax) {
    malformed("model", "{} fields, at most {}", from.size(), kModelFieldsMax);
  }
  std::map<std::string, std::string> fields;
  for (const auto field : from) {
    fields[read_text("model.name", field.getName(), kModelTextBytesMax)] =
        read_text("model.value", field.getValue(), kModelTextBytesMax);
  }
  const Result<ModelConfig> model = model_from_fields(fields);
  if (!model) malformed("model", "{}", model.error().message);
  return *model;
}

void write(const SignedThanks& from, wire::Thanks::Builder to) {
  to.setVolunteerHigh(from.thanks.volunteer.high);
  to.setVolunteerLow(from.thanks.volunteer.low);
  to.setSeconds(from.thanks.seconds);
  to.setExamples(from.thanks.examples);
  to.setWallSeconds(from.thanks.wall_seconds);
  to.setChecked(static_cast<std::uint8_t>(from.thanks.checked));
  to.setIsFinished(from.thanks.is_finished);
  to.setRun(outgoing_text(from.thanks.run, kNameBytesMax));
  to.setMaster(data_of(from.master));
  to.setSignature(data_of(from.signature));
}

template <typename Array>
void read_array(const char* field, capnp::Data::Reader from, Array& to) {
  if (from.size() != to.size()) malformed(field, "{} bytes, not {}", from.size(), to.size());
  std::ranges::copy(view(from), to.begin());
}

SignedThanks read(wire::Thanks::Reader from) {
  SignedThanks to;
  to.thanks.volunteer = {from.getVolunteerHigh(), from.getVolunteerLow()};
  to.thanks.seconds = from.getSeconds();
  to.thanks.examples = from.getExamples();
  to.thanks.wall_seconds = from.getWallSeconds();
  to.thanks.checked = read_enum("thanks.checked", from.getChecked(), Checked::kAll);
  to.thanks.is_finished = from.getIsFinished();
  to.thanks.run = read_text("thanks.run", from.getRun(), kNameBytesMax);
  read_array("thanks.master", from.getMaster(), to.master);
  read_array("thanks.signature", from.getSignature(), to.signature);
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
  to.setName(outgoing_text(from.name, kNameBytesMax));
  to.setCores(from.cores);
  to.setMemoryBytes(from.memory_bytes);
  to.setSimd(outgoing_text(from.simd, kNameBytesMax));
  to.setSpeed(from.speed);
  to.setInvite(outgoing_text(from.invite, kInviteBytesMax));
  to.setKeptShards(from.kept_shards);
  to.setProcess(from.process);
  if (from.kernels.empty()) return;
  auto kernels = to.initKernels(length(std::min(from.kernels.size(), kKernelDigestsMax)));
  for (unsigned i = 0; i < kernels.size(); ++i) {
    kernels[i].setKernel(outgoing_text(from.kernels[i].kernel, kKernelNameBytesMax));
    kernels[i].setDigest(from.kernels[i].digest);
  }
}

Hello read(wire::Hello::Reader from) {
  Hello to;
  read_protocols(from, to);
  to.build = read_text("build", from.getBuild(), kNameBytesMax);
  to.name = read_text("name", from.getName(), kNameBytesMax);
  to.cores = from.getCores();
  to.memory_bytes = from.getMemoryBytes();
  to.simd = read_text("simd", from.getSimd(), kNameBytesMax);
  to.speed = read_float("speed", from.getSpeed());
  if (to.speed < 0) malformed("speed", "{} is negative", to.speed);
  to.invite = read_text("invite", from.getInvite(), kInviteBytesMax);
  to.kept_shards = from.getKeptShards();
  to.process = from.getProcess();
  if (from.getKernels().size() > kKernelDigestsMax) {
    malformed("kernels", "{} digests, at most {}", from.getKernels().size(), kKernelDigestsMax);
  }
  for (const auto kernel : from.getKernels()) {
    to.kernels.push_back(
        {read_text("kernels.kernel", kernel.getKernel(), kKernelNameBytesMax), kernel.getDigest()});
  }
  return to;
}

void write(const Welcome& from, wire::Welcome::Builder to) {
  to.setProtocol(from.protocol);
  to.setBuild(outgoing_text(from.build, kNameBytesMax));
  write(from.model, to);
  to.setHeartbeatMs(from.heartbeat_ms);
  to.setSilenceMs(from.silence_ms);
  to.setCheckpoint(from.checkpoint);
  to.setTestFingerprint(from.test_fingerprint);
  to.setFirstEpoch(raw(from.first_epoch));
  to.setRun(outgoing_text(from.run, kNameBytesMax));
  to.setPurpose(outgoing_text(from.purpose, kPurposeBytesMax));
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
  to.first_epoch = LeaseEpoch{from.getFirstEpoch()};
  to.run = read_text("run", from.getRun(), kNameBytesMax);
  to.purpose = read_text("purpose", from.getPurpose(), kPurposeBytesMax);
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
  to.setPaused(outgoing_text(from.paused, kSentenceBytesMax));
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
  to.paused = read_text("paused", from.getPaused(), kSentenceBytesMax);
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
  if (from.thanks) write(*from.thanks, to.initThanks());
}

Goodbye read(wire::Goodbye::Reader from) {
  Goodbye to;
  to.code = read_error_code("code", from.getCode());
  to.sentence = read_text("sentence", from.getSentence(), kSentenceBytesMax);
  if (from.hasThanks()) to.thanks = read(from.getThanks());
  return to;
}

}  // namespace gleaner
