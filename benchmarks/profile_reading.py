"""How long a large profile takes to read, and how much memory: a recorded one with its events repeated.

    python benchmarks/profile_reading.py SMALL.xplane.pb [MEGABYTES]

Prints one line: size, events, elapsed and processor time, and the peak of resident memory.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path


def varint(value: int) -> bytes:
    """`value` as a protocol buffer writes it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(number: int, content: bytes) -> bytes:
    """A field that holds bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def enlarged(small: Path, target: Path, size: int) -> None:
    """Write a profile of about `size` bytes: each line of `small` has its events again and again."""
    from hlofuse.inputs.wire_format import fields

    planes = [
        value for number, value in fields(small.read_bytes()) if number == 1 and isinstance(value, bytes)
    ]
    lines = sum(len(v) for p in planes for n, v in fields(p) if n == 3 and isinstance(v, bytes))
    often = size // lines + 1
    with open(target, "wb") as file:
        for plane in planes:
            parts: list[bytes] = []
            for number, value in fields(plane):
                if isinstance(value, int):
                    parts.append(varint(number << 3) + varint(value))
                else:
                    parts.append(message(number, value * (often if number == 3 else 1)))
            file.write(message(1, b"".join(parts)))


def read(path: str) -> None:
    """Read the profile and print the figures."""
    from hlofuse.inputs.profile import read_profile

    began, used = time.perf_counter(), time.process_time()
    found = read_profile(path)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    calls = sum(t.calls for m in found.modules for t in m.times.values())
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    size = Path(path).stat().st_size / 1e6
    print(
        f"{size:,.0f} MB, {calls:,} events of instructions: {seconds:.1f} s,"
        f" {used:.1f} s of the processor, {peak:,.0f} MiB at most"
    )


def main() -> None:
    """Enlarge, then read in a process of its own."""
    if sys.argv[1] == "--read":
        read(sys.argv[2])
        return
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.xplane.pb"
        enlarged(Path(sys.argv[1]), large, megabytes * 1_000_000)
        subprocess.run([sys.executable, __file__, "--read", str(large)], check=True)


if __name__ == "__main__":
    main()
