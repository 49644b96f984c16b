"""What XLA runs ahead of fusion, for modules that come before optimizations.

    base.py, running.py, registry.py  what a simplification is; running those of a target
    common/                           what passes share: new instructions, shapes, products, values
    algebraic/                        the algebraic simplifier: one file for what it does with an operation
    control_flow/, data_movement/, dots/, floats/, layouts/, loops/, reductions/, scatters/, sorting/
                                      passes of any target, a file each, by the operations they rewrite
    cpu/, gpu/                        passes of one target; `pipeline.py` has all it runs, as data

A pass of XLA's that is not repeated has its place in the pipeline all the same (`base.NotRepeated`).
Passes that run after fusion, too, are in `hlofuse.passes` (`base.Unrecorded`).

In `common/`, `rewriting.py` visits and replaces; `make.py` makes instructions, `cloning.py` and `inlining.py`
copy bodies; `shapes.py` makes shapes, `layout_shapes.py` says which of them lie alike; `dots.py` has the
dimensions of products; `literals.py` reads and writes constants, `evaluation.py` and `elementwise.py` compute
with them; `reading.py` reads attributes.
"""
