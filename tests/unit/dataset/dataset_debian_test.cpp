#include <algorithm>
#include <set>

#include "tests/unit/dataset/dataset_files.hpp"
#include "tools/dataset/make/dataset_debian_index.hpp"
#include "tools/dataset/make/dataset_debian_points.hpp"

namespace gleaner {
namespace {

Result<std::vector<DebianPackage>> read_index(std::string_view text) {
  auto source = std::move(open_memory_source("dump", text)).value();
  return read_debian_index(std::move(source));
}

const char* const kIndex =
    "Package: zoo\n"
    "Maintainer: Some Team <team@example.org>\n"
    "Depends: libc6:amd64 (>= 2.34), default-mta | mail-transport-agent, virtual-x,\n"
    " libzoo1 (= 1.2-3), libc6 (<< 3)\n"
    "Pre-Depends: dpkg (>= 1.15.6~)\n"
    "Description: Keeps animals\n"
    " A long text\n"
    " of two lines\n"
    "Description-md5: 0123\n"
    "Tag: role::program, implemented-in::c++,\n"
    " use::keeping\n"
    "Section: games\n"
    "\n"
    "\n"
    "Package: libzoo1\n"
    "Provides: virtual-x (= 1), virtual-y\n"
    "Depends: libc6\n"
    "Description: Keeps animals (library)\n"
    "\n"
    "Package: other\n"
    "Provides: virtual-y\n"
    "Depends: virtual-y, virtual-x\n"
    "\n"
    "Package: zoo\n"
    "Depends: nothing-of-this-counts\n";

}  // namespace

TEST_CASE("debian index: fields are read, the first of packages with one name stays", "[debian]") {
  const auto packages = std::move(read_index(kIndex)).value();
  REQUIRE(packages.size() == 3);
  CHECK(packages[0].name == "libzoo1");
  CHECK(packages[1].name == "other");
  const DebianPackage& zoo = packages[2];
  CHECK(zoo.name == "zoo");
  CHECK(zoo.maintainer == "Some Team");
  CHECK(zoo.description == "Keeps animals A long text of two lines");
  CHECK(zoo.section == "games");
  CHECK(zoo.tags ==
        std::vector<std::string>{"role::program", "implemented-in::c++", "use::keeping"});
  CHECK(zoo.depends ==
        std::vector<std::string>{"default-mta", "dpkg", "libc6", "libzoo1", "virtual-x"});
  CHECK(packages[0].provides == std::vector<std::string>{"virtual-x", "virtual-y"});
}

TEST_CASE("debian index: what is no index is refused by line", "[debian]") {
  CHECK(message_of(read_index("Package: a\n\nnonsense\n")) ==
        "dump:3:1: expected a field as in 'Package: hello', found 'nonsense'; is this the output "
        "of 'apt-cache dumpavail'?");
  CHECK_THAT(message_of(read_index(" continued\n")), Catch::StartsWith("dump:1:1: expected"));
  CHECK(read_index("")->empty());
}

TEST_CASE("debian points: dependencies are labels, virtual names stand for their only provider",
          "[debian]") {
  const auto packages = std::move(read_index(kIndex)).value();
  const DebianSet set = make_debian_set(packages, {});
  // virtual-x is libzoo1; virtual-y has two providers and stays.
  CHECK(set.labels ==
        std::vector<std::string>{"default-mta", "dpkg", "libc6", "libzoo1", "virtual-y"});
  CHECK(set.train.size() + set.test.size() == 3);
  for (const auto* part : {&set.train, &set.test}) {
    for (const DebianPoint& made : *part) {
      if (packages[made.package].name == "zoo") {
        CHECK(made.point.labels == std::vector<std::uint32_t>{0, 1, 2, 3});
      }
      if (packages[made.package].name == "other") {
        CHECK(made.point.labels == std::vector<std::uint32_t>{3, 4});
      }
    }
  }
  DebianOptions often;
  often.dependents_min = 2;
  CHECK(make_debian_set(packages, often).labels == std::vector<std::string>{"libc6", "libzoo1"});
}

TEST_CASE("debian points: words come from all of the package's fields", "[debian]") {
  DebianPackage package;
  package.name = "libboost-filesystem1.74-dev";
  package.description = "C++ library, for FILES";
  package.section = "libdevel";
  package.tags = {"role::devel-lib"};
  package.maintainer = "Debian Boost Team";
  std::vector<std::string> words;
  for (const auto& [word, weight] : debian_words(package)) {
    words.push_back(word);
    CHECK(weight > 0);
  }
  CHECK(words == std::vector<std::string>{"ending dev", "maintainer debian boost team", "name dev",
                                          "name filesystem", "name filesystem1.74", "name libboost",
                                          "section libdevel", "tag role::devel-lib", "word c++",
                                          "word files", "word for", "word library"});
  CHECK(debian_words({}).empty());
}

TEST_CASE("debian points: parts follow the name and the seed, not the rest of the index",
          "[debian]") {
  std::vector<DebianPackage> packages(2000);
  for (std::size_t i = 0; i < packages.size(); ++i) {
    packages[i].name = "p" + std::to_string(10'000 + i);
    packages[i].depends = {"libc6"};
    packages[i].description = "word" + std::to_string(i / 2) + " common";
  }
  const auto test_names = [](const std::vector<DebianPackage>& all, const DebianOptions& options) {
    std::set<std::string> names;
    for (const DebianPoint& made : make_debian_set(all, options).test) {
      names.insert(all[made.package].name);
    }
    return names;
  };
  const std::set<std::string> names = test_names(packages, {});
  CHECK(names.size() > 320);
  CHECK(names.size() < 480);
  std::vector<DebianPackage> fewer(packages.begin() + 500, packages.end());
  const std::set<std::string> fewer_names = test_names(fewer, {});
  CHECK(std::includes(names.begin(), names.end(), fewer_names.begin(), fewer_names.end()));
  CHECK(fewer_names.size() ==
        static_cast<std::size_t>(std::distance(names.lower_bound(fewer[0].name), names.end())));
  DebianOptions other;
  other.seed = 2;
  CHECK(test_names(packages, other) != names);
}

TEST_CASE("debian points: features are words of two training packages, the rarer the heavier",
          "[debian]") {
  std::vector<DebianPackage> packages(100);
  for (std::size_t i = 0; i < packages.size(); ++i) {
    packages[i].name = std::string(1, static_cast<char>('a' + i % 26)) + std::to_string(i);
    packages[i].depends = {"libc6"};
    packages[i].description = i % 2 == 0 ? "common half" : "common";
    packages[i].description += " once" + std::to_string(i);
  }
  const DebianSet set = make_debian_set(packages, {});
  CHECK(set.features.find("word once3") == nullptr);
  const auto id = [&](const std::string& name) {
    REQUIRE(set.features.find(name) != nullptr);
    return set.features.find(name)->id;
  };
  bool has_both = false;
  for (const DebianPoint& made : set.train) {
    const auto& [labels, features, values] = made.point;
    REQUIRE(std::is_sorted(features.begin(), features.end()));
    const auto half = std::find(features.begin(), features.end(), id("word half"));
    const auto common = std::find(features.begin(), features.end(), id("word common"));
    REQUIRE(common != features.end());
    if (half == features.end()) continue;
    has_both = true;
    CHECK(values[static_cast<std::size_t>(half - features.begin())] >
          values[static_cast<std::size_t>(common - features.begin())]);
  }
  CHECK(has_both);
}

}  // namespace gleaner
