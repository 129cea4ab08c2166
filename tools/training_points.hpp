// The training points that vote beside a stored model: those of its run, or of a file that a person
// names.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/dataset/text_reader.hpp"
#include "common/result.hpp"
#include "master/voters.hpp"
#include "tools/stored_model.hpp"

namespace gleaner {

// What --help says of the flag that names the file.
inline constexpr const char* kNeighboursHelp =
    "file of points (text or packed) that vote beside the model: the nearest, or where they bear "
    "fewer than two labels each what their labels are about; where the run has neighbours, its own "
    "training file unless given; none: the model answers alone";
// The word instead of a file.
inline constexpr const char* kNoNeighbours = "none";

// Those that `flag` asks for: kNoNeighbours, a file, or (empty) what the run says, whose training
// file is where the master last found it and must have the run's fingerprint; where it is not,
// `on_note` gets a sentence and nobody votes. Otherwise none where the run has none. `options` are
// how the named file is read, with the model's limits; errors as of PredictPoints::open.
Result<std::optional<Voters>> open_voters(const std::string& flag, const TextOptions& options,
                                          StoredModel& model,
                                          const std::function<void(const std::string&)>& on_note);

// Says it on standard error.
void note_on_stderr(const std::string& sentence);

}  // namespace gleaner
