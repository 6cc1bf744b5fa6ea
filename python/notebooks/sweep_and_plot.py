# %% [markdown]
# # Sweep and plot
#
# How does the speed of Llama-3 8B grow with the number of H100, at a batch of 4 million tokens?

# %%
import phaze

counts = [8, 16, 32, 64, 128, 256, 512]
plans = [phaze.place("llama3-8b", design="h100-sxm", devices=count) for count in counts]
for count, plan in zip(counts, plans):
    per_device = plan.tokens_per_second / count
    print(f"{count:5} devices: {plan.tokens_per_second:12,.0f} tokens/s, {per_device:8,.0f} each, {plan.strategy}")

# %%
phaze.scatter(counts, [plan.tokens_per_second for plan in plans], ("devices", "tokens/s"))

# %% [markdown]
# A search has a row for every design of its space: a table that pandas, polars and DuckDB take.

# %%
found = phaze.search(
    "bert-large", space="published", devices=64, global_batch=256, hbm_gib=32, glb_mib=32, depth=64,
    width=[32, 64, 128], tensor_cores=[16, 32, 64, 128], pareto=True,
)
frame = found.designs.to_pandas()
print(frame[["design", "tensor_cores", "width", "area_um2", "value"]].dropna().head(8).to_string(index=False))

# %%
found
