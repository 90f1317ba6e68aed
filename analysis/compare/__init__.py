"""Two sweeps beside each other: what changed from A to B, how surely, and what else differs between them.

Within each sweep ratios are paired, so what drifted between the two days or machines is in none of them; the
change of a ratio from A to B is unpaired. Absolute figures have that drift in them.
"""
