# %% [markdown]
# # My own operator graph
#
# A graph of operators on tensor and vector cores: in which order is it fastest?

# %%
import json

import phaze

graph = {
    "name": "attention block",
    "tensor_cores": 8,
    "vector_cores": 2,
    "operators": [
        {"id": "norm", "core": "vector", "alone": 0.10, "spread": 0.07},
        {"id": "qkv", "core": "tensor", "alone": 0.52, "spread": 0.08},
        {"id": "scores", "core": "tensor", "alone": 0.30, "spread": 0.05},
        {"id": "softmax", "core": "vector", "alone": 0.20, "spread": 0.11},
        {"id": "context", "core": "tensor", "alone": 0.30, "spread": 0.05},
    ],
    "edges": [["norm", "qkv"], ["qkv", "scores"], ["scores", "softmax"], ["softmax", "context"]],
}
(schedule,) = phaze.schedule(graph)
print(f"{schedule.makespan:.2f} with proof by {schedule.proof.kind}")

# %% [markdown]
# A whole model of one's own starts from one that is close: here an exported model is given a narrower MLP.
# What its layers compute is in `kinds`, step by step in named dimensions, and can be changed likewise.

# %%
model = phaze.Model.builtin("llama2-7b").to_dict()
model["numbers"]["name"] = "narrower"
model["numbers"]["mlp"] = 8192
mine = phaze.Model("narrower", json.dumps(model))
print(mine)

# %%
plan = phaze.place(mine, design="h100-sxm", devices=16)
plan
