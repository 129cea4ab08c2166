// The expectation of a run with a hidden layer: a function of what is to be trained, of the
// machines and links there are, and of what a step of training takes on one core. No I/O. PLAN.md
// beside this lists the formulas and says how near they come to measured runs. Units: seconds,
// bytes, Mbit/s (10^6 bits), unless a name says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"

namespace gleaner {

// Seconds of one core, at the width of the run's hidden layer.
struct StepCosts {
  double visit = 0;        // an active neuron of an example, with its part of everything else
  double feature = 0;      // a feature of an example: both passes of the input layer
  double around = 8e-9;    // a unit of an example on each volunteer: unpacking, hashing, packing
  double add_unit = 1e-9;  // the same on the master: adding a volunteer's gradient
  double message = 30e-6;  // sending or receiving a message, on each side
};

// Machines that are alike.
struct Machines {
  std::uint32_t count = 1;
  std::uint32_t cores = 1;
  double mbit = 0;    // of each one's link, either way; 0: no limit
  double memory = 0;  // of each; 0: no limit
};

struct PlanInput {
  ModelConfig model;  // a valid one, with a hidden layer
  double features_per_point = 0;
  double labels_per_point = 0;
  // The fraction of ReLU units that are not zero, before dropout.
  double rectified_on = 0.75;
  Machines volunteers;
  double round_trip = 0;  // between a volunteer and the master
  Machines master;        // one
};

// Each can bound the speed.
enum class Resource : std::uint8_t {
  kVolunteers,
  kShards,
  kMaster,
  kMasterLink,
  kVolunteerLink,
  kLag,
  kRound,
};

// In words, in the order of Resource: what it is, and what gives more of it.
struct ResourceWords {
  const char* name;
  const char* remedy;
};

inline constexpr std::array kResources = {
    ResourceWords{"processors", "more volunteers or cores, fewer active neurons"},
    ResourceWords{"shards", "more shards, a multiple of all cores"},
    ResourceWords{"master's processor", "more cores for the master"},
    ResourceWords{"master's link", "a faster link, fewer volunteers with more cores each"},
    ResourceWords{"volunteers' links", "faster links, longer rounds, fewer hidden units"},
    ResourceWords{"lag", "a larger --staleness, larger batches"},
    ResourceWords{"rounds' length", "longer rounds"}};

// On the wire, per example, unless a name says otherwise.
struct TrafficPlan {
  double unit_down = 0;  // per volunteer
  double unit_up = 0;
  double commit_up = 0;
  double down = 0;  // per volunteer, with everything, acknowledgements too
  double up = 0;
  double master_down = 0;  // the same over the master's link
  double master_up = 0;
  double download = 0;  // of a volunteer, once: its shards when all their rows are stored
};

struct Plan {
  double examples_per_second = 0;
  double round_seconds = 0;
  double epoch_seconds = 0;  // without evaluation
  double run_seconds = 0;
  double trip_seconds = 0;  // of a batch that is the only one, from its features to its update
  Resource limit{};         // twice as much of it would help most
  double active = 0;        // neurons per example
  double holders = 0;       // volunteers that have shards
  TrafficPlan traffic;
  double master_memory = 0;
  double volunteer_memory = 0;  // of the one with the most shards
  double store_content = 0;
  double store_most = 0;  // while files wait to be merged and a round is staged
};

// Refused, with what to do, where the model is not valid or has no hidden layer, or the volunteers
// have too little memory. There is a volunteer, and every machine has a core.
Result<Plan> make_plan(const PlanInput& input, const StepCosts& costs);

}  // namespace gleaner
