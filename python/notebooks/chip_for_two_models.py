# %% [markdown]
# # A chip for two models
#
# One accelerator of at most 600 mm² is to train two models. Which one is best for both, and what does each lose
# against a chip of its own?
#
# Knobs that are not named take all their values (`phaze search --example` lists them); here some are given, so that
# the search takes seconds.

# %%
from typing import Any, Dict

import phaze

CHIPS: Dict[str, Any] = {
    "max_area_mm2": 600,
    "tensor_cores": [16, 32],
    "width": 128,
    "depth": 128,
    "vector_cores": [16, 32],
    "stacks": [2, 4],
    "links": 450,
    "clock_mhz": 1800,
}
JOB: Dict[str, Any] = {"devices": 64, "global_batch": 256, "strategy": "c=1,v=1,zero=0"}

both = phaze.search(["bert-large", "gpt2-xl"], combine="geomean", **CHIPS, **JOB)
both

# %% [markdown]
# The winner, and why no other chip of the space is better:

# %%
assert both.winner is not None
print(both.winner)
print(both.proof.statement)

# %% [markdown]
# What each model would reach on a chip of its own, and on the common one:

# %%
for model, training in zip(both.models, both.winner.results):
    share = training.throughput_sequences_per_s / model.best_throughput_sequences_per_s
    print(f"{model.name:12} {share:7.1%} of its own best, by {training.strategy}")

# %% [markdown]
# Chips that are nearly as good and take less:

# %%
for near in both.near_winners:
    chip = near.entry.design
    print(f"{near.least:10} {chip.die_mm2:6.1f} mm²  {chip.tdp_w:6.1f} W  {chip.cost_usd:7.0f} $  {near.entry.value / both.winner.value:.2%} of the best")

# %% [markdown]
# Every claim can be verified from the request alone, without a solver:

# %%
both.check()
