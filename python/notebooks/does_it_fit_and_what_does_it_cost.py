# %% [markdown]
# # Does it fit, and what does it cost?
#
# How many H100 does Llama-3 70B need at the least, and what does a run of 100 billion tokens on 256 of them take
# at 2.50 $ for a device and hour?

# %%
import phaze

run = phaze.plan("llama3-70b", gpus="256xh100-sxm", tokens="100G", price=2.50)
print(f"at the least {run.fits.fewest_devices} devices, comfortable are {run.fits.comfortable_devices}")
print(f"{run.days:.1f} days, {run.device_hours:,.0f} device-hours, {run.dollars:,.0f} $")
run

# %% [markdown]
# Memory of the fullest rank, part by part:

# %%
fullest = max(run.plan.ranks, key=lambda rank: float(rank.memory))
for part, size in fullest.memory_parts.to_dict().items():
    print(f"{part:24} {size / 2**30:8.2f} GiB")

# %% [markdown]
# What is the next best, and what would be if, each optimised exactly:

# %%
for row in (*run.next, *run.what_if):
    found = row.found
    print(f"{row.title:48} {'nothing fits' if found is None else f'{found.run.seconds / 86400:6.1f} days  {found.strategy}'}")

# %% [markdown]
# The files that start it, for Megatron; `save` writes plan, page and script, and `phaze check` checks all of them:

# %%
print(run.launch("megatron"))
run.check()

# %% [markdown]
# How many devices are worth their hours, and which number is the cheapest that is done in a month?

# %%
curve = phaze.plan("llama3-70b", gpus="64..512xh100-sxm", tokens="100G", price=2.50, deadline="30d").curve
assert curve is not None
points = [point for point in curve.points if point.found is not None]
print(f"the knee is at {curve.knee} devices, the cheapest in time are {curve.cheapest}")
phaze.scatter([point.devices for point in points], [point.found.run.seconds / 86400 for point in points], ("devices", "days"))

# %% [markdown]
# What does not fit is an answer too, with the limit that comes closest to being kept, and what was tried and does:

# %%
phaze.plan("llama3-405b", gpus="8xh100-sxm")
