"""Ask XLA:GPU what its fusion passes do to HLO modules given as text; no GPU is needed.

    ask_gpu.py FILE.hlo... -o DIR --plugin xla_cuda_plugin.so --target-config h100_sxm.txtpb
               [--devices N] [--flags "--xla_..."]

The modules go to the compiler as they are, fused computations included, which no front end can write.
Each becomes a folder as in a corpus: before.hlo, before.hlo.pb, NN-PASS.hlo, after.hlo and XLA's record
priority_fusion.txtpb.

Needs jaxlib (for the text parser) and a GPU plugin of the same release: CUDA's is jax_plugins/xla_cuda12 of
jax-cuda12-plugin, ROCm's jax_plugins/xla_rocm7 of jax-rocm7-pjrt. The target configuration describes the
device; XLA has one for each it knows in xla/backends/gpu/target_config/specs. Nothing is run, so
the libraries that ROCm's plugin is linked to may be empty stand-ins.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

PIPELINE = "fusion"
BEFORE_PRIORITY_FUSION = ("variadic-op-splitter", "sort-iota-fusion")
_DUMP = re.compile(
    r"module_\d+\.jit_(?P<name>\w+)\.(?:cl_\d+\.)?(?P<number>\d{4})\.fusion\.after_(?P<pass>.+?)(?:\.before_.+)?\.txt"
)
# Where xla/pjrt/c/pjrt_c_api.h has these in its table of functions; the table only ever grows at its end.
_ERROR_MESSAGE, _INITIALIZE, _CREATE_TOPOLOGY, _COMPILE = 48, 64, 696, 752
_STRING = 0


class _Head(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p)]


class _NamedValue(_Head):
    _fields_ = [
        ("name", c_char_p),
        ("name_size", c_size_t),
        ("type", c_int),
        ("value", c_char_p),
        ("value_size", c_size_t),
    ]


class _CreateTopology(_Head):
    _fields_ = [
        ("name", c_char_p),
        ("name_size", c_size_t),
        ("options", ctypes.POINTER(_NamedValue)),
        ("option_count", c_size_t),
        ("topology", c_void_p),
    ]


class _Program(_Head):
    _fields_ = [("code", c_char_p), ("code_size", c_size_t), ("format", c_char_p), ("format_size", c_size_t)]


class _Compile(_Head):
    _fields_ = [
        ("topology", c_void_p),
        ("program", ctypes.POINTER(_Program)),
        ("options", c_char_p),
        ("options_size", c_size_t),
        ("client", c_void_p),
        ("executable", c_void_p),
    ]


class _ErrorMessage(_Head):
    _fields_ = [("error", c_void_p), ("message", c_void_p), ("message_size", c_size_t)]


class Compiler:
    """A GPU compiler for a device that need not be there."""

    def __init__(self, plugin: str, target_config: str, devices: int) -> None:
        library = ctypes.CDLL(plugin)
        library.GetPjrtApi.restype = c_void_p
        self._api = library.GetPjrtApi()
        self._call(_INITIALIZE, _Head())
        options = [self._named(b"target_config", target_config.encode())]
        options.append(self._named(b"topology", f"1x1x{devices}".encode()))
        create = _CreateTopology(name=b"x", name_size=1, option_count=len(options))
        create.options = (_NamedValue * len(options))(*options)
        self._call(_CREATE_TOPOLOGY, create)
        self._topology = create.topology

    def compile(self, proto: bytes, options: bytes) -> None:
        """Compile an HloModuleProto; a ValueError holds XLA's message."""
        program = _Program(code=proto, code_size=len(proto), format=b"hlo", format_size=3)
        program.struct_size = ctypes.sizeof(_Program)
        request = _Compile(topology=self._topology, options=options, options_size=len(options))
        request.program = ctypes.pointer(program)
        self._call(_COMPILE, request)

    @staticmethod
    def _named(name: bytes, value: bytes) -> _NamedValue:
        named = _NamedValue(name=name, name_size=len(name), type=_STRING, value=value, value_size=len(value))
        named.struct_size = ctypes.sizeof(_NamedValue)
        return named

    def _call(self, offset: int, request: _Head) -> None:
        request.struct_size = ctypes.sizeof(request)
        address = c_void_p.from_address(self._api + offset).value
        assert address is not None
        function = ctypes.CFUNCTYPE(c_void_p, c_void_p)(address)
        error = function(ctypes.addressof(request))
        if error and offset != _ERROR_MESSAGE:
            reported = _ErrorMessage(error=error)
            self._call(_ERROR_MESSAGE, reported)
            raise ValueError(
                ctypes.string_at(reported.message, reported.message_size).decode(errors="replace")
            )


def module_name(file: str) -> str:
    """What the module is called in XLA's dumps, after `jit_`."""
    return re.sub(r"\W", "_", Path(file).stem)


def compile_files(a: argparse.Namespace) -> None:
    """Child: compile, leaving XLA's dumps."""
    import jaxlib._hlo
    import jaxlib._jax

    compiler = Compiler(a.plugin, a.target_config.read_text(encoding="utf-8"), a.devices)
    options = jaxlib._jax.CompileOptions()
    options.num_replicas = a.devices
    options.executable_build_options.num_replicas = a.devices
    for file in a.files:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        text = "\n".join(line for line in lines if not line.startswith("//"))
        text = re.sub(r"HloModule [\w.\-]+", f"HloModule jit_{module_name(file)}", text, count=1)
        try:
            proto = jaxlib._hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
            compiler.compile(proto, options.SerializeAsString())
        except (ValueError, RuntimeError) as e:  # what the compiler refuses late has left its dumps
            print(f"{file}: {str(e)[:300]}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(0)  # some plugins do not survive their own end


def collect(dump: Path, name: str, out: Path) -> bool:
    """Sort XLA's dumps of one module into a folder; False if it never came to the fusion passes' end."""
    found = sorted(
        (m["number"], m["pass"], f)
        for f in dump.iterdir()
        if (m := _DUMP.fullmatch(f.name)) and m["name"] == name
    )
    record = next(dump.glob(f"module_*.jit_{name}.priority_fusion_dump.txt"), None)
    if not found or record is None:
        return False
    out.mkdir(parents=True, exist_ok=True)
    shutil.copy(found[0][2], out / "before.hlo")
    for number, (_, defined_by, file) in enumerate(found[1:], 1):
        shutil.copy(file, out / f"{number:02d}-{defined_by}.hlo")
    shutil.copy(found[-1][2], out / "after.hlo")
    last = [found[0], *(f for f in found[1:] if f[1] in BEFORE_PRIORITY_FUSION)][-1][2]
    proto = last.with_name(last.name.removesuffix(".txt") + ".hlo.pb")
    if proto.exists():
        shutil.copy(proto, out / "before.hlo.pb")
    steps = re.sub(r"(?m)^hlo_module_before_fusion: .*\n", "", record.read_text(encoding="utf-8"))
    (out / "priority_fusion.txtpb").write_text(steps, encoding="utf-8")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="FILE.hlo")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--target-config", type=Path, required=True)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--flags", default="")
    parser.add_argument("--at-once", type=int, default=20, help="modules a process (an abort costs the rest)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        compile_files(a)
    common = [sys.executable, __file__, "-o", str(a.out), "--plugin", a.plugin, "--child"]
    common += ["--target-config", str(a.target_config), "--devices", str(a.devices)]
    left, size = a.files, a.at_once
    while left:
        with tempfile.TemporaryDirectory() as folder:
            dump = f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text"
            environment = dict(os.environ, XLA_FLAGS=f"{dump} --xla_dump_hlo_as_proto {a.flags}")
            for start in range(0, len(left), size):
                subprocess.run([*common, *left[start : start + size]], env=environment)
            left = [f for f in left if not collect(Path(folder), module_name(f), a.out / Path(f).stem)]
        if size == 1:
            break
        size = 1
    print(f"{len(a.files) - len(left)} modules in {a.out}", *(f"no answer: {f}" for f in left), sep="\n")


if __name__ == "__main__":
    main()
