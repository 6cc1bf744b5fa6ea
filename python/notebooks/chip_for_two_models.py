# %% [markdown]
# # A chip for two models
#
# One accelerator is to train two models. Which one is best for both, and what does each lose
# against a chip of its own?

# %%
from typing import Any, Dict

import phaze

SPACE: Dict[str, Any] = {
    "space": "published",
    "hbm_gib": 32,
    "glb_mib": 32,
    "depth": [64, 128],
    "width": [64, 128],
    "tensor_cores": [32, 64, 128],
}
JOB: Dict[str, Any] = {"devices": 64, "global_batch": 256}

both = phaze.search(["bert-large", "gpt2-xl"], combine="geomean", top=3, **SPACE, **JOB)
both

# %% [markdown]
# The winner, and why no other design of the space is better:

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
# Every claim can be verified from the request alone, without a solver:

# %%
both.check()
