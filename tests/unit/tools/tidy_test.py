"""tools/dev/tidy.py against small repositories, each with one thing wrong (or right)."""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/dev"))
import tidy  # noqa: E402


def findings(files, with_format=False):
    """What tidy says of a repository of these files; every .cpp is built, every .hpp included."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return tidy.check_repository(root, with_format)


def about(path, text, **others):
    """Findings about one file, with whatever makes it alive around it."""
    files = {path: text}
    name = pathlib.PurePosixPath(path)
    if name.suffix == ".cpp":
        files[str(name.parent / "CMakeLists.txt")] = f"add_library(x {name.name})\n"
    files.update({other.replace("__", "/"): content for other, content in others.items()})
    return [line for line in findings(files) if line.startswith(path + ":")]


def body(statement):
    return "Task f() {\n  " + statement + "\n}\n"


# A small house: libraries, and what they link.
WALLS = {
    "common/CMakeLists.txt": "gleaner_library(gleaner_common\n  SOURCES a.cpp  # no I/O\n  LINK fmt::fmt)\n"
                             "gleaner_library(gleaner_net SOURCES net/n.cpp LINK gleaner_common)\n",
    "schema/CMakeLists.txt": "gleaner_library(gleaner_schema SOURCES s.cpp LINK gleaner_common)\n",
    "storage/CMakeLists.txt": "gleaner_library(gleaner_storage SOURCES r.cpp)\n"
                              "target_link_libraries(gleaner_storage PRIVATE gleaner_schema)\n",
    "master/CMakeLists.txt": "gleaner_library(gleaner_core SOURCES core/c.cpp LINK gleaner_schema)\n"
                             "gleaner_library(gleaner_master SOURCES m.cpp LINK gleaner_core gleaner_net gleaner_storage)\n",
    "tools/CMakeLists.txt": "gleaner_library(gleaner_cli SOURCES cli/v.cpp LINK gleaner_common)\n"
                            "add_executable(gleaner main.cpp)\n"
                            "target_link_libraries(gleaner PRIVATE gleaner_cli gleaner_master)\n",
}
SOURCES = ["common/a", "common/net/n", "schema/s", "storage/r", "master/core/c", "master/m", "tools/cli/v"]


class Includes(unittest.TestCase):
    def included(self, path, header):
        """What tidy says of `path`, one of SOURCES or any in tools or tests, when it includes `header`."""
        files = {**WALLS, **{source + suffix: "" for source in SOURCES for suffix in (".cpp", ".hpp")},
                 "tools/main.cpp": "", "tests/s.hpp": "", path: f'#include "{header}"\n'}
        return [line for line in findings(files) if line.startswith(path + ":")
                and "no CMakeLists.txt builds" not in line]

    def test_folders_include_only_what_their_libraries_link(self):
        for path, header in [
                ("common/a.cpp", "schema/s.hpp"), ("common/a.cpp", "common/net/n.hpp"),
                ("schema/s.cpp", "storage/r.hpp"), ("schema/s.cpp", "common/net/n.hpp"),
                ("storage/r.cpp", "master/m.hpp"), ("master/core/c.cpp", "master/m.hpp"),
                ("master/core/c.cpp", "common/net/n.hpp"), ("master/core/c.cpp", "storage/r.hpp"),
                ("tools/cli/v.cpp", "master/m.hpp"), ("master/m.cpp", "tests/s.hpp"),
                ("tools/main.cpp", "tests/s.hpp")]:
            with self.subTest(path=path, header=header):
                self.assertEqual(len(self.included(path, header)), 1)

    def test_folders_may_include_what_their_libraries_link(self):
        for path, header in [
                ("common/net/n.cpp", "common/a.hpp"), ("schema/s.cpp", "common/a.hpp"),
                ("storage/r.cpp", "schema/s.hpp"), ("storage/r.cpp", "common/a.hpp"),
                ("master/core/c.cpp", "common/a.hpp"), ("master/m.cpp", "master/core/c.hpp"),
                ("master/m.cpp", "storage/r.hpp"), ("master/m.cpp", "common/net/n.hpp"),
                ("tools/main.cpp", "master/core/c.hpp"), ("tools/cli/v.cpp", "common/a.hpp"),
                ("tests/x.cpp", "tests/s.hpp"), ("tests/x.cpp", "master/m.hpp")]:
            with self.subTest(path=path, header=header):
                self.assertEqual(self.included(path, header), [])

    def test_folders_that_include_each_other_are_reported(self):
        def circles(files):
            return [line for line in findings(files) if "in a circle" in line]

        files = {"common/a/a.hpp": '#include "common/b/b.hpp"\n', "common/b/b.hpp": "",
                 "common/b/c.hpp": '\n#include "common/c/c.hpp"\n', "common/c/c.hpp": ""}
        self.assertEqual(circles(files), [])
        files["common/c/d.hpp"] = '#include "common/a/a.hpp"\n'
        self.assertEqual(circles(files), [
            "common/c/d.hpp:1: folders include each other in a circle: "
            "common/a -> common/b -> common/c -> common/a"])
        self.assertEqual(circles({"tests/a/a.hpp": '#include "tests/b/b.hpp"\n',
                                  "tests/b/b.hpp": '#include "tests/a/a.hpp"\n'}), [])

    def test_a_folder_of_too_many_files_is_reported(self):
        def crowded(files):
            return [line for line in findings(files) if "give each idea a folder" in line]

        files = {f"common/x/{number}.py": "" for number in range(45)}
        files["common/x/README.md"] = files["common/x/y/45.py"] = ""
        self.assertEqual(crowded(files), [])
        files["common/x/45.py"] = ""
        self.assertEqual(len(crowded(files)), 1)
        self.assertTrue(crowded(files)[0].startswith("common/x:1: 46 files"))
        self.assertEqual(crowded({f"tests/fuzz/corpus/a/{number}": "" for number in range(60)}), [])

    def test_a_header_that_is_nowhere_is_reported(self):
        self.assertIn("not a path", self.included("common/a.cpp", "a.hpp")[0])

    def test_third_party_headers_stay_behind_their_doors(self):
        for path, header in [
                ("master/core/x.cpp", "asio.hpp"), ("schema/x.cpp", "asio/buffer.hpp"),
                ("storage/x.cpp", "rocksdb/db.h"), ("storage/x.cpp", "capnp/message.h"),
                ("schema/wire/codec.hpp", "capnp/message.h"), ("master/x.cpp", "schema/wire/a.capnp.h"),
                ("common/x.cpp", "toml++/toml.h"), ("master/session.cpp", "CLI/CLI.hpp"),
                ("common/x.cpp", "catch2/catch.hpp"), ("common/train/x.cpp", "immintrin.h"),
                ("volunteer/core/x.cpp", "nlohmann/json.hpp"), ("common/x.cpp", "zstd.h")]:
            with self.subTest(path=path, header=header):
                found = about(path, f"#include <{header}>\n", tests__a_cpp=f'#include "{path}"\n')
                self.assertTrue(any("may be included only in" in line for line in found), found)
        for path, header in [
                ("master/server.cpp", "asio.hpp"), ("common/net/x.cpp", "asio/buffer.hpp"),
                ("storage/engine/rocks_store.cpp", "rocksdb/db.h"), ("schema/wire/codec.cpp", "capnp/list.h"),
                ("common/settings/settings_toml.cpp", "toml++/toml.h"), ("tools/gleaner.cpp", "CLI/CLI.hpp"),
                ("common/train/dot_avx2.cpp", "immintrin.h"), ("tests/unit/x.cpp", "rocksdb/db.h")]:
            with self.subTest(path=path, header=header):
                self.assertEqual(about(path, f"#include <{header}>\n"), [])

    def test_pure_cores_refuse_threads_files_and_clocks(self):
        for header in ["thread", "mutex", "fstream", "unistd.h", "sys/mman.h", "filesystem"]:
            for folder in ["master/core", "volunteer/core", "common/train"]:
                with self.subTest(header=header, folder=folder):
                    self.assertEqual(len(about(folder + "/x.cpp", f"#include <{header}>\n")), 1)
            self.assertEqual(about("master/x.cpp", f"#include <{header}>\n"), [])

    def test_pure_cores_do_not_ask_for_the_time(self):
        text = "int f(Run run) {\n  run.wall_seconds = 3;\n  return monotonic_now();\n}\n"
        found = about("common/train/x.cpp", text)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("common/train/x.cpp:3: "), found)
        self.assertEqual(about("volunteer/x.cpp", text), [])


class Banned(unittest.TestCase):
    def test_each_banned_call_is_reported_where_it_stands(self):
        for call in ["std::chrono::steady_clock::now();", "std::chrono::system_clock::now();",
                     "std::random_device d;", "std::rand();", "srand(1);", "std::mt19937 g;",
                     "std::uniform_int_distribution<int> d;", "std::shuffle(a, b, g);",
                     "std::this_thread::sleep_for(x);", "usleep(3);", "asio::detached;",
                     "thread.detach();", "clock_gettime(a, b);", "int fd = open(device);  // "
                     "TO" "DO later"]:
            with self.subTest(call=call):
                found = about("master/x.cpp", "void f() {\n  " + call + "\n}\n")
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith("master/x.cpp:2: "))

    def test_the_one_file_that_may_is_left_alone(self):
        clock = "int f() {\n  return std::chrono::steady_clock::now();\n}\n"
        self.assertEqual(about("common/time.cpp", clock), [])
        device = "int f() {\n  return std::random_device()();\n}\n"
        self.assertEqual(about("common/access/key_pair.cpp", device), [])

    def test_words_in_comments_and_strings_are_not_calls(self):
        self.assertEqual(about("master/x.cpp", '// Never sleep_for(x) or rand().\n'
                               'const char* a = "steady_clock::now";\n'
                               'const char* b = R"(rand())";\n/* std::shuffle */\n'
                               "constexpr int c = 1'000'000; constexpr char d = '\"';\n"), [])

    def test_names_that_contain_a_banned_one_are_fine(self):
        self.assertEqual(about("master/x.cpp", "int a = operand(1) + brand(2) + core.rand(3);\n"), [])

    def test_machine_paths_and_flags_are_reported_in_any_file(self):
        for text in ["see /ho" "me/somebody/x\n", "cd '/wo" "rk/main'\n"]:
            self.assertEqual(len(about("storage/README.md", text)), 1, text)
        self.assertEqual(about("storage/README.md", "src/home/x, https://a.b/work/x\n"), [])
        self.assertEqual(len(about("CMakeLists.txt", "add_compile_options(-march=" "native)\n")), 1)


class CoAwait(unittest.TestCase):
    GOOD = ["co_await f();", "const auto frame = co_await socket.read(g(), h(1, 2));",
            "auto [error, size] = co_await asio::async_read(s, b, token);", "x = co_await f();",
            "this->frame_ = co_await f();", "a.b = co_await f<int, 3>(x);", "(void)co_await f();",
            "if (a) co_await f();", "if (a && b(c)) {\n    co_await f();\n  } else co_await g();",
            "for (int i = 0; i < 3; ++i) co_await f();", "const std::optional<Frame> f = co_await r();",
            "switch (x) {\n    case Kind::kA:\n      co_await f();\n  }",
            "std::map<int, std::string> m = co_await f(a->b, c[1], -1, a + b);",
            "slots[3] = co_await f();", "co_await (a.async_wait(token) || b.async_wait(token));"]
    BAD = ["if (co_await f()) {\n  }", "while (!co_await f()) {\n  }",
           "for (auto x = co_await f(); x;) {\n  }", "switch (co_await f()) {\n  }",
           "g(co_await f());", "co_return co_await f();", "return co_await f();",
           "const bool x = co_await f() && y;", "const int x = 1 + co_await f();",
           "auto x = co_await f() ? 1 : 2;", "auto x = (co_await f()).value();", "x += co_await f();",
           "co_await f([&] { return 1; });", "auto x = co_await f(Point{1, 2});",
           "co_await f({1, 2});", "auto x = !co_await f();", "auto x = co_await f(), y = 2;"]

    def test_safe_shapes_pass(self):
        for statement in self.GOOD:
            with self.subTest(statement=statement):
                self.assertEqual(about("master/x.cpp", body(statement)), [])

    def test_unsafe_shapes_are_reported(self):
        for statement in self.BAD:
            with self.subTest(statement=statement):
                found = about("master/x.cpp", body(statement))
                self.assertEqual(len(found), 1, found)
                self.assertIn("co_await", found[0])
                self.assertTrue(found[0].startswith("master/x.cpp:2: "), found)


class Lengths(unittest.TestCase):
    def test_files_have_at_most_600_lines_and_tests_800(self):
        for path, limit in (("master/x.cpp", 600), ("tests/unit/x.cpp", 800)):
            self.assertEqual(about(path, "int a;\n" * limit), [])
            self.assertEqual(len(about(path, "int a;\n" * (limit + 1))), 1)

    def test_functions_have_at_most_60_lines(self):
        def function(lines):
            return "namespace a {\n\nint f(int x) {\n" + "  ++x;\n" * (lines - 2) + "}\n\n}\n"
        self.assertEqual(about("master/x.cpp", function(60)), [])
        found = about("master/x.cpp", function(61))
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("master/x.cpp:3: a function of 61 lines"), found)

    def test_classes_tables_and_directives_are_not_functions(self):
        many = "  int a = f(1);\n" * 80
        self.assertEqual(about("master/x.cpp", "class A : public B<int (*)()> {\n" + many + "};\n"), [])
        self.assertEqual(about("master/x.cpp", "#if defined(A)\nnamespace {\n" + many + "}\n#endif\n"),
                         [])
        self.assertEqual(about("master/x.cpp", "const T t(3) = {\n" + "  1,\n" * 80 + "};\n"), [])


class PrivateParts(unittest.TestCase):
    ONE = "namespace {\n\nint a() {\n  return 1;\n}\n\n}  // namespace\n\n"

    def said(self, text, path="master/x.cpp"):
        return [line for line in about(path, "namespace gleaner {\n" + text + "}  // namespace gleaner\n")
                if "unnamed namespace" in line]

    def functions(self, count):
        return "".join(f"int f{i}() {{\n  return {i};\n}}\n\n" for i in range(count))

    def test_one_at_the_top_is_right(self):
        self.assertEqual(self.said(self.ONE + self.functions(9)), [])
        self.assertEqual(self.said("using Other = int;\nclass C;\n\n" + self.ONE + self.functions(1)), [])

    def test_a_second_one_is_refused(self):
        self.assertEqual(len(self.said(self.ONE + self.functions(1) + self.ONE)), 1)

    def test_it_comes_first(self):
        self.assertEqual(len(self.said(self.functions(1) + self.ONE)), 1)

    def test_a_long_one_has_few_functions_behind_it(self):
        long_one = "namespace {\n\n" + "int a = 1;\n" * 80 + "\n}  // namespace\n\n"
        self.assertEqual(self.said(long_one + self.functions(3)), [])
        self.assertEqual(len(self.said(long_one + self.functions(4))), 1)

    def test_that_of_a_test_may_be_long(self):
        long_one = "namespace {\n\n" + "int a = 1;\n" * 80 + "\n}  // namespace\n\n"
        self.assertEqual(self.said(long_one + self.functions(4), "tests/x.cpp"), [])
        self.assertEqual(len(self.said(self.ONE + self.functions(1) + self.ONE, "tests/x.cpp")), 1)


class Language(unittest.TestCase):
    def test_banned_phrases_are_reported_in_comments_strings_and_markdown(self):
        for path, text in [
                ("master/x.cpp", "// Waits for so many batches.\n"),
                ("master/x.cpp", "// Waits for so\n// many batches.\n"),
                ("master/x.cpp", 'const char* a =\n    "it is "\n    "said twice";\n'),
                ("tools/x.py", "# It begins an" "ew.\n"), ("master/README.md", "It takes so\nlong.\n")]:
            with self.subTest(text=text):
                found = about(path, text)
                self.assertEqual(len(found), 1, found)
                self.assertIn("makes the reader guess", found[0])
        self.assertEqual(about("master/x.cpp", "// As many as there are, and this much more.\n"), [])
        self.assertEqual(len(about("master/CONFIGURATION.md", "So many.\n")), 1)

    def test_comments_that_begin_without_a_subject_are_reported(self):
        for text in ["// Of the last batch.\n", "  // Those that left.\n", "int a;\n// The same twice.\n"]:
            self.assertEqual(len(about("master/x.cpp", text)), 1, text)
        for text in ["// One\n// Of many.\n", "// Often.\n", "int a;  // Of one.\n"]:
            self.assertEqual(about("master/x.cpp", text), [], text)

    def test_prose_of_markdown_wraps_at_120_columns(self):
        long = "word " * 24 + "w"
        self.assertEqual(len(long), 121)
        found = about("master/README.md", "a\n" + long + "\n")
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("master/README.md:2: 121 columns"), found)
        for text in [long[1:], "| " + long, "```\n" + long + "\n```", "    " + long, "w" * 121]:
            self.assertEqual(about("master/README.md", text + "\n"), [], text)
        self.assertEqual(about("master/CONFIGURATION.md", long + "\n"), [])

    def test_pronouns_and_clauses_in_the_place_of_nouns_are_reported(self):
        for path, text in [
                ("master/x.cpp", "// Takes one that waits.\n"), ("master/x.cpp", "// Rows are those\n// of before.\n"),
                ("master/x.cpp", "// Whoever waits is asked.\n"), ("master/x.cpp", "// Held is a row.\n"), ("master/README.md", "What is written stays.\n"),
                ("tools/x.py", "# It asks so often.\n"), ("master/README.md", "One shard, as it were.\n"),
                ("master/x.cpp", "// Found always, else but once.\n"), ("master/README.md", "A row which has none.\n")]:
            with self.subTest(text=text):
                self.assertEqual(len(about(path, text)), 1, about(path, text))
        for path, text in [("master/README.md", "What is in a store? It says.\n"), ("master/README.md", "## What is kept\n"),
                           ("tests/a.py", "def test_one_that_is(): pass\n"), ("master/x.cpp", "// The row that waits.\n"),
                           ("tests/a.hpp", 'TEST_CASE("one that waits") {}\n')]:
            with self.subTest(text=text):
                self.assertEqual([line for line in about(path, text) if "sentence" in line or "noun" in line], [])

    def test_tables_of_markdown_have_at_most_140_columns(self):
        row = "| " + "word " * 27 + "w |"
        self.assertEqual(len(row), 140)
        self.assertEqual(about("master/README.md", row + "\n"), [])
        self.assertIn("141 columns of table", about("master/README.md", row + "|\n")[0])
        self.assertEqual(about("tests/bench/RESULTS.md", row + "|\n"), [])


class Claims(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        page = {"master/core/README.md": "# A\n\n## To add `x`: a flag\n\n<a id=\"row\"></a>\n\n## A\n"}
        for link in ["core/README.md", "core", "core/README.md#to-add-x-a-flag", "core/README.md#row", "#here",
                     "core/README.md#a-1", "https://a.b/c#d"]:
            with self.subTest(link=link):
                text = {"master/README.md": f"# Here\n\n[words]({link})\n"}
                self.assertEqual(findings({**page, **text}), [])
        for link in ["OTHER.md", "README.md#b", "#there", "README.md"]:
            with self.subTest(link=link):
                found = findings({**page, "master/core/x.md": f"[words\nof two lines]({link})\n"})
                self.assertEqual(len(found), 0 if link == "README.md" else 1, found)

    def names(self, path, text):
        """What tidy says of the names in `text`, beside a class and its file."""
        return [
            line for line in findings({
                "master/row_table.hpp": "class RowTable {\n  void take_row(int row_count);\n};\nclass Other {};\n",
                "tests/x.cpp": '#include "master/row_table.hpp"\n', "tests/CMakeLists.txt": "x(x.cpp)\n",
                "master/see/a.js": "", path: text}) if line.startswith(path + ":")]

    def test_names_in_back_ticks_and_comments_exist(self):
        for path, text in [
                ("master/README.md", "`row_table.hpp`, `master/row_table.hpp`, `master/see`, `RowTable`, `row_count`\n"),
                ("master/README.md", "`RowTable::take_row`, `take_row()`, `row_table`, `a/b`, `*.cpp`, `some words`\n"),
                ("master/README.md", "```\nno_name.cpp `no_name`\n```\n"), ("master/README.md", "`add_NAME_row`, `RowTable::kNAME`\n"),
                ("tests/y.py", "import x  # master/row_table.hpp, take_row()\n")]:
            with self.subTest(text=text):
                self.assertEqual([line for line in self.names(path, text) if "names `" in line], [])
        for path, text in [
                ("master/README.md", "`column_table.hpp`\n"), ("master/README.md", "In master/column.cpp.\n"),
                ("master/README.md", "`master/sea`\n"), ("master/README.md", "`ColumnTable`\n"),
                ("master/README.md", "`RowTable::give_row`\n"), ("master/README.md", "`Other::take_row_now`\n"),
                ("master/README.md", "It calls give_row().\n"), ("master/README.md", "`column_count`\n"),
                ("tests/y.py", '"""See column_table.hpp."""\n')]:
            with self.subTest(text=text):
                self.assertEqual(len([line for line in self.names(path, text) if "names `" in line]), 1)

    def test_tests_that_documents_quote_exist(self):
        files = {"tests/unit/a_test.cpp": 'TEST_CASE("rows: none is lost", "[rows]") {}\n',
                 "tests/e2e/test_b.py": "class B:\n    def test_a_wrong_key_is_refused(self):\n        pass\n",
                 "tests/unit/CMakeLists.txt": "gleaner_test(row_test LABEL unit\n  SOURCES a_test.cpp)\n",
                 "tests/e2e/CMakeLists.txt": "gleaner_e2e(e2e_b test_b.py)\n"}
        for text in ['`row_test` "rows: none..."', '`row_test`', '`e2e_b` "a wrong\nkey"']:
            with self.subTest(text=text):
                self.assertEqual(findings({**files, "tests/README.md": text + "\n"}), [])
        for text in ['`row_test` "rows: all"', '`column_test`', '`e2e_c`', '`row_test` "rows", "columns"']:
            with self.subTest(text=text):
                self.assertGreaterEqual(len(findings({**files, "tests/README.md": text + "\n"})), 1)


class Size(unittest.TestCase):
    def test_growth_is_refused_and_a_limit_follows_its_count(self):
        def sizes(limit, name="production lines"):
            return findings({"tools/a.py": "1\n" * 500, "tools/b.py": "1\n" * 500, "tests/e2e/test_a.py": "import a\n" * 9,
                             "tests/CMakeLists.txt": "x(e2e/test_a.py)\n", "tools/README.md": "Five words stand in here.\n",
                             "tools/dev/size.txt": f"{limit} {name}\n"})

        self.assertEqual(sizes(1000), [])
        self.assertEqual(sizes(1010), [])
        self.assertEqual(sizes(2, "production files"), [])
        self.assertEqual(sizes(5, "Markdown words"), [])
        self.assertIn("1000 production lines, 1 beyond the limit", sizes(999)[0])
        self.assertIn("lower the limit", sizes(1020)[0])
        self.assertIn("is not counted", sizes(1, "words")[0])


class DeadFiles(unittest.TestCase):
    def test_unbuilt_sources_and_unincluded_headers_are_reported(self):
        found = findings({"common/a.cpp": "", "common/b.hpp": "", "common/CMakeLists.txt": "x(c.cpp)\n",
                          "tests/e2e/t.py": "", "schema/p.capnp": ""})
        self.assertEqual(len(found), 4, found)

    def test_sources_count_as_built_however_their_path_is_written(self):
        self.assertEqual(findings({
            "common/a.cpp": "", "tests/unit/b.cpp": "", "tests/e2e/t.py": "import u\n",
            "tests/e2e/u.py": "", "tools/CMakeLists.txt":
                "x(../common/a.cpp ${PROJECT_SOURCE_DIR}/tests/unit/b.cpp)\n",
            "tests/fuzz/c.cpp": "", "tests/fuzz/wire.cmake": "fuzz(c SOURCES c.cpp)\n",
            "tests/e2e/CMakeLists.txt": "x(${CMAKE_CURRENT_SOURCE_DIR}/t.py)\n"}), [])


class Text(unittest.TestCase):
    def test_blanks_tabs_and_endings(self):
        for text in ["int a; \n", "\tint a;\n", "int a;", "int a;\n\n"]:
            self.assertEqual(len(about("master/x.cpp", text)), 1, repr(text))

    def test_unformatted_code_is_reported(self):
        if tidy.shutil.which("clang-format-14") is None:
            self.skipTest("clang-format-14 is not installed")
        files = {"common/CMakeLists.txt": "x(a.cpp)\n", ".clang-format": "BasedOnStyle: Google\n"}
        self.assertEqual(findings({**files, "common/a.cpp": "int a;\n"}, with_format=True), [])
        found = findings({**files, "common/a.cpp": "int  a ;\n"}, with_format=True)
        self.assertEqual(len(found), 1)
        self.assertIn("not formatted", found[0])

    def test_a_missing_clang_format_is_reported_with_its_package(self):
        with unittest.mock.patch.object(tidy.shutil, "which", return_value=None):
            found = findings({"common/README.md": ""}, with_format=True)
        self.assertEqual(len(found), 1, found)
        self.assertIn("install the package clang-format-14", found[0])


if __name__ == "__main__":
    unittest.main()
