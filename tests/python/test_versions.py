"""The package beside other versions of what it uses: interfaces that went are hidden, those that came are imitated."""

import contextlib
import os
import shutil
import subprocess
import sys
import unittest
import unittest.mock
from pathlib import Path

import numpy as np
from cases import QUIET, SECONDS, SKIPPED, Case, animal_texts, program

try:
    import sklearn.base
    import sklearn.utils.validation
    from sklearn.utils.estimator_checks import check_estimator
except ImportError:
    print("skipped: needs scikit-learn (python3-sklearn)")
    sys.exit(SKIPPED)

from gleaner import Gleaner, GleanerClassifier, programs
from scipy import sparse

PACKAGE = Path(programs.__file__).parent
SOURCES = Path(__file__).resolve().parents[2] / "tools/python"
REMOVED = ("_check_n_features", "_check_feature_names", "_validate_data", "_get_tags", "_more_tags")  # by 1.6 and 1.7


class Versions(Case):
    def run_python(self, code, folder, **environment):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=False,
                              cwd=self.path, env={**os.environ, "PYTHONPATH": str(folder), **environment})

    def test_an_estimator_needs_no_interface_that_left_its_base_class(self):
        before = {name: getattr(sklearn.base.BaseEstimator, name) for name in REMOVED}
        functions = {name: (lambda old: lambda estimator, X, reset: old(estimator, X, reset=reset))(before[name])
                     for name in ("_check_n_features", "_check_feature_names")}
        X = sparse.random(60, 20, 0.3, "csr", random_state=1)
        y = np.arange(60) % 3
        for with_functions in (True, False):
            for name in REMOVED:
                delattr(sklearn.base.BaseEstimator, name)
            try:
                with contextlib.ExitStack() as patched:
                    for name, function in functions.items() if with_functions else ():
                        patched.enter_context(unittest.mock.patch.object(sklearn.utils.validation, name, function,
                                                                         create=True))
                    model = GleanerClassifier(epochs=2, threads=1).fit(X, y)
                    self.assertEqual(model.predict(X.toarray()).shape, (60,))
                    self.assertEqual(model.n_features_in_, 20)
                    with self.assertRaisesRegex(ValueError, "X has 19 features, but GleanerClassifier is expecting 20"):
                        model.predict(X[:, :19])
            finally:
                for name, method in before.items():
                    setattr(sklearn.base.BaseEstimator, name, method)

    def test_checks_pass_where_names_are_checked_by_a_function(self):
        before = sklearn.base.BaseEstimator._check_feature_names

        def check(estimator, X, *, reset):
            return before(estimator, X, reset=reset)
        with unittest.mock.patch.object(sklearn.utils.validation, "_check_feature_names", check, create=True), \
                unittest.mock.patch.object(sklearn.base.BaseEstimator, "_check_n_features", None):
            for estimator, test in check_estimator(GleanerClassifier(threads=1), generate_only=True):
                if any(name in str(test) for name in ("n_features_in", "column_names", "sparse", "fit2d")):
                    try:
                        test(estimator)
                    except unittest.SkipTest:
                        pass

    def test_tags_have_the_form_of_both_versions(self):
        class Tags:
            def __init__(self):
                self.classifier_tags, self.input_tags = unittest.mock.Mock(), unittest.mock.Mock(sparse=False)
        with unittest.mock.patch.object(sklearn.base.BaseEstimator, "__sklearn_tags__", lambda self: Tags(), create=True):
            tags = GleanerClassifier().__sklearn_tags__()
        self.assertEqual((tags.classifier_tags.multi_label, tags.input_tags.sparse), (True, True))
        self.assertTrue(GleanerClassifier()._get_tags()["multilabel"])

    def test_matrices_without_the_old_classes_of_scipy(self):
        X = sparse.csr_array(sparse.random(40, 20, 0.3, "csr", random_state=1))
        Y = sparse.csr_array(np.eye(40, 4, dtype=np.int64))
        own = Gleaner(epochs=1, **QUIET).fit(X, Y)
        self.assertEqual(own.best_threshold(X, Y).keys(), {"threshold", "precision", "recall", "f1"})
        self.assertEqual(GleanerClassifier(epochs=1, threads=1).fit(X, Y).predict(X).shape, (40, 4))

    def test_an_import_without_the_module_names_the_command(self):
        folder = self.path / "bare"
        shutil.copytree(PACKAGE, folder / "gleaner", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        said = self.run_python("import gleaner", folder).stderr.strip().splitlines()[-1]
        self.assertRegex(said, r"^ImportError: gleaner has no module for this Python .*pip install ./tools/python")
        self.assertIn("tools/dev/build release gleaner_python", said)
        self.assertNotIn("circular", said)
        module = next(PACKAGE.glob("_gleaner*.so"))
        (folder / "gleaner" / module.name).write_bytes(b"of another machine")
        self.assertIn("has no module for this Python", self.run_python("import gleaner", folder).stderr)

    def test_programs_are_found_beside_the_package(self):
        code = "from gleaner import programs; print(programs.find('gleaner-master'))"
        nowhere = {"GLEANER_BIN": "", "PATH": "/nowhere"}
        master = Path(program("gleaner-master"))
        built = self.path / "build" / "python"
        shutil.copytree(PACKAGE, built / "gleaner", symlinks=True)
        self.assertIn("install the package gleaner-master", self.run_python(code, built, **nowhere).stderr)
        (self.path / "build" / "bin").mkdir()
        (self.path / "build" / "bin" / "gleaner-master").symlink_to(master.resolve())
        self.assertTrue(self.run_python(code, built, **nowhere).stdout.endswith("build/bin/gleaner-master\n"))
        (built / "gleaner" / "bin").mkdir()
        (built / "gleaner" / "bin" / "gleaner-master").symlink_to(master.resolve())
        self.assertTrue(self.run_python(code, built, **nowhere).stdout.endswith("gleaner/bin/gleaner-master\n"))

    def test_a_wheel_has_the_package_and_what_it_needs(self):
        sys.path.insert(0, str(SOURCES))
        self.addCleanup(sys.path.remove, str(SOURCES))
        import wheel_backend
        built = {"gleaner/_gleaner.so": self.path / "module", "gleaner/bin/gleaner-master": self.path / "master"}
        for path in built.values():
            path.write_bytes(b"built")
        with unittest.mock.patch.object(wheel_backend, "build", lambda target: built):
            wheel = self.path / wheel_backend.build_wheel(str(self.path))
        target = self.path / "installed"
        import zipfile
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
            self.assertTrue(archive.getinfo("gleaner/bin/gleaner-master").external_attr >> 16 & 0o100)
            self.assertIn("Name: gleaner", archive.read(next(n for n in archive.namelist() if n.endswith("METADATA"))).decode())
            record = next(n for n in archive.namelist() if n.endswith("RECORD"))
            listed = [line.split(",")[0] for line in archive.read(record).decode().splitlines()]
            self.assertEqual(sorted(listed), sorted(archive.namelist()))
        self.assertEqual({path.name for path in (target / "gleaner").glob("*.py")},
                         {path.name for path in (SOURCES / "gleaner").glob("*.py")})


if __name__ == "__main__":
    unittest.main()
