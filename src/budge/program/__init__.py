"""Parts as integer programs (the paper's appendix "Description of the Mixed Integer Program").

`encoding` writes a part at a start by `compiler`, `solver` hands it to HiGHS or SciPy, `milp` asks it, `clash` finds what cannot hold together, `paper` is
the paper's sampler. Drawing does not use it: it proves, names what clashes, and is the oracle of tests.
"""
