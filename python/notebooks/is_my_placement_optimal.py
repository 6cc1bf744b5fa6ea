# %% [markdown]
# # Is my placement optimal?
#
# A cluster trains Llama-2 7B on 64 A100 with tensor parallelism 4 and pipelines of 2. How far is that from
# the best?

# %%
from typing import Any, Dict

import phaze

CLUSTER: Dict[str, Any] = {"design": "a100-80g", "devices": 64}

mine = phaze.place("llama2-7b", strategy="t=4,p=2", **CLUSTER)
best = phaze.place("llama2-7b", **CLUSTER)
print(mine)

# %%
print(f"mine: {mine.time_per_batch:.3f} s for a batch, {mine.strategy}")
print(f"best: {best.time_per_batch:.3f} s for a batch, {best.strategy}")
print(f"the best is {mine.time_per_batch / best.time_per_batch:.3f} times faster")

# %% [markdown]
# Where the time of mine goes:

# %%
mine

# %% [markdown]
# That nothing is faster is proved over every axis, and the plan is checked from its own question; `deep`
# asks the solvers once more.

# %%
best.check(deep=True)
