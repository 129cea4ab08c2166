// Keeps the secrets of a command line from other users of the machine.
#pragma once

#include <span>

namespace gleaner {

// Overwrites the invite of each address gleaner://HOST:PORT/KEY.INVITE, and the key of each page
// http://HOST:PORT/#KEY, among the arguments that the system handed to main(), where `ps` reads
// them. To be called first, after they were copied.
void hide_secrets(std::span<char* const> arguments);

}  // namespace gleaner
