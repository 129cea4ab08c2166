// Facts about this process and the machine. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gleaner::os {

std::uint64_t process_id();
// Processor time of all threads.
double processor_seconds();
// Whether the user is root, or an administrator with active rights.
bool is_administrator();

// Processors that this process may run on; at least 1.
std::uint32_t usable_cores();
// Bytes of the machine's memory; 0 when unknown.
std::uint64_t machine_memory();
// Empty when unknown.
std::string host_name();

// Fills `bytes`, at most 256, from the system's source; false when it has failed.
[[nodiscard]] bool random_bytes(std::span<std::uint8_t> bytes);

// Microseconds since an arbitrary start. Continues while the machine is suspended.
std::int64_t monotonic_us();
// False if there is no such local time.
bool local_time(std::time_t seconds, std::tm& local);

// Raises the process's limit of file descriptors (each connection takes one) as far as possible
// without privileges. Returns the limit. Never fails.
std::uint64_t raise_descriptor_limit();

// From now on, a write to a pipe or terminal that nobody reads fails instead of ending the process.
// Standard streams that were closed lead nowhere, so that no file takes their numbers. Call before
// any file is opened.
void survive_lost_readers();
// Whether whoever started this process wants it to go on when its terminal is closed (nohup).
bool ignores_hangup();

// Runs a program from PATH and waits. Returns whether it succeeded.
bool run_program(const std::vector<std::string>& command);

// Advises large pages for this memory, where the system has them.
void prefer_large_pages(void* begin, std::size_t bytes);

// Returns freed memory to the system.
void give_memory_back();

// The other end of a stream.

bool is_terminal(std::FILE* stream);
// Columns; 0 when unknown.
unsigned terminal_columns(std::FILE* stream);
// Columns that a terminal gives the character: two for Chinese and most emoji, none for marks.
unsigned columns_of(char32_t character);
// The value of TERM. Windows: "windows" if its console understands colours and cursor movement.
std::string terminal_kind();
// The first of LC_ALL, LC_CTYPE and LANG that is set. Windows: UTF-8.
std::string locale_name();

// Access to the systemd journal.

// Whether JOURNAL_STREAM, "DEVICE:INODE", names the file with these numbers.
bool names_file(std::string_view journal_stream, std::uint64_t device, std::uint64_t inode);

// A function that sends one entry, as fields "NAME=value". Empty if `stream` does not lead to the
// journal, or there is no journal. Call at start-up, before other threads run.
std::function<void(const std::vector<std::string>& fields)> journal_behind(std::FILE* stream);

}  // namespace gleaner::os
