"""200 odd files of texts, made from a seed: a sound one is read whole in whatever encoding, with whatever separator; a
broken one gives one sentence with the file, and with the line where it has lines. odd_files_program_test.py GLEANER."""

import csv
import gzip
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GLEANER = sys.argv[1]
SEED = int(os.environ.get("GLEANER_SEED", 1))
FILES = 100  # of each kind
WORDS = ["owl", "Kühe", "naïve", "бык", "猫 と 犬", "e-mail", "line\nbreak", 'a "quote"', "semi;colon", "tab\there", "x,y"]


def convert(path, *arguments):
    done = subprocess.run([GLEANER, "dataset", "convert", str(path), "--text", "text", "--tags", "tags", "--output",
                           str(path) + ".set", "--force", "--json", "--min-count", "1", *arguments],
                          capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def records(draw):
    return [{"text": " ".join(draw.choices(WORDS, k=draw.randint(1, 30))) + f" number{i}",
             "tags": draw.choice(["owl", "cow", "night bird"])} for i in range(draw.randint(2, 60))]


def table(rows, separator, end="\n"):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "text", "tags"])
    for i, row in enumerate(rows):
        writer.writerow([i, row["text"], row["tags"]])
    return file.getvalue()


def plain(rows):
    """Only what every encoding of one byte has, and no line breaks."""
    return [{key: value.encode("latin-1", "replace").decode("latin-1").replace("\n", " ") for key, value in row.items()}
            for row in rows]


class OddFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.draw = random.Random(SEED)

    def test_sound_files_are_read_whole(self):
        for number in range(FILES):
            rows = records(self.draw)
            kind = self.draw.choice(["csv", "tsv", "jsonl", "json"])
            flags = []
            if kind == "csv":
                text = table(rows, self.draw.choice(",;\t|"), self.draw.choice(["\n", "\r\n"]))
            elif kind == "tsv":
                rows = [{key: re.sub(r"[\t\n]", " ", value) for key, value in row.items()} for row in rows]
                text = "text\ttags\n" + "".join(f"{row['text']}\t{row['tags']}\n" for row in rows)
            else:
                text = "\n".join(json.dumps(row, ensure_ascii=self.draw.random() < 0.5) for row in rows)
                text = f"[{text.replace(chr(10), ',' + chr(10))}]" if kind == "json" else text + "\n"
            encoding = self.draw.choice(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
            if encoding == "latin-1":
                text = text.encode("latin-1", "replace").decode("latin-1")
                flags = ["--encoding", "latin1"]
            if encoding == "utf-16-le":
                text = "\ufeff" + text
            data = text.encode(encoding)
            name = f"odd{number}.{kind}"
            if self.draw.random() < 0.2:
                data, name = gzip.compress(data), name + ".gz"
            path = self.path / name
            path.write_bytes(data)
            with self.subTest(number=number, kind=kind, encoding=encoding):
                status, out, err = convert(path, *flags)
                self.assertEqual((status, err), (0, ""))
                self.assertEqual(json.loads(out)["written"][0]["points"], len(rows))

    def broken(self):
        """The bytes and ending of a broken file, and whether it has lines that a sentence can name."""
        rows = records(self.draw) * 3
        sound = table(rows, ",")
        kind = self.draw.choice(["quote", "ragged", "columns", "empty", "heads", "gzip", "json", "nul", "bytes", "value"])
        if kind == "quote":  # opened and never closed: the row would swallow the file
            return sound + '99,"opened,owl\n' + "x" * 100, "csv", True
        if kind == "ragged":
            lines = table(plain(rows), ",").split("\n")
            lines.insert(self.draw.randint(1, len(lines) - 1), self.draw.choice(['1,"a"', '1,"a","b","c"']))
            return "\n".join(lines), "csv", True
        if kind == "columns":
            return sound.replace('"text"', '"body"', 1), "csv", True
        if kind == "empty":
            return "", self.draw.choice(["csv", "tsv", "jsonl"]), False
        if kind == "heads":
            return "id,text,tags\n", "csv", False
        if kind == "gzip":
            data = gzip.compress(sound.encode())
            return data[:self.draw.randint(20, len(data) - 9)], "csv.gz", False
        if kind == "json":
            text = "\n".join(json.dumps(row) for row in rows)
            return text[:self.draw.randint(len(text) // 2, len(text) - 2)] + self.draw.choice(["", "{", "\n]", "\x00"]), "jsonl", True
        if kind == "nul":
            at = self.draw.randint(20, len(sound))
            return sound.encode()[:at] + bytes(200) + sound.encode()[at:], "csv", True
        if kind == "bytes":
            return self.draw.randbytes(5000), self.draw.choice(["csv", "tsv", "jsonl"]), False
        return "\n".join(json.dumps({"text": self.draw.choice([{"a": 1}, [["x"]]]), "tags": "a"}) for _ in rows), "jsonl", True

    def test_broken_files_give_a_sentence_with_their_name_and_line(self):
        for number in range(FILES):
            data, ending, has_lines = self.broken()
            path = self.path / f"broken{number}.{ending}"
            path.write_bytes(data.encode() if isinstance(data, str) else data)
            with self.subTest(number=number, ending=ending, data=data[:60]):
                status, out, err = convert(path)
                self.assertEqual((status, out), (3, ""), err)
                self.assertEqual(err.count("\n"), 1, err)
                self.assertIn(path.name, err)
                if has_lines:
                    self.assertRegex(err, re.escape(path.name) + r":\d+")
                self.assertFalse((self.path / (path.name + ".set")).exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
