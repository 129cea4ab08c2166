#include "common/lsh/hash_family.hpp"

#include "common/lsh/dwta.hpp"
#include "common/lsh/sim_hash.hpp"

namespace gleaner {

std::unique_ptr<HashFamily> make_hash_family(const ModelConfig& config, const Kernels& kernels) {
  if (config.hash_family == HashFamilyKind::kDwta) return std::make_unique<Dwta>(config);
  return std::make_unique<SimHash>(config, kernels);
}

}  // namespace gleaner
