"""The layout of the repository as rules, for tidy.py: how many files a folder holds, which folder may
include which, and where third-party headers may be included. A new folder gets its line here."""

import re

FOLDER_FILES_MAX = 30


# ---- What may include what -----------------------------------------------------------------------

# Folder -> folders whose headers it may include; the longest match of a path's folder counts.
CORE_SEES = {"common", "common/access", "common/dataset", "common/kernels", "common/lsh", "common/model", "schema"}
TRAIN = {"volunteer/train", "volunteer/train/input", "volunteer/train/output", "volunteer/train/wide"}
SHELL_SEES = {"common/console", "common/net", "common/settings", "schema/wire"}
INCLUDES = {
    "common": {"common"},
    "common/console": {"common", "common/console"},
    "common/settings": {"common", "common/settings"},
    "common/model": {"common", "common/model"},
    "common/kernels": {"common", "common/kernels", "common/model"},
    "common/lsh": {"common", "common/kernels", "common/lsh", "common/model"},
    "common/dataset": {"common", "common/dataset"},
    "common/words": {"common", "common/dataset", "common/words"},
    "common/access": {"common", "common/access"},
    "common/http": {"common", "common/http"},
    "common/net": {"common", "common/access", "common/net"},
    "schema": {"common", "common/access", "common/model", "schema"},
    "schema/wire": {"common", "common/access", "common/model", "schema", "schema/wire"},
    "storage/engine": {"common", "storage/engine"},
    "storage": {"common", "common/access", "common/lsh", "common/model", "schema", "schema/wire", "storage",
                "storage/engine"},
    "storage/audit": {"common", "common/console", "common/lsh", "common/model", "schema",
                      "storage", "storage/audit", "storage/engine"},
    "storage/model": {"common", "common/console", "common/dataset", "common/model", "schema",
                      "storage", "storage/engine", "storage/model"},
    "volunteer/train": CORE_SEES | {"volunteer/train"},
    "volunteer/train/input": CORE_SEES | {"volunteer/train", "volunteer/train/input"},
    "volunteer/train/output": CORE_SEES | {"volunteer/train", "volunteer/train/output"},
    "volunteer/train/wide": CORE_SEES | TRAIN,
    "volunteer/core": CORE_SEES | {"volunteer/core"},
    "volunteer/idle": {"common", "volunteer/idle"},
    "volunteer/control": {"common", "common/access", "common/console", "common/dataset", "common/settings",
                          "volunteer/control"},
    "volunteer/page": {"common", "common/access", "common/http", "volunteer/page"},
    "volunteer": CORE_SEES | SHELL_SEES | TRAIN | {"volunteer", "volunteer/control", "volunteer/core",
                                                   "volunteer/idle", "volunteer/page"},
    "master/config": {"common", "common/console", "common/model", "common/settings", "master/config",
                      "master/console", "master/core/events", "schema"},
    "master/access": {"common", "common/access", "master/access", "schema"},
    "master/console": {"common", "common/console", "common/model", "master/console",
                       "master/core/events", "schema"},
    "master/entrance": {"common", "common/access", "common/console", "common/net", "master/access", "master/config",
                        "master/console", "master/entrance", "schema", "volunteer"},
    "master/http": {"common", "common/access", "common/console", "common/http", "common/model", "master/access", "master/console",
                    "master/core/events", "master/http", "master/predict", "master/tasks", "schema", "schema/wire",
                    "storage"},
    "master/predict": CORE_SEES | TRAIN | {"common/words", "master/predict", "master/tasks", "storage", "storage/engine",
                                           "storage/model"},
    "master/tasks": CORE_SEES | {"master/console", "master/core/events", "master/tasks", "storage",
                                 "storage/engine", "volunteer/train/input"},
    "master/runner": CORE_SEES | SHELL_SEES | {"master/core", "master/core/events", "master/runner", "master/tasks"},
    "master": CORE_SEES | SHELL_SEES | TRAIN | {
        "storage", "storage/engine", "storage/model", "master", "master/access", "master/config",
        "master/console", "master/core", "master/core/events", "master/entrance", "master/http", "master/predict",
        "master/runner", "master/tasks", "volunteer", "volunteer/core"},
    "tools": None,  # everything but tests
    "tests": None,
}
# The rooms of the master's core, lowest first: each sees itself and those before it.
CORE_ROOMS = ["events", "batches", "sessions", "placement", "audits", "rounds", "units", "view"]
for count, room in enumerate(CORE_ROOMS, 1):
    INCLUDES["master/core/" + room] = CORE_SEES | {"master/core/" + r for r in CORE_ROOMS[:count]}
INCLUDES["master/core/events"] = INCLUDES["master/core/events"] | {"common/console"}  # levels of log lines
INCLUDES["master/core"] = CORE_SEES | {"master/core"} | {"master/core/" + r for r in CORE_ROOMS}
# The verbs of gleaner: each folder sees everything below tools, and these folders of tools.
TOOLS_INCLUDE = {
    "cli": set(),
    "access": {"cli"},
    "inspect": {"access", "cli"},
    "verify": {"cli"},
    "dataset": {"cli"},
    "predict": {"cli", "dataset"},
    "plan": {"cli", "dataset"},
    "launch": {"access", "cli"},
    "python": set(),
}
BELOW_TOOLS = set(INCLUDES) - {"tools", "tests"}
for folder, others in TOOLS_INCLUDE.items():
    INCLUDES["tools/" + folder] = BELOW_TOOLS | {"tools/" + other for other in others | {folder}}
# Pure state machines and the training function: no clock, no thread, no file, no stream.
PURE = ("master/core/", "volunteer/core/", "volunteer/train/")
PURE_REFUSES = re.compile(
    r"(thread|mutex|condition_variable|shared_mutex|future|semaphore|fstream|iostream|filesystem"
    r"|ctime|unistd\.h|fcntl\.h|time\.h|sys/.*|nlohmann/.*|spdlog/.*)")
PURE_CALLS = re.compile(r"\b(monotonic_now|wall_seconds)\b(?=\s*\()")

# Third-party header -> where it may be included. Tests may include anything.
DOORS = [
    (r"asio(/|\.hpp)", r"common/net/|master/[^/]*$|master/(entrance|keep|own)/|volunteer/[^/]*$|volunteer/control/|tools/", "common/net and shells"),
    (r"(capnp|kj)/|.*\.capnp\.h$", r"schema/wire/[^/]*\.cpp$|schema/wire/wire\.hpp$", "schema/wire/*.cpp"),
    (r"schema/wire/wire\.hpp$", r"schema/wire/[^/]*\.cpp$", "schema/wire/*.cpp"),
    (r"rocksdb/", r"storage/rocks_backup\.cpp$|storage/engine/rocks_\w+\.cpp$|storage/engine/rocks_(bulk|files|options)\.hpp$",
     "storage/engine/rocks_*.cpp, what only they include, and storage/rocks_backup.cpp"),
    (r"storage/engine/rocks_(bulk|files|options)\.hpp$", r"storage/(engine/)?rocks_\w+\.[ch]pp$",
     "storage/engine/rocks_*.cpp and storage/rocks_backup.cpp"),
    (r"toml\+\+/", r"(.*/)?[^/]*(settings|config)[^/]*\.cpp$", "settings and config sources"),
    (r"CLI/", r"(.*/)?[^/]*(settings|config|main)[^/]*\.cpp$|tools/.*\.cpp$",
     "settings, config and main sources"),
    (r"nlohmann/", r"(master|volunteer)/[^/]*$|(master/console|master/http|master/predict|volunteer/control)/.*\.cpp$|master/console/known_json\.hpp$|common/((console|words)/)?[^/]*\.cpp$|storage/.*\.cpp$|tools/",
     "shells, tools, master/console/known_json.hpp, and sources in common and storage"),
    (r"microhttpd\.h$", r"common/http/http_(calls\.hpp|\w+\.cpp)$", "common/http/http_*"),
    (r"qrencode\.h$", r"master/http/qr_code\.cpp$", "master/http/qr_code.cpp"),
    (r"prometheus/", r"master/http/.*\.cpp$", "sources in master/http"),
    (r"spdlog/", r"(.*/)?[^/]*(log|main)[^/]*\.cpp$", "log and main sources"),
    (r"openssl/", r"(common|storage)/.*\.cpp$", "sources in common and storage"),
    (r"(zlib|zstd)\.h$", r"common/dataset/.*\.cpp$|storage/.*\.cpp$|schema/compact_lists\.cpp$",
     "sources that compress"),
    (r"xxhash\.h$", r"(common|schema|storage|volunteer/train)/.*\.(c|h)pp$",
     "common, schema, storage and volunteer/train"),
    (r"systemd/", r"volunteer/idle/bus_library\.hpp$|common/console/journal\.cpp$",
     "volunteer/idle/bus_library.hpp and common/console/journal.cpp"),
    (r"X11/", r"volunteer/control/.*\.cpp$", "sources in volunteer/control"),
    (r"catch2/", r"tests/", "tests"),
    (r"pybind11/", r"tools/python/module\.cpp$", "tools/python/module.cpp"),
    (r".*intrin\.h$", r".*_(avx2|avx512)\.cpp$|.*/vec\d+\.hpp$|.*/simd_level\.cpp$|tests/bench/machine/bench_peaks\.cpp$",
     "the kernels of one instruction set and the bench of peaks"),
]
