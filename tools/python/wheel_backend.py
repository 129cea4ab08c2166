"""Builds a wheel of the package by CMake (PEP 517): the module for this Python, and the master beside it."""

import base64
import hashlib
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

HERE, ROOT = Path(__file__).resolve().parent, Path(__file__).resolve().parents[2]
INFO = "gleaner-1.0.dist-info"
METADATA = "Metadata-Version: 2.1\nName: gleaner\nVersion: 1.0\nRequires-Dist: numpy>=1.21\nRequires-Dist: scipy>=1.7\n"


def build(folder):
    """The built module and programs, by their paths in the wheel."""
    flags = [f"-DGLEANER_PYTHON={sys.executable}", f"-B{folder}", "--preset", "release"]
    try:
        import pybind11
        flags.append(f"-DPYBIND11_INCLUDE={pybind11.get_include()}")
    except ImportError:
        pass  # Debian's pybind11-dev
    subprocess.run(["cmake", *flags], check=True, cwd=ROOT)
    subprocess.run(["cmake", "--build", folder, "--target", "gleaner_python", "gleaner-master"], check=True)
    module = next(Path(folder, "python/gleaner").glob(f"_gleaner*{sysconfig.get_config_var('EXT_SUFFIX')}"))
    return {f"gleaner/{module.name}": module, "gleaner/bin/gleaner-master": Path(folder, "bin/gleaner-master")}


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """PEP 517; returns the name of the folder."""
    Path(metadata_directory, INFO).mkdir()
    Path(metadata_directory, INFO, "METADATA").write_text(METADATA, encoding="utf-8")
    return INFO


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517; returns the wheel's name."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    files = {**build(str(ROOT / "build" / f"wheel-{python}")),
             **{f"gleaner/{path.name}": path for path in (HERE / "gleaner").glob("*.py")}}
    contents = {path: file.read_bytes() for path, file in files.items()}
    contents[f"{INFO}/METADATA"] = METADATA.encode()
    contents[f"{INFO}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: gleaner\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
               for path, data in contents.items()}
    contents[f"{INFO}/RECORD"] = ("".join(f"{path},sha256={digests[path]},{len(contents[path])}\n" for path in digests)
                                  + f"{INFO}/RECORD,,\n").encode()
    with zipfile.ZipFile(Path(wheel_directory, f"gleaner-1.0-{tag}.whl"), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr, entry.compress_type = 0o100755 << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return f"gleaner-1.0-{tag}.whl"
