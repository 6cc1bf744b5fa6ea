"""What callers give, as the native module takes it: JSON, and the texts of what has no file."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ._model import Model

#: Configurations by their own text, under a name that errors refer to.
Texts = Dict[str, str]


def dumps(keywords: Mapping[str, Any]) -> str:
    """Keywords as JSON: tuples are lists, ranges of two numbers are theirs, paths are texts."""
    given = dict(keywords)
    try:
        return json.dumps(given, default=_plain, allow_nan=False)
    except ValueError:
        endless = next((key for key, value in given.items() if not _finite(value)), None)
        if endless is None:
            raise
        raise ValueError(f"`{endless} = {given[endless]}` is no number of a request; give one that ends") from None


def _finite(value: Any) -> bool:
    try:
        json.dumps(value, default=_plain, allow_nan=False)
    except ValueError as wrong:
        return "JSON compliant" not in str(wrong)
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, range):
        return list(value)
    # Numbers of numpy, pandas and torch know their own plain form.
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return tolist()
    raise ValueError(f"{value!r} is no value of a request; give numbers, texts, lists or dictionaries")


def model_name(model: Any, texts: Texts) -> str:
    """What the native module calls a model: a built-in name, a path, or a text that is kept in `texts`."""
    if isinstance(model, str):
        return model
    if isinstance(model, os.PathLike):
        # A relative path without a slash would be looked up among the built-in models.
        path = os.fspath(model)
        path = path.decode() if isinstance(path, bytes) else path
        return path if os.path.isabs(path) or os.sep in path else os.path.join(".", path)
    if isinstance(model, Model):
        return _kept(model.name, model.text, texts)
    if isinstance(model, Mapping):
        name = str(model.get("_name_or_path") or model.get("model_type") or "config")
        return _kept(name, dumps(model), texts)
    # A configuration of transformers, or anything that tells itself as a dictionary.
    to_dict = getattr(model, "to_dict", None)
    if callable(to_dict):
        return _kept(type(model).__name__, dumps(to_dict()), texts)
    raise ValueError(f"{model!r} is no model; give a name, a path, a configuration, or a phaze.Model")


def _kept(name: str, text: str, texts: Texts) -> str:
    plain = "".join(c if c.isalnum() or c in "-." else "_" for c in os.path.basename(name)) or "config"
    known = plain if plain.endswith(".json") else f"{plain}.json"
    count = 1
    while texts.get(known, text) != text:
        count += 1
        known = f"{plain}-{count}.json"
    texts[known] = text
    return known


def path_of(verb: str, key: str, value: Any) -> pathlib.Path:
    """A path, or what is wrong with what was given for one."""
    if isinstance(value, (str, os.PathLike)):
        return pathlib.Path(value)
    raise ValueError(f"{verb}: `{key} = {value!r}` is no path; give a text or a path")


def maybe_path(verb: str, key: str, value: Any) -> Optional[pathlib.Path]:
    """A path, where one is given."""
    return None if value is None else path_of(verb, key, value)


def seconds_of(verb: str, value: Any) -> Optional[float]:
    """A limit of time that a clock can count, where one is given."""
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0):
        return None if value is None else float(min(value, 1e18))
    raise ValueError(f"{verb}: `time_limit = {value!r}` is no time; give a number of seconds, 0 or more")


def matmul_of(sizes: Any) -> str:
    """The sizes of a matmul as the command line writes them."""
    if isinstance(sizes, str):
        return sizes
    if not isinstance(sizes, Iterable):
        raise ValueError(f"estimate: `matmul = {sizes!r}` is no matmul; give batch, rows, inner and columns, as (1, 2048, 12288, 12288)")
    return "x".join(str(size) for size in sizes)


def threads_of(threads: Any) -> Optional[int]:
    """A number of threads that can be had."""
    if threads is None or (isinstance(threads, int) and 1 <= threads <= 1024):
        return threads
    raise ValueError(f"threads: allowed are 1 to 1024, not {threads!r}")


def models_of(model: Any, texts: Texts) -> List[Any]:
    """One model or several, each with its own settings where it is a dictionary with a `name`."""
    several = model if isinstance(model, (list, tuple)) else [model]
    if not several:
        raise ValueError("give at least one model")
    found: List[Any] = []
    for one in several:
        if isinstance(one, Mapping) and "name" in one and "model_type" not in one:
            found.append({**one, "name": model_name(one["name"], texts)})
        else:
            found.append(model_name(one, texts))
    return found


def hardware_text(keywords: Dict[str, Any], texts: Texts) -> Dict[str, Any]:
    """Keywords whose accelerator may be a calibration: its text goes by a name."""
    for key in ("design", "hardware"):
        given = keywords.get(key)
        text = getattr(given, "hardware_file", None)
        if isinstance(text, str):
            texts[f"{key}-calibrated.toml"] = text
            keywords = {**keywords, key: f"{key}-calibrated.toml"}
        elif isinstance(given, os.PathLike):
            keywords = {**keywords, key: model_name(given, texts)}
    return keywords


def split(keywords: Dict[str, Any], *names: str) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Those of the keywords that have these names, and the rest."""
    own = {name: keywords[name] for name in names if name in keywords}
    return own, {name: value for name, value in keywords.items() if name not in own}
