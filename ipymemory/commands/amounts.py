"""Amounts as people read them: sizes, and counts with their nouns."""


def size(count: int) -> str:
    """Return `count` bytes for a reader: ``812 bytes``, ``3.4 KB``, ``12.0 MB``."""
    if count < 1000:
        return f"{count} bytes"
    value = count / 1000
    for unit in ("KB", "MB"):
        if value < 1000:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def counted(number: int, one: str, many: str = "") -> str:
    """Return `number` with its noun: ``1 turn``, ``3 turns``, ``no turns``."""
    if number == 1:
        return f"1 {one}"
    return f"{number or 'no'} {many or one + 's'}"
