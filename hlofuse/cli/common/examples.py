"""Examples at the end of each command's `--help`: DIR is a dump directory or a capture."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "capture": (
        'hlofuse capture train.py:step --args "f32[128,512]" --explain',
        "hlofuse capture -- python train.py",
        "hlofuse capture --run train.py -- --steps 20",
    ),
    "explain": (
        "hlofuse explain DIR",
        "hlofuse explain DIR model.py:42 --details",
        "hlofuse explain DIR --format json -o report.json",
    ),
    "why": ("hlofuse why DIR add.9", "hlofuse why DIR add.9 bitcast_add_fusion"),
    "what-if": (
        "hlofuse what-if DIR",
        "hlofuse what-if DIR --sweep code-duplication-limit=5,15,50",
        "hlofuse what-if DIR --without-pass algsimp",
    ),
    "rule": ("hlofuse rule CPU012", "hlofuse rule PF"),
    "optimize": (
        "hlofuse optimize DIR --space flags --seconds 30",
        "hlofuse optimize DIR --space fusion --seconds 30 --profile host.xplane.pb",
    ),
    "passes": ("hlofuse passes",),
    "stats": ("hlofuse stats DIR", "hlofuse stats DIR --after"),
    "kernels": ("hlofuse kernels DIR", "hlofuse kernels DIR model.py:42"),
    "model-error": (
        "hlofuse model-error host.xplane.pb --device h100_sxm",
        "hlofuse model-error step.sqlite DIR",
    ),
    "explore": ("hlofuse explore DIR -o page.html", "hlofuse explore DIR --source src -o page.html"),
    "render": (
        "hlofuse render DIR -o module.svg",
        "hlofuse render DIR --focus model.py:42 --radius 1 -o part.svg",
        "hlofuse render DIR --format model-explorer -o graph.json",
    ),
    "plot": (
        "hlofuse plot DIR --kind kernels -o kernels.svg",
        "hlofuse plot DIR --device h100_sxm --kind roofline -o roofline.svg",
    ),
    "diff": ("hlofuse diff BEFORE AFTER", "hlofuse diff BEFORE AFTER --format markdown"),
    "upgrade": ("hlofuse upgrade DIR --to 0.11.1", "hlofuse upgrade OLD_DIR NEW_DIR"),
    "check": (
        "hlofuse check DIR --max-kernels 50",
        "hlofuse check DIR --baseline fusion.toml --update",
        "hlofuse check DIR --baseline fusion.toml --format github",
    ),
    "timeline": ("hlofuse timeline DUMP_DIR",),
    "trace-op": ("hlofuse trace-op DUMP_DIR add.9",),
    "replay": (
        "hlofuse replay DIR -o after.hlo",
        "hlofuse replay DIR --until end -o final.hlo --trace trace.jsonl",
    ),
    "verify": ("hlofuse verify DIR", "hlofuse verify BEFORE AFTER"),
    "batch": (
        "hlofuse batch dumps/ s3://bucket/night.zip -o night",
        'hlofuse batch query night "SELECT rule, count(*) FROM edges GROUP BY rule"',
        "hlofuse batch diff last-night night --format github",
    ),
    "judge": ("hlofuse judge before.hlo changed.hlo",),
    "run-as": ("hlofuse run-as after.hlo -- python train.py",),
    "targets": ("hlofuse targets",),
    "devices": ("hlofuse devices", "hlofuse devices h100_sxm"),
}


def epilog(command: str) -> str:
    """The examples as click prints them: one a line, not wrapped."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES.get(command, ()))])
