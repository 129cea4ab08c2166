"""The layout of the repository as rules, for tidy.py: the number of files in a folder, the includes between
folders, and the doors of third-party headers. CMake states the includes between folders:
`gleaner_library(NAME SOURCES ... LINK ...)` allows the folder of its sources the folders of the libraries that it
links, directly or through others. The folders of one library are one room."""

import pathlib
import re

FOLDER_FILES_MAX = 45

# Sources whose unnamed namespace may be longer than the rule says, and how long: these numbers fall.
LONG_PRIVATE_PARTS = {
    "common/data/byte_source.cpp": 278,
    "common/data/word_rule.cpp": 150,
    "common/http/http_calls.cpp": 112,
    "common/train/self_test/self_test.cpp": 360,
    "schema/wire/codec.cpp": 115,
    "volunteer/config.cpp": 227,
    "volunteer/example_cache.cpp": 128,
    "volunteer/lend/service_windows.cpp": 190,
    "volunteer/lend/system_bus.cpp": 106,
    "volunteer/lend/system_bus_windows.cpp": 112,
    "volunteer/lend/verbs.cpp": 134,
}

# ---- What may include what -----------------------------------------------------------------------

COMMAND = re.compile(r"\b(gleaner_library|add_library|add_executable|target_link_libraries)\s*\(\s*([\w-]+)([^)]*)\)")


def walls(cmake_texts):
    """Folder -> folders that it may include, from the texts of the CMake files by their paths."""
    folders, links = {}, {}  # library -> folders of its sources; library -> what it links
    for path, text in cmake_texts.items():
        here = pathlib.PurePosixPath(path).parent
        text = re.sub(r"#[^\n]*", "", text)
        for command, name, rest in COMMAND.findall(text):
            words = rest.split()
            if command == "target_link_libraries":
                links.setdefault(name, set()).update(words)
                continue
            if "LINK" in words:
                links.setdefault(name, set()).update(words[words.index("LINK") + 1:])
            for word in words:
                if word.endswith((".cpp", ".capnp")) and "$" not in word:
                    folders.setdefault(name, set()).add(str((here / word).parent))

    def closure(name, seen):
        for other in links.get(name, ()):
            if other not in seen:
                seen.add(other)
                closure(other, seen)
        return seen

    allowed = {}
    for name, own in folders.items():
        for folder in own:
            sees = allowed.setdefault(folder, {folder})
            sees.update(own)
            for other in closure(name, set()):
                sees.update(folders.get(other, ()))
    return allowed


# Pure state machines and the training function: no clock, no thread, no file, no stream.
PURE = ("master/core/", "volunteer/core/", "common/train/")
IMPURE = ("common/train/aligned_vector.cpp",)  # asks the kernel for large pages
PURE_REFUSES = re.compile(
    r"(thread|mutex|condition_variable|shared_mutex|future|semaphore|fstream|iostream|filesystem"
    r"|ctime|unistd\.h|fcntl\.h|time\.h|sys/.*|nlohmann/.*)")
PURE_CALLS = re.compile(r"\b(monotonic_now|wall_seconds)\b(?=\s*\()")

# Third-party header -> where it may be included. Tests may include anything.
DOORS = [
    (r"asio(/|\.hpp)", r"common/net/|master/([^/]*|shell/[^/]*)$|volunteer/([^/]*|lend/control_\w+\.[ch]pp)$|tools/",
     "common/net and shells"),
    (r"(capnp|kj)/|.*\.capnp\.h$|schema/wire/field_(reader|writer)\.hpp$", r"schema/wire/([^/]*\.cpp|field_(reader|writer)\.hpp)$",
     "schema/wire/*.cpp"),
    (r"rocksdb/|storage/engine/rocks_(bulk_writer|database|options)\.hpp$",
     r"storage/keep/backup\.cpp$|storage/engine/rocks_\w+\.cpp$|storage/engine/rocks_(bulk_writer|database|options)\.hpp$",
     "storage/engine/rocks_* and storage/keep/backup.cpp"),
    (r"toml\+\+/", r"common/settings/settings_toml\.cpp$", "common/settings/settings_toml.cpp"),
    (r"CLI/", r"common/settings/settings_flags\.cpp$|tools/.*\.cpp$", "common/settings/settings_flags.cpp and tools"),
    (r"nlohmann/", r"(master|volunteer)/[^/]*$|(common|storage|master/see|volunteer/lend)/.*\.cpp$|storage/json_fields\.hpp$|master/see/json_values\.hpp$|tools/",
     "shells, tools, and sources in common, storage, master/see and volunteer/lend"),
    (r"microhttpd\.h$", r"common/http/http_(calls\.hpp|\w+\.cpp)$", "common/http/http_*"),
    (r"serd/", r"tools/dataset/skos\.cpp$", "tools/dataset/skos.cpp"),
    (r"qrencode\.h$", r"master/see/view_json\.cpp$", "master/see/view_json.cpp"),
    (r"prometheus/", r"master/see/.*\.cpp$", "sources in master/see"),
    (r"openssl/", r"(common|storage)/.*\.cpp$", "sources in common and storage"),
    (r"(zlib|zstd)\.h$", r"(common/data|storage)/.*\.cpp$|schema/compact_lists\.cpp$", "sources that compress"),
    (r"xxhash\.h$", r"(common|schema|storage)/.*\.(c|h)pp$", "common, schema and storage"),
    (r"systemd/", r"volunteer/lend/system_bus\.cpp$|common/os/process_posix\.cpp$",
     "volunteer/lend/system_bus.cpp and common/os/process_posix.cpp"),
    (r"X11/", r"volunteer/lend/session_helper\.cpp$", "volunteer/lend/session_helper.cpp"),
    (r"catch2/", r"tests/", "tests"),
    (r"pybind11/", r"tools/python/\w+\.cpp$", "tools/python"),
    (r".*intrin\.h$|cpuid\.h$", r".*_(avx2|avx512)\.cpp$|.*/vec\d+\.hpp$|common/train/kernels\.cpp$",
     "the kernels of one instruction set, and what chooses among them"),
]
