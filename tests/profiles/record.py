"""Records tests/data/profiles.tar.xz: a CPU profile in both forms, a dump of one module, xprof's own figures.

    python tests/profiles/record.py      # with jax and xprof installed

Three programs run three times each: a scan, a conditional, and a block of a transformer. xprof counts
operations of devices only, so it is given the profile with the host's plane called a device.
"""

import json
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).parents[1] / "data" / "profiles.tar.xz"


def record(folder: Path) -> None:
    """Run the programs under the profiler."""
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder / 'dump'} --xla_dump_hlo_module_re=jit_step"
    import jax
    import jax.numpy as jnp

    # Paths of this machine say nothing.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")

    def step(x: Any, w: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return jnp.tanh(c @ w) + c, c.sum()

        c, s = jax.lax.scan(body, x, None, length=8)
        return jax.nn.softmax(c) * s[-1]

    def small(x: Any, n: int) -> Any:
        y = jax.lax.cond(n > 2, jnp.sin, lambda v: v * 2, x)
        return jnp.exp(y).sum(0) - y.mean()

    def block(x: Any, w: Any) -> Any:
        q, k, v = jnp.split((x - x.mean(-1, keepdims=True)) @ w["qkv"], 3, -1)
        x = x + jax.nn.softmax(q @ k.T / 8 + jnp.tri(len(x)) * 9) @ v @ w["out"]
        return x + jax.nn.gelu((x - x.mean(-1, keepdims=True)) @ w["up"]) @ w["down"]

    jitted_step, jitted_small, jitted_block = (jax.jit(f) for f in (step, small, block))
    x, w = jnp.ones((128, 128)), jnp.ones((128, 128)) * 0.01
    sizes = {"qkv": (128, 384), "out": (128, 128), "up": (128, 512), "down": (512, 128)}
    weights = {name: jnp.ones(size) * 0.01 for name, size in sizes.items()}

    def run() -> None:
        for result in (jitted_step(x, w), jitted_small(x, 3), jitted_block(x, weights)):
            result.block_until_ready()

    run()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(str(folder / "log"), profiler_options=options):
        for _ in range(3):
            run()


def figures_of_xprof(profile: Path, folder: Path) -> dict[str, tuple[float, float]]:
    """Occurrences and microseconds of each operation, by `program|name`."""
    from xprof.convert import raw_to_tool_data

    from tests.profiles.writing import with_plane_called

    copy = folder / "device" / "host.xplane.pb"
    copy.parent.mkdir()
    copy.write_bytes(with_plane_called(profile.read_bytes(), "/host:CPU", "/device:GPU:0"))
    text, _ = raw_to_tool_data.xspace_to_tool_data([str(copy)], "hlo_stats", {})
    table = json.loads(text)
    names = [column["id"] for column in table["cols"]]
    rows = [dict(zip(names, (c and c["v"] for c in row["c"]), strict=True)) for row in table["rows"]]
    return {f"{r['program_id']}|{r['hlo_op_name']}": (r["occurrences"], r["total_time"]) for r in rows}


def main() -> None:
    """Record, ask xprof, pack."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(folder)
        (profile,) = folder.glob("log/plugins/profile/*/*.xplane.pb")
        (dump,) = folder.glob("dump/*.jit_step.before_optimizations.txt")
        (folder / "xprof.json").write_text(json.dumps(figures_of_xprof(profile, folder), indent=1))
        trace = profile.with_name(profile.name.replace(".xplane.pb", ".trace.json.gz"))
        with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
            archive.add(profile, "host.xplane.pb")
            archive.add(trace, "host.trace.json.gz")
            archive.add(dump, "step.before_optimizations.txt")
            archive.add(folder / "xprof.json", "xprof.json")
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
