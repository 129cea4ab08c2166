// An invited person holds the id of the invite and the secret that proves it. As text: 8
// characters of the id and 26 of the secret, base32.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gleaner {

// 40 random bits. Zero is the invite that whoever holds the store's folder has by that.
enum class InviteId : std::uint64_t {};

inline constexpr std::uint64_t kInviteIdMax = (std::uint64_t{1} << 40) - 1;
inline constexpr std::size_t kInviteIdTextSize = 8;
inline constexpr std::size_t kInviteTextSize = 34;

using InviteSecret = std::array<std::uint8_t, 16>;

struct InviteKey {
  InviteId id{};
  InviteSecret secret{};
  friend bool operator==(const InviteKey&, const InviteKey&) = default;
};

std::string to_text(InviteId id);
std::optional<InviteId> parse_invite_id(std::string_view text);

std::string to_text(const InviteKey& key);
std::optional<InviteKey> parse_invite_key(std::string_view text);

}  // namespace gleaner
