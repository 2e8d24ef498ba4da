"""What the extension costs, measured: ``python -m tests.benchmarks`` from the top folder.

Every figure is a median of several runs, every comparison a ratio or a difference within one run,
with the machine's own noise beside it. Nothing here passes or fails; the limits are printed for
whoever reads the table.
"""
