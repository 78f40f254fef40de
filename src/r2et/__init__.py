"""Neural networks whose top-k explanations hold still, and how still, by attack and by proof."""

from r2et.version import __version__

__all__ = ["__version__"]
