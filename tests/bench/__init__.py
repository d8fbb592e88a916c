"""Our speed beside that of the libraries people would use instead, in one interleaved run.

Run it with `cargo xtask bench ops` (or `seg2k`, `point6`, `fusion`, `latency`, `whole`), which makes a virtual environment with
the peers and builds our server, or by hand from the folder above: `python -m bench ops --server PATH`.

    scene.py    the images
    work.py     what is measured: our operations, and the same in each library's words
    peers.py    the libraries
    ours.py     our side: a process that keeps images and compiled programs
    clock.py    interleaved rounds, and what the memory allows
    bars.py     what has to be reached
    ops.py      operation by operation
    seg2k.py    a whole segmentation against Halide
    point6.py   six pointwise steps against Halide
    fusion.py   random graphs, fused and not
    latency.py  what is paid before the first pixel
    whole.py    from files to files, beside the kernels alone
    frames.py   camera frames for the two
    server.rs   our server
    devices.rs  the scheduler beside bare OpenCL, and a real stream; `cargo xtask bench sched` runs it
    dummy.py    a server that only pretends, for trying the rest out
"""
