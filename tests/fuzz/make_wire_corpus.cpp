// make_wire_corpus DIR FILE: writes the fuzzers' corpora below DIR and the codec's golden bytes to
// FILE, from the sample messages and a few random ones.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "common/net/frame.hpp"
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "schema/wire/codec.hpp"
#include "tests/property/codec_messages.hpp"

namespace gleaner {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& folder, const std::string& name, const Bytes& bytes) {
  fs::create_directories(folder);
  std::ofstream file(folder / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Bytes framed(const Bytes& payload) {
  const auto header = frame_header(payload);
  Bytes bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

Bytes gradient_input(std::uint32_t examples, std::uint32_t sixteenths, Rng& rng) {
  const QuantizedActivations codes = testing::random_codes(examples, sixteenths * 16, rng);
  std::vector<std::int32_t> gradient(codes.codes.size());
  for (auto& entry : gradient)
    entry = static_cast<std::int32_t>(rng.next() >> 32) >> (8 + examples * 3);
  Bytes bytes(2 + codes.codes.size() / 8);
  bytes[0] = static_cast<std::uint8_t>(examples - 1);
  bytes[1] = static_cast<std::uint8_t>(sixteenths - 1);
  for (std::size_t i = 0; i < codes.codes.size(); ++i) {
    if (codes.codes[i] != 0) bytes[2 + i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
  }
  const Bytes packed = pack_gradient(codes, gradient);
  bytes.insert(bytes.end(), packed.begin(), packed.end());
  return bytes;
}

// Activations, or with `is_gradient` the unit gradient, of a column block.
Bytes input_part(std::uint32_t examples, std::uint32_t sixteenths, bool is_gradient, Rng& rng) {
  const UnitColumns columns{16, sixteenths * 16};
  const QuantizedActivations codes = testing::random_codes(examples, columns.width + 32, rng);
  Bytes bytes{static_cast<std::uint8_t>(examples - 1), static_cast<std::uint8_t>(sixteenths - 1)};
  const std::vector<float> activations(codes.codes.begin(), codes.codes.end());
  const std::vector<std::int32_t> gradient(codes.codes.begin(), codes.codes.end());
  const Bytes packed = is_gradient ? pack_unit_gradient(codes, gradient, columns)
                                   : pack_activations(examples, codes.hidden, columns, activations);
  bytes.insert(bytes.end(), packed.begin(), packed.end());
  return bytes;
}

void write_corpora(const fs::path& folder) {
  Rng rng(1, Purpose::kTest);
  for (const Message& message : testing::sample_messages()) {
    put(folder / "message", message_name(message), framed(encode(message)));
  }
  for (std::uint32_t i = 1; i <= 6; ++i) {
    const std::string name = std::to_string(i);
    put(folder / "hidden", name, pack(testing::random_codes(i, 16 * i, rng)));
    put(folder / "gradient", name, gradient_input(i, i, rng));
    put(folder / "update", name, encode_update(testing::random_update(rng)));
  }
  for (std::uint32_t i = 1; i <= 6; ++i) {
    put(folder / "input_parts", std::to_string(i), input_part(i, i, i % 2 == 0, rng));
  }
  put(folder / "update", "sample", encode_update(testing::sample_update()));
}

void write_line(std::ofstream& file, const std::string& name, const Bytes& bytes) {
  static const char* const kDigits = "0123456789abcdef";
  file << name << ' ';
  for (const std::uint8_t byte : bytes) file << kDigits[byte >> 4] << kDigits[byte & 15];
  file << '\n';
}

void write_golden(const fs::path& path) {
  std::ofstream file(path);
  for (const Message& message : testing::sample_messages()) {
    write_line(file, message_name(message), encode(message));
  }
  write_line(file, "StoredUpdate", encode_update(testing::sample_update()));
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_wire_corpus DIR FILE\n");
    return 2;
  }
  gleaner::write_corpora(argv[1]);
  gleaner::write_golden(argv[2]);
  return 0;
}
