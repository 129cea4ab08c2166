#include "master/tasks/history_record.hpp"

namespace gleaner {

HistoryRecord history_record(const RoundRecord& round, std::int64_t wall_seconds) {
  HistoryRecord record;
  record.checkpoint = round.round + 1;
  record.batches = round.batches;
  record.epoch = round.epoch;
  record.loss = round.loss;
  record.active = round.active;
  record.code_length = round.code_length;
  record.examples_per_second = round.examples_per_second;
  record.volunteers = round.volunteers;
  record.bytes_down = round.bytes_down;
  record.bytes_up = round.bytes_up;
  record.wall_seconds = wall_seconds;
  return record;
}

namespace {

const char* word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kConfirmed:
      return "confirmed";
    case Verdict::kTrusted:
      return "trusted";
    case Verdict::kUnaudited:
      return "unaudited";
  }
  return "";
}

}  // namespace

Receipts to_receipts(const ReceiptRecords& records) {
  Receipts receipts;
  receipts.unaudited = records.unaudited;
  receipts.shards.reserve(records.shards.size());
  for (const ReceiptRecord& record : records.shards) {
    receipts.shards.push_back({record.shard,
                               {},
                               record.holder,
                               record.holder_name,
                               record.auditor,
                               record.auditor_name,
                               word_of(record.verdict)});
  }
  return receipts;
}

void set_evaluation(HistoryRecord& record, const Evaluation& evaluation) {
  record.evaluated = evaluation.points;
  record.evaluated_all = evaluation.all_points;
  record.precision = evaluation.precision;
}

}  // namespace gleaner
