# %% [markdown]
# # Does it fit, and what does it cost?
#
# How many H100 does Llama-3 70B need at the least, what does a comfortable number reach, and what do 100
# billion tokens cost at 2.50 $ for a device and hour?

# %%
import phaze

fitted = phaze.place("llama3-70b", design="h100-sxm", fit=True)
print(f"at the least {fitted.fit.fewest_devices} devices, comfortable are {fitted.fit.comfortable_devices}")
print(fitted)

# %% [markdown]
# Memory of the fullest rank, part by part:

# %%
fullest = max(fitted.ranks, key=lambda rank: float(rank.memory))
for part, size in fullest.memory_parts.to_dict().items():
    print(f"{part:24} {size / 2**30:8.2f} GiB")

# %%
TOKENS, DOLLARS_PER_HOUR = 100e9, 2.50
hours = TOKENS / fitted.tokens_per_second / 3600
print(f"{hours / 24:.1f} days on {fitted.devices} devices: {hours * fitted.devices * DOLLARS_PER_HOUR:,.0f} $")

# %% [markdown]
# What does not fit is an answer too, with the limit that comes closest to being kept:

# %%
phaze.place("llama3-405b", design="h100-sxm", devices=8)
