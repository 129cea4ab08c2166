"""Builds a wheel of the package by CMake (PEP 517): the module for this Python, and the master beside it."""

import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = "1.0"
INFO = f"gleaner-{VERSION}.dist-info"
METADATA = f"""Metadata-Version: 2.1
Name: gleaner
Version: {VERSION}
Requires-Python: >=3.9
Requires-Dist: numpy>=1.21
Requires-Dist: scipy>=1.7
"""


def build(folder):
    """The folder with the built package."""
    flags = [f"-DGLEANER_PYTHON={sys.executable}", f"-B{folder}", "-S", str(HERE.parents[1]), "--preset", "release"]
    try:
        import pybind11
        flags.append(f"-DPYBIND11_INCLUDE={pybind11.get_include()}")
    except ImportError:
        pass  # Debian's pybind11-dev
    subprocess.run(["cmake", *flags], check=True, cwd=HERE.parents[1])
    subprocess.run(["cmake", "--build", folder, "--target", "gleaner_python", "gleaner-master"], check=True)
    made = Path(folder) / "python"
    (made / "gleaner/bin").mkdir(exist_ok=True)
    os.replace(Path(folder) / "bin/gleaner-master", made / "gleaner/bin/gleaner-master")
    return made


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """PEP 517; returns the name of the folder."""
    info = Path(metadata_directory) / INFO
    info.mkdir()
    (info / "METADATA").write_text(METADATA, encoding="utf-8")
    return INFO


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517; returns the wheel's name."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tag = f"{python}-{python}-{platform}"
    name = f"gleaner-{VERSION}-{tag}.whl"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(
            Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        made = build(folder)
        built = [path for path in made.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
        files = {str(path.relative_to(made)): path for path in built}
        files.update((f"gleaner/{path.name}", path) for path in (HERE / "gleaner").glob("*.py"))
        contents = {path: (file.read_bytes(), file.stat().st_mode) for path, file in sorted(files.items())}
        contents[f"{INFO}/METADATA"] = METADATA.encode(), 0o644
        contents[f"{INFO}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: gleaner\nRoot-Is-Purelib: false\n"
                                     f"Tag: {tag}\n").encode(), 0o644
        record = ""
        for path, (data, mode) in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            entry = zipfile.ZipInfo(path)
            entry.external_attr, entry.compress_type = (0o100000 | mode & 0o777) << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        wheel.writestr(f"{INFO}/RECORD", f"{record}{INFO}/RECORD,,\n")
    return name
