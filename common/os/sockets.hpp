// The system's headers of IP addresses and TCP, and differences between systems.
#pragma once

#if defined(_WIN32)
#include <winsock2.h>
#include <ws2tcpip.h>
// Asio's errors include this header, which defines a macro of a common word.
#undef ERROR
#else
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#endif

namespace gleaner::os {

// Numbers of TCP options. A missing option is 0; setting it fails without harm.
#if defined(_WIN32)
inline constexpr int kTcpKeepIdle = 3;
inline constexpr int kTcpKeepInterval = 17;
inline constexpr int kTcpUnsentMax = 0;
inline constexpr int kTcpUserTimeout = 0;  // the deadline of each wait ends a silent connection
#else
inline constexpr int kTcpKeepIdle = TCP_KEEPIDLE;
inline constexpr int kTcpKeepInterval = TCP_KEEPINTVL;
inline constexpr int kTcpUnsentMax = TCP_NOTSENT_LOWAT;
inline constexpr int kTcpUserTimeout = TCP_USER_TIMEOUT;
#endif

}  // namespace gleaner::os
