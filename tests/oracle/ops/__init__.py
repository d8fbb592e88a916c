"""The declarations, one file per family; importing this package fills the list of operations."""

from . import filters, geometry, labels, masks, measure, morphology, pointwise, restore  # noqa: F401
