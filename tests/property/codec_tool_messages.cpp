// Random messages between a master and the tools that ask it.
#include "common/limits.hpp"
#include "tests/property/random_pieces.hpp"

namespace gleaner::testing {

RunStatus run_status(Rng& rng) {
  RunStatus status;
  status.protocol = number(rng);
  status.build = text(rng, kNameBytesMax);
  status.run = text(rng, kNameBytesMax);
  status.life = rng.next();
  status.progress.stage = static_cast<RunStage>(rng.next_below(5));
  status.progress.round = number(rng);
  status.progress.rounds = number(rng);
  status.progress.batch = rng.next();
  status.progress.batches = rng.next();
  status.progress.epoch = number(rng);
  status.progress.epochs = number(rng);
  status.progress.staleness = number(rng);
  RunProgress& p = status.progress;
  for (double* value :
       {&p.examples_per_second, &p.eta_seconds, &p.loss, &p.active, &p.precision.p[0]}) {
    *value = double{finite(rng)};
  }
  status.wait_owner = static_cast<WaitOwner>(rng.next_below(5));
  status.is_held_up = rng.chance(1, 2);
  status.waits_for = text(rng, kSentenceBytesMax);
  status.waits_us = rng.next();
  status.store_bytes = rng.next();
  status.free_bytes = rng.next();
  status.progress.volunteers = number(rng);
  status.volunteers.resize(up_to(rng, 5));
  for (VolunteerEntry& v : status.volunteers) {
    v = {text(rng, kNameBytesMax),
         text(rng, kNameBytesMax),
         rng.chance(1, 2),
         rng.chance(1, 2),
         number(rng),
         finite(rng),
         static_cast<std::int64_t>(rng.next()),
         rng.next(),
         number(rng),
         rng.chance(1, 2),
         rng.next(),
         text(rng, kSentenceBytesMax),
         rng.next()};
  }
  status.shards.resize(up_to(rng, 9));
  status.input_shards = static_cast<std::uint32_t>(up_to(rng, status.shards.size()));
  for (ShardEntry& s : status.shards) {
    s.state = static_cast<LeaseState>(rng.next_below(4));
    const std::size_t place = up_to(rng, status.volunteers.size());
    if (place > 0) s.holder = static_cast<std::uint32_t>(place - 1);
    s.since_us = rng.next();
    s.committed = number(rng);
    s.next_batch = rng.next();
    s.chunks = static_cast<std::uint32_t>(rng.next_below(kPartsMax));
    s.chunks_sent = static_cast<std::uint32_t>(rng.next_below(s.chunks + 1));
    s.held_before = text(rng, kNameBytesMax);
    s.moved_why = text(rng, kSentenceBytesMax);
  }
  status.gone.resize(up_to(rng, kDeparturesMax));
  for (DepartureEntry& d : status.gone) {
    d = {text(rng, kNameBytesMax), text(rng, kSentenceBytesMax), rng.next(), number(rng)};
  }
  return status;
}

AccessRequest access_request(Rng& rng) {
  const std::uint32_t least = number(rng) / 2;
  AccessRequest request;
  request.protocol_min = least;
  request.protocol_max = least + number(rng) / 2;
  request.build = text(rng, kNameBytesMax);
  request.invite = text(rng, kInviteBytesMax);
  request.verb = static_cast<AccessVerb>(rng.next_below(7));
  request.subject = text(rng, kNameBytesMax);
  request.role = static_cast<Role>(rng.next_below(3));
  request.is_trusted = rng.chance(1, 2);
  request.is_reusable = rng.chance(1, 2);
  request.expires_s = rng.next();
  request.label = text(rng, kNameBytesMax);
  return request;
}

AccessAnswer access_answer(Rng& rng) {
  AccessAnswer answer;
  answer.protocol = number(rng);
  answer.sentence = text(rng, kSentenceBytesMax);
  for (std::uint64_t i = rng.next_below(3); i > 0; --i) {
    answer.invites.push_back({text(rng, kNameBytesMax), static_cast<Role>(rng.next_below(3)),
                              rng.chance(1, 2), rng.chance(1, 2), text(rng, kNameBytesMax),
                              rng.next(), rng.next(), text(rng, kSentenceBytesMax),
                              text(rng, kNameBytesMax)});
  }
  for (std::uint64_t i = rng.next_below(3); i > 0; --i) {
    answer.peers.push_back({text(rng, kNameBytesMax), text(rng, kNameBytesMax),
                            text(rng, kNameBytesMax), text(rng, kNameBytesMax), rng.chance(1, 2),
                            rng.chance(1, 2), rng.chance(1, 2), text(rng, kNameBytesMax)});
  }
  return answer;
}

}  // namespace gleaner::testing
