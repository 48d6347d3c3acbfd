"""What modules return: a tensor, several, or something with named parts."""

from __future__ import annotations


def unpacked(output: object) -> object:
    """Return the parts of an output that works like a dict as a tuple; any other output as it is."""
    values = getattr(type(output), "values", None)  # of the class: a proxy of torch.fx has any attribute
    return tuple(values(output)) if callable(values) and not isinstance(output, tuple) else output
