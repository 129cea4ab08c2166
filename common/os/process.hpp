// This process and the machine as the system tells of them. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <span>
#include <string>
#include <vector>

namespace gleaner::os {

std::uint64_t process_id();
// Time on processors, all threads together.
double processor_seconds();
// root, or an administrator whose rights are in force.
bool is_administrator();

// Processors that this process may run on; at least 1.
std::uint32_t usable_cores();
// Bytes of the machine's memory; 0 when unknown.
std::uint64_t machine_memory();
// Empty when unknown.
std::string host_name();

// Fills `bytes`, at most 256, from the system's source; false when it has failed.
[[nodiscard]] bool random_bytes(std::span<std::uint8_t> bytes);

// Microseconds since an arbitrary start. It goes on while the machine is suspended.
std::int64_t monotonic_us();
// False where there is no such local time.
bool local_time(std::time_t seconds, std::tm& local);

// Raises the process's limit of file descriptors, of which each connection takes one, as far as the
// system lets it without privileges; returns the limit that then holds. Never fails: what cannot be
// raised stays as it was.
std::uint64_t raise_descriptor_limit();

// Runs a program of the PATH, waits, and returns whether it succeeded.
bool run_program(const std::vector<std::string>& command);

// `bytes` from there on are better kept on large pages, where the system has them.
void prefer_large_pages(void* begin, std::size_t bytes);

// Hands freed memory back to the system.
void give_memory_back();

// The other end of a stream.

bool is_terminal(std::FILE* stream);
// Columns; 0 when unknown.
unsigned terminal_columns(std::FILE* stream);
// The value of TERM. Windows: "windows" where its console understands colours and moves the cursor.
std::string terminal_kind();
// The first of LC_ALL, LC_CTYPE and LANG that is set. Windows: UTF-8.
std::string locale_name();

}  // namespace gleaner::os
