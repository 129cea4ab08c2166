// The expectation of a run: a function of what is to be trained, of the machines and links there
// are, and of what this processor was measured to take for one of each thing. No I/O.
// tools/plan/PLAN.md lists the formulas and says how near they come to runs that were measured.
// Units: seconds, bytes, Mbit/s (10^6 bits), unless a name says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"

namespace gleaner {

// The cost of one of each on one core, at a hidden width of `hidden`, in seconds. Of gleaner bench.
struct MachineCosts {
  struct LayerRow {
    double rows = 0;     // of the layer measured
    double seconds = 0;  // to fetch and update one of its rows, a batch
    double whole = 1;    // a whole training step, all processors busy, over what its parts take
    double busy = 1;     // the same over one with the others idle
    double feature = 0;  // of an example: forward, backward and update of the input layer beside it
  };

  std::uint32_t hidden = 128;
  std::uint32_t tables = 50;
  double visit = 0;               // an active neuron of an example
  std::array<LayerRow, 3> row{};  // ascending by rows
  double scan = 0;                // a row of a shard, a batch
  double finish = 0;              // an example's gradient in a shard
  double query = 0;               // hashing an example
  double rehash_row = 0;          // hashing a row again, its part of the tables' making included
  double commit_row = 0;          // a row touched in a round, on its volunteer
  double encode_row = 0;          // the same, to send it
  double decode_row = 0;          // the same, to take it in
  double input_commit_row = 0;    // a row of the input layer touched in a round
  double pack_codes = 0;          // an example
  double unpack_codes = 0;
  double pack_gradient = 0;
  double add_gradient = 0;
  double pack_activations = 0;  // an example, where volunteers hold the input layer
  double unpack_activations = 0;
  double code_activations = 0;
  double pack_unit_gradient = 0;
  double unpack_unit_gradient = 0;
  double message = 0;            // on each side, besides its packing
  double message_byte = 0;       // the same
  double stage_row = 0;          // a committed row, the disk's time included
  double fold_row = 0;           // the same, without the kernel's
  double store_row_program = 0;  // processor of both and of merging files later, without the same
  double small_file_byte = 0;    // the kernel's, to write a byte of 256 MiB
  double large_file_byte = 0;    // the same, of the last of 6 GiB
  double read_row = 0;           // a row for a download
};

// Machines that are alike.
struct Machines {
  std::uint32_t count = 1;
  std::uint32_t cores = 1;
  double mbit = 0;  // of each one's link, either way; 0: no limit
};

struct PlanInput {
  ModelConfig model;  // what to train, and how; a valid one
  double features_per_point = 0;
  double labels_per_point = 0;
  // The fraction of ReLU units that are not zero, before dropout: citeulike-t from its second epoch
  // on 0.65 to 0.82.
  double rectified_on = 0.75;
  Machines volunteers;
  double round_trip = 0;  // between a volunteer and the master
  Machines master;        // one
  // All programs share the master's cores and memory, as in tests on one machine. The links stay.
  bool is_one_machine = false;
  bool lends_input = false;  // volunteers hold the input layer as well
};

// Each can bound the time of a batch or round.
enum class Resource : std::uint8_t {
  kVolunteers,  // their processors
  kShards,      // there are too few for the volunteers and their cores
  kMaster,      // its processor
  kMasterLink,
  kVolunteerLink,
  kLag,    // batches on their way at a time
  kRound,  // its end: the pipeline drains, commits arrive
  kStore,  // staging and folding
};

inline constexpr std::array kResources = {
    Resource::kVolunteers,    Resource::kShards, Resource::kMaster, Resource::kMasterLink,
    Resource::kVolunteerLink, Resource::kLag,    Resource::kRound,  Resource::kStore};

struct Bound {
  Resource resource{};
  double examples_per_second = 0;  // with all others unlimited; infinite where it does not count
  double doubled = 0;              // examples a second if there were twice as much of it
};

struct Traffic {
  double unit_down = 0;  // an example and volunteer, on the wire
  double unit_up = 0;
  double input_down = 0;  // the same for the steps of input shards, where volunteers hold them
  double input_up = 0;
  double points_down = 0;  // their points, which are fetched once
  double commit_up = 0;
  double down = 0;  // with everything, acknowledgements too
  double up = 0;
  double master_down = 0;  // the same over the master's link, an example
  double master_up = 0;
  double download = 0;  // bytes, once a volunteer: its shards when all their rows are stored
};

struct Plan {
  double examples_per_second = 0;  // once the lag has risen
  double round_seconds = 0;
  double epoch_seconds = 0;  // without evaluation
  double trip_seconds = 0;   // of a batch that is the only one, from its features to its update
  double rise_seconds = 0;   // that a run takes longer, once, since the lag begins at 1
  Resource limit{};
  std::vector<Bound> bounds;  // in the order of kResources

  double active = 0;         // neurons an example
  double visits_a_row = 0;   // in a batch
  double rows_a_round = 0;   // that are committed, of both layers
  double holders = 0;        // volunteers that have shards
  double input_holders = 0;  // that have some of the input layer

  Traffic traffic;
  double master_memory = 0;
  double volunteer_memory = 0;  // of the one with the most shards
  double store_content = 0;
  double store_most = 0;  // while files wait to be merged and a round is staged

  double stage_seconds = 0;  // of a round
  double fold_seconds = 0;
  double reload_seconds = 0;   // a dead volunteer's shards to others
  double replay_seconds = 0;   // half a round of them
  double silence_seconds = 0;  // until a machine that vanishes without a word is taken for dead
};

// Refused, with what to do, where the model is not valid, nobody is to train it, or a number is out
// of range.
Result<Plan> make_plan(const PlanInput& input, const MachineCosts& costs);

// In words: what it is, and what gives more of it.
const char* resource_name(Resource resource);
const char* resource_remedy(Resource resource);

}  // namespace gleaner
