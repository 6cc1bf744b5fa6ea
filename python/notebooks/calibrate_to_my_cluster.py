# %% [markdown]
# # Calibrate to my cluster
#
# Measured runs say what hardware and software reach of the data sheet. Here are published ones of
# Megatron on A100 (Korthikanti et al., MLSys 2023, table 5); a frame of pandas or a path of a `runs.csv` does as well.

# %%
import pathlib
import tempfile

import phaze

RUNS = """\
set,source,model,hardware,stack,devices,global_batch,micro_batch,sequence,tensor,sequence_parallel,context,pipeline,chunks,data,expert,zero,recompute,attention,precision,kernels,seconds,memory_gib,note
korthikanti,arXiv 2205.05198,megatron-22b,a100-80g,megatron-2022,8,4,4,2048,8,0,1,1,1,1,1,0,full,unfused,bf16,megatron,1.42,,
korthikanti,arXiv 2205.05198,megatron-22b,a100-80g,megatron-2022,8,4,4,2048,8,1,1,1,1,1,1,0,selective,unfused,bf16,megatron,1.10,,
korthikanti,arXiv 2205.05198,gpt3-175b,a100-80g,megatron-2022,64,64,1,2048,8,0,1,8,3,1,1,0,full,unfused,bf16,megatron,18.13,,
korthikanti,arXiv 2205.05198,gpt3-175b,a100-80g,megatron-2022,64,64,1,2048,8,1,1,8,3,1,1,0,selective,unfused,bf16,megatron,13.75,,
korthikanti,arXiv 2205.05198,megatron-530b,a100-80g,megatron-2022,280,280,1,2048,8,0,1,35,3,1,1,0,full,unfused,bf16,megatron,49.05,,
korthikanti,arXiv 2205.05198,megatron-530b,a100-80g,megatron-2022,280,280,1,2048,8,1,1,35,3,1,1,0,selective,unfused,bf16,megatron,37.83,,
korthikanti,arXiv 2205.05198,megatron-1t,a100-80g,megatron-2022,512,512,1,2048,8,0,1,64,1,1,1,0,full,unfused,bf16,megatron,94.42,,
korthikanti,arXiv 2205.05198,megatron-1t,a100-80g,megatron-2022,512,512,1,2048,8,1,1,64,1,1,1,0,selective,unfused,bf16,megatron,71.49,,
"""

runs = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
runs.write_text(RUNS, encoding="utf-8")
fitted = phaze.calibrate(runs, scalars="1")
print(fitted)

# %% [markdown]
# The calibration is an accelerator: every verb takes it as `design`.

# %%
sheet = phaze.place("megatron-22b", design="a100-80g", ideal=True, devices=8, global_batch=64)
mine = phaze.place("megatron-22b", design=fitted, devices=8, global_batch=64)
print(f"by the data sheet {sheet.time_per_batch:.2f} s, calibrated {mine.time_per_batch:.2f} s for a batch")

# %% [markdown]
# How close predictions are to all runs that come with phaze, with one model left out at a time:

# %%
for one in phaze.validate():
    print(one)
